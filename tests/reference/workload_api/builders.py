"""Gangs, pods and existing objects for the tests of the Workload API back-end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from reference_impl.api.models import PodCliqueSet, PodGang
from reference_impl.api.pods import Pod
from reference_impl.api.workload_api import WorkloadObject
from reference_impl.plan import labels
from reference_impl.plan.workload_api.mode import Mode
from reference_impl.plan.workload_api.planned import Planned, plan

DEFAULT_MODE = Mode()
Objects = dict[tuple[str, str], WorkloadObject]


def packed(**keys: str) -> dict[str, Any]:
    return {"topologyConstraint": {"packConstraint": keys}}


def group(name: str, minimum: int, **fields: Any) -> dict[str, Any]:
    return {"name": name, "minReplicas": minimum, "podReferences": [], **fields}


def gang(*groups: dict[str, Any], uid: str = "1", placed: bool = False, name: str = "dis-0", **spec: Any) -> PodGang:
    metadata = {
        "name": name,
        "namespace": "ns",
        "uid": uid,
        "labels": {labels.SCHEDULER_NAME: "default-scheduler", labels.MANAGED_BY: labels.MANAGER},
    }
    document = {"metadata": metadata, "spec": {"podgroups": groups, **spec}}
    if placed:
        document["status"] = {"phase": "Pending", "lastScheduled": "2026-01-01T00:00:00Z"}
    return msgspec.convert(document, PodGang)


def disaggregated(**fields: Any) -> PodGang:
    """Return the instance `dis` of WL37-M: a router, and one replica each of prefill and decode."""
    router = group("dis-0-router", 1)
    prefill = [group("dis-0-prefill-0-pl", 1), group("dis-0-prefill-0-pw", 2)]
    decode = [group("dis-0-decode-0-dl", 1), group("dis-0-decode-0-dw", 1)]
    configs = [
        {"name": "dis-0-prefill-0", "podGroupNames": [g["name"] for g in prefill], **packed(required="rack")},
        {"name": "dis-0-decode-0", "podGroupNames": [g["name"] for g in decode]},
    ]
    constraints = {**packed(required="block"), "topologyConstraintGroupConfigs": configs}
    return gang(router, *prefill, *decode, **{**constraints, **fields})


def pod(
    clique: str, *, node: str = "", pod_group: str = "", gang: str = "dis-0", gated: bool = False, **status: Any
) -> Pod:
    """Return a pod of a clique, bound to the node `node`, in the PodGroup `pod_group`."""
    owner = {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "name": clique, "uid": clique, "controller": True}
    spec: dict[str, Any] = {"nodeName": node, "schedulingGates": [{"name": labels.GATE}] if gated else None}
    if pod_group:
        spec["schedulingGroup"] = {"podGroupName": pod_group}
    metadata = {"namespace": "ns", "labels": {labels.PODGANG: gang}, "ownerReferences": [owner]}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, Pod)


def pcs(*classes: str, of_set: str | None = None) -> PodCliqueSet:
    cliques = [
        {"name": f"c{i}", "spec": {"podSpec": {"priorityClassName": name} if name else {}}}
        for i, name in enumerate(classes)
    ]
    template = {"cliques": cliques, "priorityClassName": of_set}
    return msgspec.convert({"metadata": {"name": "dis"}, "spec": {"replicas": 1, "template": template}}, PodCliqueSet)


def stored(manifests: Iterable[dict[str, Any]]) -> Objects:
    """Return the objects as an API server would store them, with its defaults."""
    objects: Objects = {}
    for manifest in manifests:
        item = msgspec.convert(msgspec.json.decode(msgspec.json.encode(manifest)), WorkloadObject)
        item.metadata.uid = f"uid-{item.metadata.name}"
        if manifest["kind"] != "Workload":
            item.spec.setdefault("disruptionMode", {"single": {}})
            item.spec.setdefault("priority", 0)
        objects[manifest["kind"], item.metadata.name] = item
    return objects


def planned(
    pod_gang: PodGang,
    pods: Iterable[Pod] = (),
    objects: Objects | None = None,
    *,
    owner: PodCliqueSet | None = None,
    mode: Mode = DEFAULT_MODE,
    **templates: int,
) -> Planned:
    return plan(pod_gang, owner, pods, objects or {}, templates, mode)


def created(pod_gang: PodGang, *, mode: Mode = DEFAULT_MODE, owner: PodCliqueSet | None = None) -> Objects:
    """Return the objects that exist after a gang's objects have been created."""
    return stored(change.body for change in planned(pod_gang, mode=mode, owner=owner).difference.changes)


def bound(pod_gang: PodGang, groups: dict[str, str], **extra: int) -> list[Pod]:
    """Return the bound pods of a gang's minimum, and `extra` additional pods of some cliques."""
    counts = {
        podgroup.name: podgroup.min_replicas + extra.get(podgroup.name, 0) for podgroup in pod_gang.spec.podgroups
    }
    return [
        pod(clique, node="n", pod_group=groups[clique], gang=pod_gang.metadata.name)
        for clique, count in counts.items()
        for _ in range(count)
    ]
