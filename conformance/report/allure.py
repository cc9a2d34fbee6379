"""Write `allure/`: Allure results, one for each requirement (`cases.py`), with a step for each failure.

Allure reads no files outside its folder. The only evidence in that folder is the picture of each bundle; the texts say
where the other evidence is.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from allure_commons.logger import AllureFileLogger
from allure_commons.model2 import (
    ATTACHMENT_PATTERN,
    Attachment,
    Label,
    Link,
    Parameter,
    Status,
    StatusDetails,
    TestResult,
    TestStepResult,
)
from allure_commons.types import AttachmentType, LabelType, LinkType, Severity
from allure_commons.utils import md5

from conformance import regular
from conformance.errors import HarnessError
from conformance.evidence import bundle
from conformance.report import about, cases, causes, defects, document, facts
from conformance.report.cases import CaseState, ReportCase
from conformance.report.model import Failure, Report
from conformance.report.terminal import clean
from conformance.suite.registry import basis
from conformance.suite.registry.requirement import Level

STATUS = {
    CaseState.PASSED: Status.PASSED,
    CaseState.FAILED: Status.FAILED,
    CaseState.ERROR: Status.BROKEN,
    CaseState.SKIPPED: Status.SKIPPED,
}
SEVERITY = {
    Level.MUST: Severity.CRITICAL,
    Level.SHOULD: Severity.NORMAL,
    Level.MAY: Severity.MINOR,
    Level.COMPAT: Severity.MINOR,
}


PICTURE_TYPE = AttachmentType.SVG.mime_type
MAX_PICTURE_BYTES = 4 << 20
"""Maximum number of bytes that are read from a picture, because another program may have replaced it by an endless
file."""


def write(folder: Path, report: Report) -> None:
    """Write the results. `folder` must be in the folder of the run. Raises HarnessError if a file cannot be written."""
    try:
        logger = AllureFileLogger(folder)
        report_cases = cases.find_cases(report)
        bundles = {failure.bundle for case in report_cases if case.result for failure in case.result.failures}
        pictures = dict(_pictures(folder.parent, sorted(bundles - {""}), logger))
        for case in report_cases:
            logger.report_result(_result(case, report, pictures))
    except OSError as error:
        hint = "make room or make it writable, and remove what is in its place"
        raise HarnessError(f"cannot be written: {error.strerror}", where=str(folder), hint=hint) from error
    properties = {**about.run_facts(report), **dict(sorted(report.started.environment.items()))}
    lines = [f"{name.replace(' ', '.')} = {_escaped(value)}\n" for name, value in properties.items()]
    document.save(folder / "environment.properties", "".join(lines))
    document.save(folder / "categories.json", json.dumps(list(_categories(report)), indent=2) + "\n")


def _pictures(run: Path, bundles: Iterable[str], logger: AllureFileLogger) -> Iterator[tuple[str, str]]:
    """Write the picture of each bundle that has one, and yield the bundle with the name of the written file."""
    for name in bundles:
        with contextlib.suppress(OSError), regular.open_file(run / name / bundle.PICTURE) as file:
            source = ATTACHMENT_PATTERN.format(prefix=md5(name), ext="svg")
            logger.report_attached_data(file.read(MAX_PICTURE_BYTES), source)
            yield name, source


def _result(case: ReportCase, report: Report, pictures: Mapping[str, str]) -> TestResult:
    implementation, key, title = report.started.implementation.name, case.name, case.name
    if case.result is not None:
        title = f"{key} {case.result.requirement.text}"
    result = TestResult(
        uuid=str(uuid4()),
        name=clean(title),
        status=STATUS[case.state],
        stage="finished",
        labels=[
            Label(LabelType.EPIC, case.group),
            Label(LabelType.PARENT_SUITE, clean(implementation)),
            Label(LabelType.SUITE, case.group),
            Label(LabelType.FRAMEWORK, "grove-conformance"),
        ],
        start=_milliseconds(report.started.wall if case.start is None else case.start),
        stop=_milliseconds(report.started.wall if case.end is None else case.end),
    )
    if case.message:
        result.statusDetails = StatusDetails(message=clean(case.message), trace=clean(_trace(case)))
    if case.result is not None:
        entry = case.result.requirement
        statement, contradiction = basis.summary(entry), basis.contradictions(entry)
        result.description = (
            clean(f"{statement}\n\nSays otherwise: {contradiction}" if contradiction else statement) or None
        )
        result.labels += [
            Label(LabelType.STORY, clean(title)),
            Label(LabelType.SEVERITY, SEVERITY[entry.level]),
            Label(LabelType.TAG, entry.level),
            Label(LabelType.TAG, case.result.outcome),
        ]
        result.links = [
            Link(type=LinkType.LINK, url=document.link, name=clean(f"{document.title}, {quote.place}"))
            for quote in (*entry.quotes, *entry.contradicts)
            if (document := basis.load_documents().get(quote.document))
        ]
        result.parameters = [
            Parameter(name=name, value=f"{seconds:.3f} s", excluded=True) for name, seconds in case.markers.items()
        ]
        result.steps = [
            _step(failure, case.state, pictures.get(failure.bundle))
            for failure in case.result.failures[: cases.MAX_FAILURES]
        ]
    result.fullName = f"{case.group}: {key}"
    result.historyId = result.testCaseId = md5(implementation, key)
    return result


def _step(failure: Failure, state: CaseState, picture: str | None) -> TestStepResult:
    trace = "\n".join(f"{label}: {words}" for label, words in facts.labeled_facts(failure, cases.MAX_LINES))
    message = facts.sentence(failure.what, failure.expected, failure.observed)
    return TestStepResult(
        name=clean(f"{failure.test}: {failure.what}"),
        status=STATUS[state],
        statusDetails=StatusDetails(message=clean(message), trace=clean(trace)),
        attachments=[Attachment(name=bundle.PICTURE, source=picture, type=PICTURE_TYPE)] if picture else [],
    )


def _trace(case: ReportCase) -> str:
    """Return the details of a case, after a line that the regular expressions of the categories match."""
    cause = f"cause {case.cause}" if case.cause else "no cause of failures"
    return f"{case.group}: {cause}\n{case.details}"


def _categories(report: Report) -> Iterator[dict[str, Any]]:
    """Yield a category for each cause, then a category for each profile with failures without a known cause. A result
    belongs to the first category that matches."""
    for number, cause in enumerate(causes.find_causes(report, defects.rows()), 1):
        statuses = [Status.FAILED, Status.BROKEN, Status.SKIPPED]
        yield {
            "name": clean(f"{number}. {cause.title}"),
            "matchedStatuses": statuses,
            "traceRegex": rf"[a-z-]+: cause {number}\n.*",
        }
    uncaused_cases = [case for case in cases.find_cases(report) if case.state in cases.RED_STATES and not case.cause]
    for group in dict.fromkeys(case.group for case in uncaused_cases):
        yield {
            "name": f"profile {group}",
            "matchedStatuses": [Status.FAILED, Status.BROKEN],
            "traceRegex": rf"{group}: .*",
        }


def _milliseconds(wall: float) -> int:
    return round(wall * 1000)


def _escaped(value: str) -> str:
    """Return a value for a Java properties file: ASCII, on one line. JSON uses the same escapes."""
    return json.dumps(clean(value))[1:-1]
