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


def owned(owners: Mapping[str, Owner], found: Mapping[str, Document | None], view: View) -> Comparison:
    """Compare the owners of objects with those that they must have: present objects, whether controllers or not."""
    right: dict[str, object] = {}
    seen: dict[str, object] = {}
    for name, (kind, owner) in owners.items():
        above = view.get(PLURALS[kind], owner)
        right[name] = f"{kind}/{owner}"
        references = items(found[name], "metadata", "ownerReferences")
        own = [r for r in references if text(r, "uid") == text(above, "metadata", "uid")]
        shown = [f"{text(r, 'kind')}/{text(r, 'name')}" for r in own or references]
        seen[name] = of(above, of(found[name], ", ".join(shown)))
    return right, seen
