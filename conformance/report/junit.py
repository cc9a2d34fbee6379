"""`junit.xml`: what pytest tells, and in it the harness errors that belong to no test."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from conformance.errors import Exit
from conformance.report import document
from conformance.report.model import Report
from conformance.report.terminal import clean

NAME = "harness error"
"""The test case of a harness error."""


def write(path: Path, results: str, report: Report) -> None:
    """Write what pytest has told, and add a test case for each harness error that is no test's. It is an error, unless
    it took nothing from a run that has passed. Raises HarnessError."""
    faults = [fault for fault in report.faults if fault not in {test.reason for test in report.tests}]
    if not faults:
        if results:
            document.save(path, results)
        return
    try:
        root = ET.fromstring(results)  # noqa: S314 - pytest has written it
    except ET.ParseError:
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
