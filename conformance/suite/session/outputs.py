"""What pytest's own reports say about a test: properties in JUnit, labels and attachments in Allure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from conformance import credentials
from conformance.evidence import bundle
from conformance.suite.environment import RunningTest
from conformance.suite.outcomes.checks import Blocked, CheckFailed
from conformance.suite.registry.requirement import Level, Limit, Requirement
from conformance.suite.session import markers

TELLING = (bundle.INDEX, bundle.PICTURE, "checks.yaml")
"""Files of a scene's bundle that each failing test has in Allure; the others are attached to the first of them."""
_SEVERITY = {Level.MUST: "critical", Level.SHOULD: "normal", Level.MAY: "minor", Level.COMPAT: "minor"}


def label(item: pytest.Item, entries: list[Requirement]) -> None:
    """Add properties for JUnit and labels for Allure."""
    if not entries:
        return
    item.user_properties += [("id", e.id) for e in entries]
    item.user_properties += [("level", level) for level in sorted({str(e.level) for e in entries})]
    item.user_properties += [("profile", profile) for profile in sorted({e.profile for e in entries})]
    severity = _SEVERITY[min((e.level for e in entries), key=list(_SEVERITY).index)]
    for kind, values in (
        ("epic", sorted({e.profile for e in entries})),
        ("story", [f"{e.id}: {e.text}" for e in entries]),
        ("severity", [severity]),
    ):
        item.add_marker(pytest.mark.allure_label(*values, label_type=kind))


def redact(error: BaseException | None) -> None:
    """Remove credentials from what an error says, before anybody asks it."""
    if isinstance(error, Exception):
        error.args = tuple(credentials.text(each) if isinstance(each, str) else each for each in error.args)
    if isinstance(error, Blocked):
        error.reason = credentials.text(error.reason)


def tell(report: pytest.TestReport, error: BaseException | None, limit: Limit | None) -> None:
    """Say what ended a test. What fails only for a limit of the specification is skipped, with the limit as reason."""
    if limit is not None and error is not None:
        report.outcome = "skipped"
        report.longrepr = (report.nodeid, 0, f"Skipped: known limit {limit}; seen: {error}")
    elif isinstance(error, CheckFailed):
        report.longrepr = str(error)
    elif isinstance(error, Blocked):
        if error.cause == "circumstances":
            report.outcome = "skipped"
            report.longrepr = (report.nodeid, 0, f"Skipped: {error.reason}")
        else:
            report.longrepr = f"blocked: {error.reason}"


def attach(running: RunningTest, *, whole: bool = True) -> None:
    """Attach the files of the failure bundle in Allure: all of them, or those that say what failed. Does nothing if no
    Allure results are written."""
    if running.bundle is None:
        return
    import allure

    attach: Callable[..., None] = allure.attach.file
    kinds = {
        ".txt": allure.attachment_type.TEXT,
        ".log": allure.attachment_type.TEXT,
        ".md": allure.attachment_type.TEXT,
        ".svg": allure.attachment_type.SVG,
    }
    for path in sorted(p for p in running.bundle.rglob("*") if p.is_file() and (whole or p.name in TELLING)):
        kind = kinds.get(path.suffix, allure.attachment_type.YAML if path.suffix == ".yaml" else None)
        attach(str(path), name=str(path.relative_to(running.bundle)), attachment_type=kind, extension=path.suffix[1:])


def attach_markers(phases: Mapping[str, Mapping[str, float]]) -> None:
    """Attach the timing markers of the scene in Allure. Does nothing if it has none."""
    if phases:
        import allure

        allure.attach(
            "\n".join(markers.lines(phases)), name="timing markers", attachment_type=allure.attachment_type.TEXT
        )
