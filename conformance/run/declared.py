"""Checks of a descriptor against the registry: the features that the descriptor claims and the failures that it
expects."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.documents import Document, suggestion
from conformance.errors import UsageError
from conformance.implementation.descriptor import Descriptor
from conformance.implementation.fields import ExpectedFailure
from conformance.suite.registry.requirement import Registry


def check(judged: Descriptor, registry: Registry) -> None:
    """Raise UsageError if the descriptor names a requirement or feature that does not exist."""
    declared_ids = {entry["id"] for entry in judged.document.value.get("expectedFailures", ())}
    check_expected_failures(
        judged.document, [entry for entry in judged.expected_failures if entry.id in declared_ids], registry
    )
    for feature in sorted(judged.features - registry.features):
        raise UsageError(
            f"unknown feature {feature!r}",
            where=judged.document.location("features", list(judged.document.value["features"]).index(feature)),
            hint=suggestion(feature, registry.features),
        )


def check_expected_failures(document: Document, entries: Iterable[ExpectedFailure], registry: Registry) -> None:
    """Raise UsageError if an entry names a requirement that does not exist. `document` is the file with the expected
    failures."""
    numbers = {entry["id"]: number for number, entry in enumerate(document.value.get("expectedFailures", ()))}
    for entry in entries:
        if entry.id not in registry.requirements:
            raise UsageError(
                f"unknown requirement {entry.id!r}",
                where=document.location("expectedFailures", numbers[entry.id], "id"),
                hint=suggestion(entry.id, registry.requirements),
            )
