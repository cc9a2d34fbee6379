"""The result of a run as annotations of GitHub checks: workflow commands for a step to print. Pure.

GitHub shows ten annotations of a step: first errors of the suite, then one for each cause, sorted by weight, then the
requirements that require a change to the list of expected failures.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance.evidence.values import one_line
from conformance.report import facts
from conformance.report.document import Document
from conformance.report.model import Outcome
from conformance.suite.registry.requirement import Level

MAX_ANNOTATIONS = 10
MAX_IDS = 4


def commands(content: Document) -> list[str]:
    """Return the workflow commands for a report."""
    return [*_commands(content)][:MAX_ANNOTATIONS]


def _commands(content: Document) -> Iterator[str]:
    verdict, entries = content["verdict"], {entry["id"]: entry for entry in content["verdict"]["requirements"]}
    if not verdict["complete"]:
        yield _command("error", "no verdict", "the run was interrupted: the report is incomplete")
    for fault in verdict["harnessErrors"]:
        yield _command("error", "no verdict", fault)
    for cause in content["run"].get("causes", ()):
        failed = [entries[id] for id in cause["failed"] if id in entries]
        is_decisive = any(entry["level"] == Level.MUST and not entry.get("seed") for entry in failed)
        yield _command("error" if is_decisive else "warning", _ids(cause["failed"]), _message(cause["title"], failed))
    stale_entries = [entry for entry in entries.values() if entry["outcome"] == Outcome.STALE_EXPECTATION]
    for entry in stale_entries:
        if not entry.get("failures"):
            yield _command("error", entry["id"], entry["reason"])
    blocked_ids = [id for id, entry in entries.items() if entry["outcome"] == Outcome.BLOCKED]
    if blocked_ids:
        yield _command(
            "warning", f"{len(blocked_ids)} blocked", f"{_ids(blocked_ids)}: {entries[blocked_ids[0]]['reason']}"
        )


def _message(title: str, failed: list[Any]) -> str:
    """Return the title of a cause and its first failure."""
    failure = next((failure for entry in failed for failure in entry.get("failures", ())), None)
    if failure is None:
        return title
    sentence = facts.sentence(one_line(failure["what"]), failure["expected"], failure["seen"])
    return f"{title}\nin {failure['test']}: {sentence}"


def _ids(ids: list[str]) -> str:
    remaining = len(ids) - MAX_IDS
    return ", ".join(ids[:MAX_IDS]) + (f" and {remaining} more" if remaining > 0 else "")


def _command(kind: str, title: str, text: str) -> str:
    escaped = _escaped(title).replace(":", "%3A").replace(",", "%2C")
    return f"::{kind} title={escaped}::{_escaped(text)}"


def _escaped(text: str) -> str:
    """Escape characters that would end the command and start another one: some of the text comes from an
    implementation."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
