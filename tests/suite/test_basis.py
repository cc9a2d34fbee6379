"""Tests of the basis of requirements: each MUST rests on a public document, and each document is quoted."""

from __future__ import annotations

from conformance.suite.registry import basis, requirement
from conformance.suite.registry.basis import BINDING_KINDS, BasisKind
from conformance.suite.registry.requirement import Level

ENTRIES = list(requirement.load().requirements.values())


def test_a_must_has_a_basis_that_binds() -> None:
    assert [e.id for e in ENTRIES if e.level is Level.MUST and e.basis not in BINDING_KINDS] == []


def test_requirements_that_rest_only_on_code_are_compat() -> None:
    assert [e.id for e in ENTRIES if (e.basis is BasisKind.CODE) != (e.level is Level.COMPAT)] == []


def test_requirements_without_a_document_have_a_reason() -> None:
    assert [e.id for e in ENTRIES if e.basis not in BINDING_KINDS and not e.reason] == []


def test_each_document_is_quoted_and_each_quotation_names_one() -> None:
    quoted = {quotation.document for entry in ENTRIES for quotation in (*entry.quotes, *entry.contradicts)}
    assert quoted == set(basis.load_documents())
