"""An in-memory cluster for the preflight of the Workload API: an API server, a scheduler and a controller manager, each
with its own feature gates (WL37-E10 to E21). It serves only the requests that the preflight sends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from kube.client import Answer
from kube.errors import ApiError
from kube.resource import NAMESPACES, PODS, Resource

GENERIC, TOPOLOGY, COMPOSITE = "GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup"
ALL_GATES = frozenset({GENERIC, TOPOLOGY, COMPOSITE})
BOTH_VERSIONS = frozenset({"v1beta1", "v1alpha3"})


@dataclass
class SimulatedCluster:
    """A replacement for `kube.client.Client`. The scheduler reports nothing about pods before read number
    `reads_until_noticed`, like a scheduler that has not noticed yet that its API is served."""

    apiserver: frozenset[str] = ALL_GATES
    served: frozenset[str] = BOTH_VERSIONS
    scheduler: frozenset[str] = ALL_GATES
    controller_manager: frozenset[str] = ALL_GATES
    reads_until_noticed: int = 0
    objects: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    reads: int = 0

    async def create(self, resource: Resource, body: Mapping[str, Any], *, namespace: str | None = None) -> bytes:
        stored_object = self._stored(resource, body)
        self.objects[resource.plural, stored_object["metadata"]["name"]] = stored_object
        return orjson.dumps(stored_object)

    async def request(
        self, method: str, path: str, *, params: Mapping[str, str] | None = None, body: Any = None
    ) -> bytes:
        assert method == "POST" and params == {"dryRun": "All"}
        plural = path.rpartition("/")[2]
        resource = PODS if plural == "pods" else Resource("scheduling.k8s.io", path.split("/")[3], plural, "")
        return orjson.dumps(self._stored(resource, body))

    async def exchange(self, method: str, path: str) -> Answer:
        if "serviceaccounts" in path:
            return Answer(200, b"{}")
        version = path.rpartition("/")[2]
        names = [plural for plural in ("podgroups", "compositepodgroups") if self._has(version, plural)]
        return Answer(200 if names else 404, orjson.dumps({"resources": [{"name": name} for name in names]}))

    async def get(self, resource: Resource, namespace: str | None, name: str) -> bytes:
        self.reads += 1
        pod = self.objects[resource.plural, name]
        if message := self._message(pod):
            condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
            pod = {**pod, "status": {"conditions": [condition]}}
        return orjson.dumps(pod)

    async def get_or_none(self, resource: Resource, namespace: str | None, name: str) -> bytes | None:
        document = self.objects.get((resource.plural, name))
        return orjson.dumps(document) if document is not None else None

    async def list(self, resource: Resource, namespace: str | None = None) -> list[dict[str, Any]]:
        if not self._has(resource.version, resource.plural):
            raise ApiError(404, "NotFound", "", {}, None)
        return [item for (plural, _), item in self.objects.items() if plural == resource.plural]

    async def patch(self, resource: Resource, namespace: str | None, name: str, body: Any) -> bytes:
        assert body == {"metadata": {"finalizers": None}}
        del self.objects[resource.plural, name]
        return b"{}"

    async def delete(self, resource: Resource, namespace: str | None, name: str) -> None:
        if resource == NAMESPACES:
            retained_kinds = ("podgroups",) if GENERIC not in self.controller_manager else ()
            self.objects = {key: item for key, item in self.objects.items() if key[0] in retained_kinds}
        elif resource.plural != "podgroups" or GENERIC in self.controller_manager:
            del self.objects[resource.plural, name]

    def _has(self, version: str, plural: str) -> bool:
        gates = {GENERIC, COMPOSITE} if plural == "compositepodgroups" else {GENERIC}
        is_served_version = version == "v1alpha3" if plural == "compositepodgroups" else version in BOTH_VERSIONS
        return is_served_version and version in self.served and gates <= self.apiserver

    def _stored(self, resource: Resource, body: Mapping[str, Any]) -> dict[str, Any]:
        spec = dict(body.get("spec", {}))
        gate_by_field = {
            "schedulingGroup": GENERIC,
            "schedulingConstraints": TOPOLOGY,
            "parentCompositePodGroupName": COMPOSITE,
        }
        for name, gate in gate_by_field.items():
            if gate not in self.apiserver:
                spec.pop(name, None)
        return {**body, "spec": spec}

    def _message(self, pod: Mapping[str, Any]) -> str:
        """Return the scheduler's message about a pod; empty while the scheduler does not consider the pod."""
        api_by_gate = {GENERIC: ("v1beta1", "podgroups"), COMPOSITE: ("v1alpha3", "compositepodgroups")}
        if self.reads < self.reads_until_noticed or any(
            g in self.scheduler and not self._has(*api) for g, api in api_by_gate.items()
        ):
            return ""
        group = self.objects.get(("podgroups", pod["spec"].get("schedulingGroup", {}).get("podGroupName", "")))
        if group is None or GENERIC not in self.scheduler:
            return "0/1 nodes are available"
        if not self._has_minimum(group):
            return ""
        parent = group["spec"].get("parentCompositePodGroupName", "")
        if COMPOSITE in self.scheduler and parent:
            root = self.objects.get(("compositepodgroups", parent))
            leaves = [
                item
                for (plural, _), item in self.objects.items()
                if plural == "podgroups" and item["spec"].get("parentCompositePodGroupName") == parent
            ]
            if (
                root is None
                or sum(map(self._has_minimum, leaves)) < root["spec"]["schedulingPolicy"]["gang"]["minGroupCount"]
            ):
                return ""
        return "0/1 placements are available" if TOPOLOGY in self.scheduler else "0/1 nodes are available"

    def _has_minimum(self, group: Mapping[str, Any]) -> bool:
        name = group["metadata"]["name"]
        members = [
            item
            for (plural, _), item in self.objects.items()
            if plural == "pods" and item["spec"].get("schedulingGroup", {}).get("podGroupName") == name
        ]
        return len(members) >= group["spec"]["schedulingPolicy"]["gang"]["minCount"]
