"""The difference between the desired and the existing objects of a gang: the objects to create, change and delete, in
order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from reference_impl.api import workload_api as api
from reference_impl.api.models import PODGANGS, PodGang
from reference_impl.api.workload_api import WorkloadObject
from reference_impl.plan import ownership
from reference_impl.plan.children import Manifest
from reference_impl.plan.workload_api.tree import MappingError

Observed = Mapping[tuple[str, str], WorkloadObject]
"""Objects in the gang's namespace, by kind and name."""


class Verb(StrEnum):
    """The verb of a change. `REPLACE` deletes and recreates an object, because the API does not permit changing the
    field that differs."""

    CREATE = "create"
    PATCH = "patch"
    REPLACE = "replace"
    DELETE = "delete"


@dataclass(frozen=True)
class Change:
    """One write. `body` is the manifest or the merge patch."""

    verb: Verb
    kind: str
    name: str
    body: Manifest = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class GangDifference:
    """The changes that bring a gang's objects to their desired state."""

    changes: tuple[Change, ...] = ()
    waits_for: tuple[str, ...] = ()
    """Objects of an earlier gang of the same name that have not been garbage collected yet, and objects that are being
    deleted."""

    @property
    def in_place(self) -> bool:
        """Whether all desired objects exist in their desired state. Surplus objects do not matter."""
        return not self.waits_for and all(change.verb is Verb.DELETE for change in self.changes)


def difference(gang: PodGang, desired: Iterable[Manifest], observed: Observed) -> GangDifference:
    """Compare the desired objects of a gang with the existing ones. Raises MappingError if an object of another
    controller has a name that is needed, or if the API server drops a field."""
    changes: list[Change] = []
    waits: list[str] = []
    names: set[tuple[str, str]] = set()
    for manifest in desired:
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        names.add((kind, name))
        existing = observed.get((kind, name))
        if existing is None:
            changes.append(Change(Verb.CREATE, kind, name, manifest))
        elif not controls(gang, existing):
            _check_owner(gang, kind, existing)
            waits.append(f"{kind} {name}")
        elif existing.metadata.deletion_timestamp is not None:
            # A PodGroup that is being deleted works until its last pod has ended. After that, it is created again
            # (WL37-L03, WL37-L04).
            if kind != "PodGroup":
                waits.append(f"{kind} {name}")
        elif change := _change(manifest, existing):
            changes.append(change)
    changes += [
        Change(Verb.DELETE, kind, name)
        for (kind, name), existing in observed.items()
        if (kind, name) not in names and controls(gang, existing) and existing.metadata.deletion_timestamp is None
    ]
    return GangDifference(tuple(changes), tuple(waits))


def controls(gang: PodGang, existing: WorkloadObject) -> bool:
    """Return whether the gang controls an object."""
    return ownership.owns(gang, existing)


def _check_owner(gang: PodGang, kind: str, existing: WorkloadObject) -> None:
    """Raise MappingError unless the object belongs to an earlier gang of this name and is about to be garbage
    collected."""
    owner, gang_meta = existing.metadata.controller, gang.metadata
    if owner is None or (owner.kind, owner.name) != (PODGANGS.kind, gang_meta.name):
        full_name = f"{gang_meta.namespace}/{existing.metadata.name}"
        raise MappingError(
            f"{kind} {full_name} exists and is not controlled by PodGang {gang_meta.namespace}/{gang_meta.name}"
        )


def _change(manifest: Manifest, existing: WorkloadObject) -> Change | None:
    kind, name, spec = manifest["kind"], manifest["metadata"]["name"], manifest["spec"]
    flat = manifest["apiVersion"] == api.FLAT_WORKLOADS.api_version
    if changed_field := _changed_field(spec, existing.spec, policy=kind == "CompositePodGroup", flat=flat):
        if kind == "PodGroup":  # its name depends on all these fields, so they cannot have been changed
            problem = f"the API server does not keep spec.{changed_field} of PodGroup {name}"
            raise MappingError(f"{problem}: it needs the feature gate TopologyAwareWorkloadScheduling")
        return Change(Verb.REPLACE, kind, name, manifest)
    body: Manifest = {}
    if kind == "PodGroup" and not flat and spec["schedulingPolicy"] != existing.spec.get("schedulingPolicy"):
        body["spec"] = {"schedulingPolicy": spec["schedulingPolicy"]}
    if kind == "Workload" and not flat:
        old = existing.spec[TREES]
        if (templates := [_with_counts(one, other) for one, other in zip(spec[TREES], old, strict=True)]) != old:
            body["spec"] = {TREES: templates}
    tags = manifest["metadata"]["labels"]
    if any((existing.metadata.labels or {}).get(key) != value for key, value in tags.items()):
        body["metadata"] = {"labels": tags}
    return Change(Verb.PATCH, kind, name, body) if body else None


TREES, LEAVES = "compositePodGroupTemplates", "podGroupTemplates"
REFERENCES = ("name", "controllerRef", "workloadRef", "podGroupTemplateRef", "parentCompositePodGroupName")
OPTIONAL = ("priorityClassName", "disruptionMode")
"""The API server sets defaults for these fields if they are absent (WL37-V19). Kubernetes 1.36 stores them only with a
feature gate that gangs do not need (WL-F08)."""


def _changed_field(desired: Mapping[str, Any], existing: Mapping[str, Any], *, policy: bool, flat: bool) -> str | None:
    """Return the first field that differs and that the API does not permit changing (WL37-V16 to WL37-V18), or None if
    there is no such field. With `policy`, the counts of the scheduling policy are among these fields."""
    for name in REFERENCES:
        if desired.get(name) != existing.get(name):
            return name
    if _key(desired) != _key(existing):
        return "schedulingConstraints"
    for name in OPTIONAL:
        if name in desired and not flat and desired[name] != existing.get(name):
            return name
    if policy and desired["schedulingPolicy"] != existing.get("schedulingPolicy"):
        return "schedulingPolicy"
    for templates in (TREES, LEAVES):
        new, old = desired.get(templates) or [], existing.get(templates) or []
        if len(new) != len(old):
            return templates
        for one, other in zip(new, old, strict=True):
            if inner := _changed_field(one, other, policy=False, flat=flat):
                return f"{templates}.{inner}"
    return None


def _key(spec: Mapping[str, Any]) -> str | None:
    topology = (spec.get("schedulingConstraints") or {}).get("topology")
    return topology[0].get("key") if topology else None


def _with_counts(desired: Mapping[str, Any], existing: Mapping[str, Any]) -> Manifest:
    """Return an existing template, including defaults, with the desired counts."""
    merged = {**existing, "schedulingPolicy": desired["schedulingPolicy"]}
    for templates in (TREES, LEAVES):
        if templates in desired:
            merged[templates] = [
                _with_counts(*pair) for pair in zip(desired[templates], existing[templates], strict=True)
            ]
    return merged
