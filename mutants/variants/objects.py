"""Variants of the objects of a set: Services, labels, owner references, finalizers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec

from kube.objects import ObjectMeta, OwnerReference
from mutants.profiles.core_objects import (
    deletion_unblocked,
    finalizer_late,
    make_services_on_demand,
    names_unlabelled,
)
from mutants.registry import variant
from mutants.replacement import Original, alter, around, on_result_of, replace
from reference_impl.api.models import PodCliqueSet
from reference_impl.api.pods import Service
from reference_impl.control.podcliqueset import SetReconciler
from reference_impl.plan import children, labels
from reference_impl.plan.children import Manifest
from reference_impl.plan.pods import PodBuilder


@variant("operator", "gives headless Services a port", "CORE-001", "CORE-006")
@on_result_of(children, "service")
def _service_with_port(manifest: Manifest, *_: Any) -> Manifest:
    return {**manifest, "spec": {**manifest["spec"], "ports": [{"port": 80}]}}


@variant("operator", "selects the pods of a Service by set and replica only", "CORE-006", "RES-008")
def _service_by_set_and_replica() -> None:
    original = children.is_service_correct

    def service(manifest: Manifest, *_: Any) -> Manifest:
        spec = manifest["spec"]
        selector = {key: value for key, value in spec["selector"].items() if key != labels.MANAGED_BY}
        return {**manifest, "spec": {**spec, "selector": selector}}

    def right_service(pcs: PodCliqueSet, index: int, current: Service) -> bool:
        selector = {labels.MANAGED_BY: labels.MANAGER, **(current.spec.selector or {})}
        spec = msgspec.structs.replace(current.spec, selector=selector)
        return original(pcs, index, msgspec.structs.replace(current, spec=spec))

    alter(children, "service", service)
    replace(children, "is_service_correct", right_service)


@variant(
    "operator",
    "writes no label app.kubernetes.io/name",
    "CORE-002",
    "RES-002",
    "RES-031",
    "RES-041",
    "RES-070",
    exempt=("CORE-034",),
)
def _without_name_labels() -> None:
    names_unlabelled()


@variant(
    "operator",
    "does not set blockOwnerDeletion in owner references",
    "CORE-004",
    "CORE-045",
    exempt=("CORE-035", "LIFE-011"),
)
def _nothing_blocks_deletion() -> None:
    deletion_unblocked()


@variant(
    "operator", "owns the Services of a set without being their controller", "CORE-004", exempt=("CORE-035", "CORE-045")
)
@on_result_of(children, "service")
def _services_owned(manifest: Manifest, *_: Any) -> Manifest:
    metadata = manifest["metadata"]
    owners = [{**owner, "controller": False} for owner in metadata["ownerReferences"]]
    return {**manifest, "metadata": {**metadata, "ownerReferences": owners}}


@variant(
    "operator",
    "owns the Pods of a clique without being their controller",
    "CORE-007",
    "GANG-005",
    "INV-025",
    exempt=("CORE-035", "CORE-045", "INV-004"),
    conflict="every history would break an invariant, and evidence of each would be kept",
)
def _pods_owned() -> None:
    original = vars(ObjectMeta)["controller"].fget

    def pod(manifest: Manifest, *_: Any) -> Manifest:
        metadata = manifest["metadata"]
        owners = [{**owner, "controller": False} for owner in metadata["ownerReferences"]]
        return {**manifest, "metadata": {**metadata, "ownerReferences": owners}}

    def controller(self: ObjectMeta) -> OwnerReference | None:
        cliques = (owner for owner in self.owner_references or () if owner.kind == "PodClique")
        return original(self) or next(cliques, None)

    alter(PodBuilder, "pod", pod)
    replace(ObjectMeta, "controller", property(controller))


@variant(
    "operator",
    "creates a further headless Service, which selects the pods of all replicas of a set",
    "CORE-001",
    "CORE-006",
    "LIFE-002",
)
@around(SetReconciler, "_child_writes")
def _service_of_the_whole_set(
    original: Original, self: SetReconciler, pcs: PodCliqueSet, index: int, child: Any, *rest: Any
) -> Iterator[Any]:
    yield from original(self, pcs, index, child, *rest)
    name = f"{pcs.metadata.name}-all"
    if index or child.kind != "Service" or self._cache.services.get(pcs.metadata.namespace, name) is not None:
        return
    service = children.service(pcs, index)
    selector = {key: value for key, value in service["spec"]["selector"].items() if key != labels.REPLICA_INDEX}
    owners = [{**owner, "controller": False} for owner in service["metadata"]["ownerReferences"]]
    metadata = {"name": name, "namespace": pcs.metadata.namespace, "labels": {}, "ownerReferences": owners}
    manifest = {**service, "metadata": metadata, "spec": {**service["spec"], "selector": selector}}
    yield partial(self._writer.create, self._cache.services, manifest)


@variant(
    "operator",
    "gives cliques their finalizer when it reconciles them for the first time",
    "CORE-005",
    exempt=("CORE-036",),
    conflict="every history would break an invariant, and evidence of each would be kept",
)
def _finalizer_after_creation() -> None:
    finalizer_late()


@variant(
    "operator",
    "makes Services headless, and names them in pods, only where a set has a headlessServiceConfig, as the comment of "
    "the field has it",
    "CORE-006",
    "CORE-007",
    exempt=("CORE-042", "ADM-052"),
    conflict="scenes of other requirements count the headless Services of sets without the field",
)
def _services_on_demand() -> None:
    make_services_on_demand()
    original, unrequested_services = children.service, set[tuple[str, str]]()

    def service(pcs: PodCliqueSet, index: int) -> Manifest:
        manifest = original(pcs, index)
        if pcs.spec.template.headless_service_config is None:
            unrequested_services.add((manifest["metadata"]["namespace"], manifest["metadata"]["name"]))
        return manifest

    def pod(manifest: Manifest, *_: Any) -> Manifest:
        spec = manifest["spec"]
        if (manifest["metadata"]["namespace"], spec["subdomain"]) not in unrequested_services:
            return manifest
        return {**manifest, "spec": {key: spec[key] for key in spec if key != "subdomain"}}

    replace(children, "service", service)
    alter(PodBuilder, "pod", pod)


@variant(
    "operator",
    "lets the cliques of a scaling group outlive it, as their set owns them as well",
    *("LIFE-001", "LIFE-002", "LIFE-009", "LIFE-012"),
)
@on_result_of(children, "member_cliques")
def _members_owned_by_their_set_as_well(
    cliques: Iterator[Manifest], pcs: PodCliqueSet, *_: Any, **__: Any
) -> Iterator[Manifest]:
    for clique in cliques:
        metadata = clique["metadata"]
        owners = [*metadata["ownerReferences"], {**children.set_reference(pcs), "controller": False}]
        yield {**clique, "metadata": {**metadata, "ownerReferences": owners}}
