"""Expected and observed owner references of objects."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.grove.expected import Owner
from conformance.grove.fields import Document, items, text
from conformance.history.view import View
from conformance.testing.comparison import Comparison, value_or_absent

PLURALS = {
    "PodCliqueSet": "podcliquesets",
    "PodCliqueScalingGroup": "podcliquescalinggroups",
    "PodClique": "podcliques",
}


def owner_comparison(owners: Mapping[str, Owner], objects: Mapping[str, Document | None], view: View) -> Comparison:
    """Return the expected and observed owner of each object. An owner reference counts if it names the UID of the
    existing owner, whether or not it marks the owner as the controller."""
    expected: dict[str, object] = {}
    observed: dict[str, object] = {}
    for name, (kind, owner) in owners.items():
        owner_object = view.get(PLURALS[kind], owner)
        expected[name] = f"{kind}/{owner}"
        references = items(objects[name], "metadata", "ownerReferences")
        matching = [
            reference for reference in references if text(reference, "uid") == text(owner_object, "metadata", "uid")
        ]
        names = [f"{text(reference, 'kind')}/{text(reference, 'name')}" for reference in matching or references]
        observed[name] = value_or_absent(owner_object, value_or_absent(objects[name], ", ".join(names)))
    return expected, observed
