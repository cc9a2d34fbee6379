"""Verify a report: its digests, its counts, its texts, the other files of the run, and its verdict, which is recomputed
from the ledger.

None of this proves the origin of a report, because whoever edits it can recompute the digests. However, an edited
verdict contradicts the outcomes, edited outcomes contradict the failures, and all edits contradict the ledger
(docs/trust.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from conformance.errors import Exit
from conformance.report import document, evidence, model
from conformance.report.document import Document
from conformance.report.model import BLOCKED_SEPARATOR, EXIT_CODES, Outcome, RunVerdict
from conformance.report.reading import LEDGER, NAME
from conformance.suite.outcomes import ledger_file
from conformance.suite.registry.requirement import Level, Registry

_FAILED = frozenset({Outcome.FAILED, Outcome.EXPECTED_FAILURE, Outcome.KNOWN_LIMIT})
_SUCCESSFUL = (RunVerdict.CONFORMANT, RunVerdict.EXCEPT_EXPECTED)
_PERMITTED_OUTCOMES = {
    RunVerdict.CONFORMANT: frozenset({Outcome.PASSED, Outcome.KNOWN_LIMIT}),
    RunVerdict.EXCEPT_EXPECTED: frozenset({Outcome.PASSED, Outcome.KNOWN_LIMIT, Outcome.EXPECTED_FAILURE}),
}
"""The permitted outcomes of the claimed MUST requirements of a profile with this verdict."""


@dataclass(frozen=True)
class Verification:
    """The result of a verification. `problems`: what is wrong. `checked`: what was checked. `unchecked`: what could not
    be checked, and why."""

    problems: tuple[str, ...]
    checked: tuple[str, ...]
    unchecked: tuple[str, ...]


def verify(content: Document, folder: Path, registry: Registry, suite: str, name: str = NAME) -> Verification:
    """Verify a report whose file `name` is in `folder`. `suite`: the digest of this suite, whose requirements are in
    `registry`.

    Raises UsageError if the ledger or the list of files cannot be read.
    """
    problems = [*_digests(content), *_outcome_problems(content), *_verdicts(content)]
    checked, unchecked = ["digest of the verdict", "outcomes, counts and verdict"], []
    if "runDigest" in content:
        checked.append("digest of the part `run`")
    else:
        unchecked.append("the part `run`: an earlier version of the suite wrote the report")
    report_suite = content["verdict"]["suite"]
    same_suite = report_suite["digest"] == suite
    if same_suite:
        problems += _texts(content, registry)
        checked.append("requirements of this suite")
    else:
        unchecked.append(
            f"requirements: they are those of another suite ({report_suite['version']}, {report_suite['digest'][:19]}…)"
        )
    files = evidence.compare(folder, content["run"].get("evidence", ""), name)
    problems += files.problems
    unchecked += files.unchecked
    if files.compared:
        checked.append(f"{files.compared} files of {evidence.FILE}")
    has_links = any(special.partition("/")[0] == LEDGER for special in files.special)
    if same_suite and (folder / LEDGER).is_dir() and not has_links:
        problems += _ledger(content, folder / LEDGER, registry)
        checked.append("verdict of the ledger")
    else:
        reason = (
            "it has links"
            if has_links
            else "it does not lie beside the report"
            if same_suite
            else "another suite wrote it"
        )
        unchecked.append(f"ledger: {reason}")
    return Verification(tuple(problems), tuple(checked), tuple(unchecked))


def _digests(content: Document) -> Iterator[str]:
    if content["digest"] != document.digest(content["verdict"]):
        yield "the part `verdict` does not have the digest of the report"
    if "runDigest" in content and content["runDigest"] != document.digest(content["run"]):
        yield "the part `run` does not have the digest of the report"


def _outcome_problems(content: Document) -> Iterator[str]:
    """Yield contradictions between the outcomes of the requirements and their checks, failures and counts."""
    verdict = content["verdict"]
    entries: Sequence[Mapping[str, Any]] = verdict["requirements"]
    for id, number in Counter(entry["id"] for entry in entries).items():
        if number > 1:
            yield f"{id} occurs {number} times"
    for entry in entries:
        outcome = Outcome(entry["outcome"])
        held_up = outcome is Outcome.EXPECTED_FAILURE and BLOCKED_SEPARATOR in entry.get("reason", "")
        if outcome in _FAILED and not entry.get("failures") and not held_up:
            yield f"{entry['id']} is {outcome} without a failed check"
        if outcome is Outcome.PASSED and (entry.get("failures") or not entry["checks"]):
            yield f"{entry['id']} is passed " + ("with a failed check" if entry.get("failures") else "without a check")
    yield from _counts("", verdict["counts"], entries)
    for profile in verdict["profiles"]:
        profile_entries = [entry for entry in entries if entry["profile"] == profile["name"]]
        yield from _counts(f"profile {profile['name']}: ", profile["counts"], profile_entries)


def _counts(prefix: str, counts: Mapping[str, int], entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    tally = Counter(entry["outcome"] for entry in entries)
    for outcome in Outcome:
        if counts.get(outcome, 0) != tally[outcome]:
            yield f"{prefix}{counts.get(outcome, 0)} are counted as {outcome}, and {tally[outcome]} are"


def _decides(entry: Mapping[str, Any]) -> bool:
    """Return whether the failure of a requirement decides the verdict."""
    return entry["level"] == Level.MUST and not entry.get("seed")


def _is_decisive_failure(entry: Mapping[str, Any]) -> bool:
    return _decides(entry) and Outcome(entry["outcome"]) is Outcome.FAILED


def _verdicts(content: Document) -> Iterator[str]:
    """Yield verdicts that contradict the outcomes."""
    verdict = content["verdict"]
    words = []
    for profile in verdict["profiles"]:
        word = RunVerdict(profile["verdict"])
        words.append(word)
        must_outcomes = {
            Outcome(entry["outcome"])
            for entry in verdict["requirements"]
            if entry["profile"] == profile["name"] and _decides(entry)
        } - {Outcome.NOT_CLAIMED}
        if Outcome.FAILED in must_outcomes and word is not RunVerdict.NOT_CONFORMANT:
            yield f"profile {profile['name']} is {word} although a MUST failed"
        if word in _PERMITTED_OUTCOMES and not must_outcomes <= _PERMITTED_OUTCOMES[word]:
            unmet = ", ".join(sorted(must_outcomes - _PERMITTED_OUTCOMES[word]))
            yield f"profile {profile['name']} is {word} although a MUST is {unmet}"
    result = RunVerdict(verdict["result"])
    profile_names = {profile["name"] for profile in verdict["profiles"]}
    if any(_is_decisive_failure(entry) for entry in verdict["requirements"] if entry["profile"] not in profile_names):
        words.append(RunVerdict.NOT_CONFORMANT)
    is_contradictory = (result is RunVerdict.NOT_CONFORMANT) != (RunVerdict.NOT_CONFORMANT in words)
    if is_contradictory or (result in _SUCCESSFUL and not set(words) <= {*_SUCCESSFUL, RunVerdict.UNKNOWN}):
        yield f"the verdict is {result}, and those of the profiles are {', '.join(sorted(set(words)))}"
    if result in _SUCCESSFUL and not verdict["complete"]:
        yield f"the verdict is {result}, and the run was interrupted"
    alternative_codes = {RunVerdict.PARTIAL: Exit.CONFORMANT, RunVerdict.UNKNOWN: Exit.PARTIAL}
    if verdict["exitCode"] not in {EXIT_CODES[result], alternative_codes.get(result)}:
        yield f"the verdict is {result}, and the exit code {verdict['exitCode']}"


def _texts(content: Document, registry: Registry) -> Iterator[str]:
    for entry in content["verdict"]["requirements"]:
        requirement = registry.requirements.get(entry["id"])
        if requirement is None:
            yield f"{entry['id']} is no requirement of this suite"
        elif (entry["level"], entry["profile"], entry["text"]) != (
            str(requirement.level),
            requirement.profile,
            requirement.text,
        ):
            yield f"{entry['id']} has another text, level or profile in this suite"


def _ledger(content: Document, folder: Path, registry: Registry) -> Iterator[str]:
    events = list(ledger_file.read(folder))
    try:
        report = model.judge(registry, events, datetime.fromtimestamp(events[-1].wall, UTC).date())
    except (IndexError, ValueError):
        yield "the ledger does not have the beginning of the run"
        return
    computed, reported = document.document(report)["verdict"], content["verdict"]
    if computed == reported:
        return
    outcomes = {entry["id"]: entry["outcome"] for entry in reported["requirements"]}
    differing = [
        f"{e['id']} ({e['outcome']})" for e in computed["requirements"] if outcomes.get(e["id"]) != e["outcome"]
    ]
    parts = [name for name in sorted(reported.keys() | computed.keys()) if reported.get(name) != computed.get(name)]
    remainder = f" and {len(differing) - 5} more" if len(differing) > 5 else ""
    yield (
        f"the ledger gives {computed['result']}, and another part "
        + ", ".join(f"`{name}`" for name in parts)
        + (f": {', '.join(differing[:5])}{remainder}" if differing else "")
    )
