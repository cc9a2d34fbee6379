"""What requirements rest on: no MUST without a public document, no document that nobody quotes."""

from __future__ import annotations

import pytest

from conformance.suite.registry import basis, requirement
from conformance.suite.registry.basis import BINDING, Kind
from conformance.suite.registry.requirement import Level, Requirement

ENTRIES = list(requirement.load().requirements.values())
NO_AUTHORITY = ("code", "discussion")
"""Kinds of documents that bind nobody."""
JUDGED = {"grep-531", "grep-531-1e5b", "grep-531-flat", "grep-393-640", "pull-566", "rolling-update-design"}
"""Proposals that are judged although upstream has not merged them. Of other open ones, none carries a MUST."""


def title(entry: Requirement) -> str:
    return entry.id


@pytest.mark.parametrize("entry", [each for each in ENTRIES if each.level is Level.MUST], ids=title)
def test_a_must_rests_on_a_public_document(entry: Requirement) -> None:
    quoted = [basis.known()[each.document] for each in entry.basis.quotations if each.words]
    accepted = [each for each in quoted if each.state == "merged" or each.id in JUDGED]
    assert entry.basis.kind in BINDING
    assert [each for each in accepted if each.kind not in NO_AUTHORITY], f"{entry.id} quotes nothing that binds"


def test_what_only_code_does_is_a_matter_of_compatibility() -> None:
    assert [e.id for e in ENTRIES if (e.basis.kind is Kind.CODE) != (e.level is Level.COMPAT)] == []


def test_what_no_document_says_has_a_reason() -> None:
    assert [e.id for e in ENTRIES if e.basis.kind not in BINDING and not e.basis.reason] == []


def test_each_document_is_quoted_and_each_quotation_names_one() -> None:
    quoted = {
        quotation.document for entry in ENTRIES for quotation in (*entry.basis.quotations, *entry.basis.contradictions)
    }
    assert quoted == set(basis.known())
