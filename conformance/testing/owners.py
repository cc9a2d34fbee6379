"""Owner references of objects, as expected and as observed."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.grove.expected import Owner
from conformance.grove.fields import Document, items, text
from conformance.history.view import View
from conformance.testing.comparison import Comparison, of

PLURALS = {
    "PodCliqueSet": "podcliquesets",
    "PodCliqueScalingGroup": "podcliquescalinggroups",
    "PodClique": "podcliques",
}


def owned(owners: Mapping[str, Owner], objects: Mapping[str, Document | None], view: View) -> Comparison:
    """Compare the owners of objects with those that they must have: present objects, whether controllers or not."""
    expected: dict[str, object] = {}
    observed: dict[str, object] = {}
    for name, (kind, owner) in owners.items():
        above = view.get(PLURALS[kind], owner)
        expected[name] = f"{kind}/{owner}"
        references = items(objects[name], "metadata", "ownerReferences")
        right = [reference for reference in references if text(reference, "uid") == text(above, "metadata", "uid")]
        names = [f"{text(reference, 'kind')}/{text(reference, 'name')}" for reference in right or references]
        observed[name] = of(above, of(objects[name], ", ".join(names)))
    return expected, observed
