"""`junit.xml`, which pytest writes, and in it the harness errors that belong to no test."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from conformance import regular
from conformance.errors import Exit
from conformance.report import document
from conformance.report.model import Report
from conformance.report.terminal import clean

MOST = 64 << 20
"""Maximum bytes of the file."""
NAME = "harness error"
"""The test case of a harness error."""


def add_faults(path: Path, report: Report) -> None:
    """Add a test case for each harness error that is no test's. It is an error, unless it took nothing from a run that
    has passed."""
    faults = [fault for fault in report.faults if fault not in {test.reason for test in report.tests}]
    if not faults:
        return
    try:
        root = ET.fromstring(regular.Held(path).at(0, MOST))  # noqa: S314 - pytest has written it
    except (OSError, ET.ParseError):
        root = ET.Element("testsuites")
    suite = root.find("testsuite")
    suite = ET.SubElement(root, "testsuite", name="conformance", tests="0", errors="0") if suite is None else suite
    wrong = report.exit is not Exit.CONFORMANT
    for fault in faults:
        case = ET.SubElement(suite, "testcase", classname="grove-conformance", name=NAME)
        if wrong:
            ET.SubElement(case, "error", message=clean(fault))
        else:
            ET.SubElement(case, "system-err").text = clean(fault)
    for count, more in (("tests", len(faults)), ("errors", len(faults) * wrong)):
        suite.set(count, str(int(suite.get(count, "0")) + more))
    document.save(path, ET.tostring(root, encoding="unicode", xml_declaration=True))
