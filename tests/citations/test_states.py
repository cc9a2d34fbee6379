"""Tests that the lint reports wrong states and commits of public documents, and MUSTs that no document supports."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from conformance.suite.registry import basis
from conformance.suite.registry.basis import DocumentState, PublicDocument, Quotation
from conformance.suite.registry.requirement import Registry
from tests.citations import lint, states
from tests.requirements import entry

PULL_REQUEST_LINK = "https://github.com/o/r/pull/"
FILE_LINK = "https://github.com/o/r/blob/aaaaaaaa0123/README.md"
KNOWN_STATES: states.KnownStates = {
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


REVERTED_DOCUMENT = document(
    f"{PULL_REQUEST_LINK}1", "reverted", commit="bbbbbbbb", date="2026-05-25", reverted_by="cccccccc"
)
CORRECT_DOCUMENTS = (
    REVERTED_DOCUMENT,
    document(f"{PULL_REQUEST_LINK}2"),
    document(f"{PULL_REQUEST_LINK}3", "closed", commit="dddddddd", date="2026-05-26"),
    document(FILE_LINK, commit="aaaaaaaa", date="2026-08-19"),
    document("https://example.com/page", "published"),
    document("https://example.com/author", "unpublished"),
)


@pytest.mark.parametrize("correct_document", CORRECT_DOCUMENTS)
def test_claims_that_upstream_confirms_are_not_problems(correct_document: PublicDocument) -> None:
    assert list(states.document_problems([correct_document], KNOWN_STATES)) == []


@pytest.mark.parametrize(
    ("wrong_document", "problem"),
    [
        (document(FILE_LINK), "d: has commit none, and its link aaaaaaaa0123"),
        (document("https://example.com/page"), "d: is merged without a commit"),
        (document("https://example.com/page", "open"), "d: is open, and names no thread"),
        (replace(REVERTED_DOCUMENT, state=DocumentState.OPEN), "d: is open, and o/r#1 is reverted"),
        (replace(REVERTED_DOCUMENT, state=DocumentState.MERGED, reverted_by=""), "d: is merged, and o/r#1 is reverted"),
        (replace(REVERTED_DOCUMENT, reverted_by=""), "d: is reverted by nothing, and o/r#1 by cccccccc"),
        (
            replace(REVERTED_DOCUMENT, commit="dddddddd", date="2026-05-26"),
            "d: has commit dddddddd, and o/r#1 has bbbbbbbb",
        ),
        (replace(REVERTED_DOCUMENT, date="2026-05-27"), "d: has the date 2026-05-27, and commit bbbbbbbb 2026-05-25"),
        (
            document(f"{PULL_REQUEST_LINK}2", commit="aaaaaaaa", date="2026-08-19"),
            "d: has commit aaaaaaaa, and o/r#2 has unknown",
        ),
        (document(f"{PULL_REQUEST_LINK}9", "open"), "d: o/r#9 is not listed"),
        (
            document(FILE_LINK, "open", commit="aaaaaaaa", date="2026-08-19", thread="o/r#3"),
            "d: is open, and o/r#3 is closed",
        ),
        (document("https://example.com/x", commit="eeeeeeee"), "d: commit eeeeeeee is not listed"),
        (
            document("https://example.com/x", commit="bbbbbbbb", date="2026-05-25"),
            "d: is merged, and commit bbbbbbbb is on no branch of upstream",
        ),
    ],
)
def test_a_state_or_commit_that_upstream_does_not_confirm_is_a_problem(
    wrong_document: PublicDocument, problem: str
) -> None:
    assert problem in list(states.document_problems([wrong_document], KNOWN_STATES))


def support_problems(document: PublicDocument, seed: str = "") -> list[str]:
    must_requirement = entry(quotes=(Quotation("d", "Summary", "It says so."),), seed=seed)
    registry = Registry({}, {"AA-001": must_requirement}, {})
    return [str(problem) for problem in lint.document_problems(registry, {"d": document}) if "AA-001" in str(problem)]


@pytest.mark.parametrize("state", ["closed", "reverted", "unpublished"])
def test_withdrawn_and_unpublished_documents_support_no_must(state: str) -> None:
    (problem,) = support_problems(document(FILE_LINK, state), seed="pull request 1")
    assert "no accepted document carries this MUST (hint: quote one, or make it a SHOULD)" in problem


def test_an_open_proposal_supports_a_must_only_as_a_seed() -> None:
    assert support_problems(document(FILE_LINK, "open"))
    assert not support_problems(document(FILE_LINK, "open"), seed="GREP-1")
    assert not support_problems(document(FILE_LINK, "merged"))
    assert support_problems(document(FILE_LINK, "merged", kind="discussion"))


def test_documents_have_the_state_of_upstream() -> None:
    """Documents that had a wrong state in the past have the state that the history of their repository shows."""
    documents = basis.load_documents()
    pull = documents["pull-566"]
    assert (pull.state, pull.commit, pull.reverted_by) == (DocumentState.REVERTED, "94a0105c", "21c24c67")
    assert (documents["grep-393-640"].state, documents["grep-393-640"].commit) == (DocumentState.MERGED, "205c8795")
    assert {documents[id].state for id in ("issue-777", "issue-815", "grep-401")} == {DocumentState.CLOSED}
    assert (documents["grep-393-831"].state, documents["grep-393-831"].commit) == (DocumentState.OPEN, "")
    assert documents["rolling-update-design"].state is DocumentState.UNPUBLISHED
