"""Functions that find the objects of a set and compare them with the expected objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from conformance.grove.expected import Owner
from conformance.grove.fields import Document, at, controller, label, labels, text
from conformance.grove.labels import COMPONENT, MANAGED_BY, PART_OF
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.testing import owners as owner_references
from conformance.testing.comparison import value_or_absent, values_of_expected_keys
from conformance.testing.owners import PLURALS
from conformance.testing.scene import Recorded, Scene

AUTOSCALERS = "horizontalpodautoscalers"
COMMON_LABELS = (MANAGED_BY, PART_OF, COMPONENT)
"""The app.kubernetes.io labels that every object has."""
ObjectsByName = Mapping[str, Document | None]
"""Expected name → object, or None if no such object exists."""


def objects_by_name(view: View, resource: str, names: Iterable[str]) -> ObjectsByName:
    """Return the objects with these names."""
    return {name: view.get(resource, name) for name in names}


def objects_of_set(view: View, resource: str, set_name: str) -> ObjectsByName:
    """Return the objects that are part of a set according to their label or their controller, whatever their names. If
    there are none, return a single entry whose key says so."""
    objects = [
        item
        for item in view.list(resource)
        if label(item, PART_OF) == set_name
        or (text(controller(item), "kind"), text(controller(item), "name")) == ("PodCliqueSet", set_name)
    ]
    return {text(item, "metadata", "name"): item for item in objects} or {f"{resource} of {set_name}": None}


def existing_objects_of_set(view: View, resource: str, set_name: str) -> ObjectsByName:
    """Return the objects that are part of a set, if any. Another requirement judges whether they exist."""
    return {key: item for key, item in objects_of_set(view, resource, set_name).items() if item is not None}


def autoscalers_by_target(view: View) -> dict[str, Document]:
    """Return the autoscalers, keyed by KIND/NAME of their targets."""
    return {target: scaler for scaler in view.list(AUTOSCALERS) for target in targets([scaler])}


def targets(scalers: Iterable[Document]) -> list[str]:
    """Return the targets of autoscalers as KIND/NAME, sorted."""
    references = [at(scaler, "spec", "scaleTargetRef") for scaler in scalers]
    return sorted(f"{text(reference, 'kind')}/{text(reference, 'name')}" for reference in references)


@predicate
def have_autoscalers(view: View, names: Iterable[str]) -> bool | Unmet:
    """Each of these targets has an autoscaler."""
    missing = sorted(set(names) - set(autoscalers_by_target(view)))
    return not missing or Unmet(f"no autoscaler targets {', '.join(missing)}")


@predicate
def have_no_autoscalers(view: View, unwanted: Iterable[str]) -> bool | Unmet:
    """No autoscaler has one of these targets."""
    targeted = sorted(set(unwanted) & set(autoscalers_by_target(view)))
    return not targeted or Unmet(f"autoscalers still target {', '.join(targeted)}")


def expect_controllers(
    run: Recorded[Scene], subject: str, owners: Mapping[str, Owner], objects: ObjectsByName, view: View
) -> None:
    """Expect that each object's controller is the current object of that kind and name."""
    expected, actual = {}, {}
    for name, (kind, owner) in owners.items():
        owner_object = view.get(PLURALS[kind], owner)
        expected[name] = {"kind": kind, "name": owner, "uid": text(owner_object, "metadata", "uid")}
        reference = controller(objects[name])
        actual[name] = value_or_absent(
            owner_object, value_or_absent(objects[name], {key: reference.get(key) for key in ("kind", "name", "uid")})
        )
    run.same(f"controllers of {subject}", expected, actual)


def expect_owners(
    run: Recorded[Scene], subject: str, owners: Mapping[str, Owner], objects: ObjectsByName, view: View
) -> None:
    """Expect that each object has this owner. The owner need not be the controller."""
    run.same(f"owners of {subject}", *owner_references.owner_comparison(owners, objects, view))


def expect_labels(
    run: Recorded[Scene], subject: str, tags: Mapping[str, Mapping[str, str]], objects: ObjectsByName
) -> None:
    """Expect that each object has these labels. Additional labels are allowed."""
    actual = {name: value_or_absent(objects[name], labels(objects[name])) for name in tags}
    run.same(f"labels of {subject}", tags, values_of_expected_keys(tags, actual))


def common_labels(tags: Mapping[str, str]) -> dict[str, str]:
    """Return the subset of these labels that every object must have."""
    return {key: value for key, value in tags.items() if key in COMMON_LABELS}
