"""How the tests of this profile compare many objects with what is wanted of them."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.grove.expected import Owner
from conformance.grove.fields import controller, labels, text
from conformance.history.view import View
from conformance.testing.comparison import carried, of
from conformance.testing.scene import Recorded, Scene

PLURALS = {
    "PodCliqueSet": "podcliquesets",
    "PodCliqueScalingGroup": "podcliquescalinggroups",
    "PodClique": "podcliques",
}


def same_owners(run: Recorded[Scene], resource: str, owners: Mapping[str, Owner], view: View) -> None:
    """Each object (by name) has this controller, and no other of that name."""
    right, seen = {}, {}
    for name, (kind, owner) in owners.items():
        above, found = view.get(PLURALS[kind], owner), view.get(resource, name)
        right[name] = {"kind": kind, "name": owner, "uid": text(above, "metadata", "uid")}
        reference = controller(found)
        seen[name] = of(above, of(found, {key: reference.get(key) for key in ("kind", "name", "uid")}))
    run.same(f"controllers of {resource}", right, seen)


def same_labels(run: Recorded[Scene], resource: str, wanted: Mapping[str, Mapping[str, str]], view: View) -> None:
    """Each object carries its labels; others are allowed beside them."""
    have = {name: of(found := view.get(resource, name), labels(found)) for name in wanted}
    run.same(f"labels of {resource}", wanted, carried(wanted, have))
