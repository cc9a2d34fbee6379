"""What a descriptor declares, compared with the registry: the features that it claims, the failures that it expects."""

from __future__ import annotations

from conformance.documents import suggestion
from conformance.errors import UsageError
from conformance.implementation.descriptor import Descriptor
from conformance.suite.registry.requirement import Registry


def check(judged: Descriptor, registry: Registry) -> None:
    """Raise UsageError for a requirement or a feature that does not exist."""
    for number, entry in enumerate(judged.expected_failures):
        if entry.id not in registry.requirements:
            raise UsageError(
                f"unknown requirement {entry.id!r}",
                where=judged.document.where("expectedFailures", number, "id"),
                hint=suggestion(entry.id, registry.requirements),
            )
    for feature in sorted(judged.features - registry.features):
        raise UsageError(
            f"unknown feature {feature!r}",
            where=judged.document.where("features", list(judged.document.value["features"]).index(feature)),
            hint=suggestion(feature, registry.features),
        )
