"""Render `junit.xml` for CI systems: a suite for each profile, and a case for each requirement (`cases.py`). Pure."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator

from conformance.report import about, cases, document
from conformance.report.cases import CaseState, ReportCase
from conformance.report.model import Report
from conformance.report.terminal import clean

Counts = dict[str, str]

ELEMENT_NAMES = {CaseState.FAILED: "failure", CaseState.ERROR: "error", CaseState.SKIPPED: "skipped"}
STATES_BY_TOTAL = {"tests": None, "failures": CaseState.FAILED, "errors": CaseState.ERROR, "skipped": CaseState.SKIPPED}
MAX_TESTS = 8
"""The maximum number of a requirement's tests that are listed: hundreds of tests judge an invariant."""


def render(report: Report) -> str:
    """Return the XML document."""
    report_cases = cases.find_cases(report)
    root = ET.Element(
        "testsuites", {"name": "grove-conformance", **_totals(report_cases), "time": f"{report.seconds:.3f}"}
    )
    start_time = document.instant(report.started.wall)
    verdicts = {profile.name: str(profile.verdict) for profile in report.profiles}
    for group in dict.fromkeys(
        [*verdicts, *sorted(case.group for case in report_cases if case.result), cases.GENERAL_GROUP]
    ):
        cases_of_group = [case for case in report_cases if case.group == group]
        if cases_of_group:
            times = {"time": f"{sum(case.seconds for case in cases_of_group):.3f}", "timestamp": start_time}
            suite = ET.SubElement(root, "testsuite", {"name": group, **_totals(cases_of_group), **times})
            properties = about.run_facts(report) | ({"profile verdict": verdicts[group]} if group in verdicts else {})
            _add_properties(suite, properties.items())
            for case in cases_of_group:
                _add_case(suite, case)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _totals(report_cases: list[ReportCase]) -> Counts:
    return {
        name: str(sum(state in (None, case.state) for case in report_cases)) for name, state in STATES_BY_TOTAL.items()
    }


def _add_case(suite: ET.Element, case: ReportCase) -> None:
    class_name = ".".join(filter(None, (case.group, case.scene)))
    element = ET.SubElement(suite, "testcase", classname=class_name, name=clean(case.name), time=f"{case.seconds:.3f}")
    if case.result is not None:
        _add_properties(element, _requirement_properties(case))
    if case.state is not CaseState.PASSED:
        ET.SubElement(element, ELEMENT_NAMES[case.state], message=clean(case.message)).text = clean(case.details)
    elif case.message:
        ET.SubElement(element, "system-err").text = clean(case.message)


def _requirement_properties(case: ReportCase) -> Iterator[tuple[str, str]]:
    assert case.result is not None
    entry = case.result.requirement
    yield "requirement", entry.text
    yield from (("level", entry.level), ("profile", entry.profile), ("basis", entry.basis))
    yield "outcome", case.result.outcome
    yield from ((name, f"{seconds:.3f} s") for name, seconds in case.markers.items())
    tests = case.result.tests
    yield from (("test", test) for test in tests[:MAX_TESTS])
    if len(tests) > MAX_TESTS:
        yield "further tests", str(len(tests) - MAX_TESTS)


def _add_properties(parent: ET.Element, pairs: Iterable[tuple[str, str]]) -> None:
    properties = ET.SubElement(parent, "properties")
    for name, value in pairs:
        ET.SubElement(properties, "property", name=name, value=clean(value))
