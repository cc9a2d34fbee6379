"""Tests that the lint of public documents finds wrong states and commits, and MUSTs that no document supports."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.suite.registry import basis, requirement
from conformance.suite.registry.basis import Basis, BasisKind, DocumentState, PublicDocument, Quotation
from conformance.suite.registry.requirement import Level, Registry
from tests.citations import lint, states

PULL = "https://github.com/o/r/pull/"
FILE = "https://github.com/o/r/blob/aaaaaaaa0123/README.md"
LISTED: states.Listed = {
    "threads": {
        "o/r#1": {"state": "reverted", "commit": "bbbbbbbb", "revertedBy": "cccccccc"},
        "o/r#2": {"state": "merged", "commit": "unknown"},
        "o/r#3": {"state": "closed", "commit": "dddddddd"},
    },
    "commits": {
        "aaaaaaaa": {"date": "2026-08-19", "branch": "main"},
        "bbbbbbbb": {"date": "2026-05-25"},
        "dddddddd": {"date": "2026-05-26"},
    },
}


def document(link: str, state: str = "merged", **fields: str) -> PublicDocument:
    return PublicDocument(
        **{"id": "d", "title": "A text", "kind": "guide", "date": "2026-11", **fields},
        link=link,
        state=DocumentState(state),
    )


REVERTED = document(f"{PULL}1", "reverted", commit="bbbbbbbb", date="2026-05-25", reverted_by="cccccccc")
RIGHT = (
    REVERTED,
    document(f"{PULL}2"),
    document(f"{PULL}3", "closed", commit="dddddddd", date="2026-05-26"),
    document(FILE, commit="aaaaaaaa", date="2026-08-19"),
    document("https://example.com/page", "published"),
    document("https://example.com/author", "unpublished"),
)


@pytest.mark.parametrize("right", RIGHT)
def test_what_upstream_confirms_is_not_a_problem(right: PublicDocument) -> None:
    assert list(states.documents([right], LISTED)) == []


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (document(FILE), "d: has commit none, and its link aaaaaaaa0123"),
        (document("https://example.com/page"), "d: is merged without a commit"),
        (document("https://example.com/page", "open"), "d: is open, and names no thread"),
        (replace(REVERTED, state=DocumentState.OPEN), "d: is open, and o/r#1 is reverted"),
        (replace(REVERTED, state=DocumentState.MERGED, reverted_by=""), "d: is merged, and o/r#1 is reverted"),
        (replace(REVERTED, reverted_by=""), "d: is reverted by nothing, and o/r#1 by cccccccc"),
        (replace(REVERTED, commit="dddddddd", date="2026-05-26"), "d: has commit dddddddd, and o/r#1 has bbbbbbbb"),
        (replace(REVERTED, date="2026-05-27"), "d: has the date 2026-05-27, and commit bbbbbbbb 2026-05-25"),
        (document(f"{PULL}2", commit="aaaaaaaa", date="2026-08-19"), "d: has commit aaaaaaaa, and o/r#2 has unknown"),
        (document(f"{PULL}9", "open"), "d: o/r#9 is not listed"),
        (
            document(FILE, "open", commit="aaaaaaaa", date="2026-08-19", thread="o/r#3"),
            "d: is open, and o/r#3 is closed",
        ),
        (document("https://example.com/x", commit="eeeeeeee"), "d: commit eeeeeeee is not listed"),
        (
            document("https://example.com/x", commit="bbbbbbbb", date="2026-05-25"),
            "d: is merged, and commit bbbbbbbb is on no branch of upstream",
        ),
    ],
)
def test_a_state_or_commit_that_upstream_does_not_confirm_is_a_problem(wrong: PublicDocument, problem: str) -> None:
    assert problem in list(states.documents([wrong], LISTED))


def carried_by(document: PublicDocument, seed: str = "") -> list[str]:
    must = next(entry for entry in requirement.load().requirements.values() if entry.level is Level.MUST)
    quoted = Basis(BasisKind.DOCUMENT, (Quotation("d", "Summary", "It says so."),))
    registry = Registry({}, {"AA-001": replace(must, id="AA-001", basis=quoted, seed=seed)}, {})
    return [str(problem) for problem in lint.authority(registry, {"d": document}) if "AA-001" in str(problem)]


@pytest.mark.parametrize("state", ["closed", "reverted", "unpublished"])
def test_what_upstream_has_taken_back_or_not_published_carries_no_must(state: str) -> None:
    (problem,) = carried_by(document(FILE, state), seed="pull request 1")
    assert "no accepted document carries this MUST (hint: quote one, or make it a SHOULD)" in problem


def test_an_open_proposal_carries_a_must_as_a_seed_only() -> None:
    assert carried_by(document(FILE, "open"))
    assert not carried_by(document(FILE, "open"), seed="GREP-1")
    assert not carried_by(document(FILE, "merged"))
    assert carried_by(document(FILE, "merged", kind="discussion"))


def test_facts_of_upstream() -> None:
    """Documents that once had a wrong state have the state that their repository's history shows."""
    documents = basis.load_documents()
    pull = documents["pull-566"]
    assert (pull.state, pull.commit, pull.reverted_by) == (DocumentState.REVERTED, "94a0105c", "21c24c67")
    assert (documents["grep-393-640"].state, documents["grep-393-640"].commit) == (DocumentState.MERGED, "205c8795")
    assert {documents[id].state for id in ("issue-777", "issue-815", "grep-401")} == {DocumentState.CLOSED}
    assert (documents["grep-393-831"].state, documents["grep-393-831"].commit) == (DocumentState.OPEN, "")
    assert documents["rolling-update-design"].state is DocumentState.UNPUBLISHED
