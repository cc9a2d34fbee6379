"""The API server and the controllers of the in-memory cluster, with the features that Workload API scenes need."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import orjson

from conformance.grove.fields import name, terminating
from conformance.history.log import CLUSTER, Log
from conformance.history.record import ADDED, DELETED, MODIFIED
from conformance.suite.scenes.dry_run import Reply
from conformance.testing.benches import pod_group_name

Object = dict[str, Any]
NAMESPACE = "toy"
RESOURCES = {
    "Pod": "pods",
    "PodGroup": "podgroups",
    "CompositePodGroup": "compositepodgroups",
    "Node": "nodes",
    "PriorityClass": "priorityclasses",
    "Event": "events",
}
CLUSTER_SCOPED = ("nodes", "priorityclasses")


class World:
    """Objects by resource and name, in order of creation. Each write is a record of the log."""

    def __init__(self, fault: str = "") -> None:
        """`fault` names the broken promise; empty if none is broken."""
        self.fault, self.log = fault, Log()
        self.objects: dict[str, dict[str, Object]] = {resource: {} for resource in RESOURCES.values()}
        self._numbers = itertools.count(1)

    def all(self, resource: str) -> list[Object]:
        """Return the objects of a resource, oldest first."""
        return list(self.objects[resource].values())

    def answer(self, obj: Mapping[str, Any]) -> Reply:
        """Return the API server's reply to a creation, with the object that would be stored."""
        spec, resource = obj.get("spec", {}), RESOURCES[obj["kind"]]
        if obj["metadata"]["name"] in self.objects[resource]:
            return Reply(409, message="it exists")
        if "basic" in spec.get("schedulingPolicy", {}) and "all" in spec.get("disruptionMode", {}):
            return Reply(422, message="disruptionMode: Forbidden")
        return Reply(201, self._admitted(obj))

    def create(self, obj: Mapping[str, Any]) -> Object:
        """Create an object. Pods and groups get their priority, and the default PriorityClass."""
        created, resource = self._admitted(obj), RESOURCES[obj["kind"]]
        created["metadata"]["uid"] = f"{resource}-{next(self._numbers)}"
        if resource == "nodes":
            created["status"] = {**created["status"], "conditions": [{"type": "Ready", "status": "True"}]}
        self.objects[resource][name(created)] = created
        self._record(ADDED, resource, created)
        return created

    def change(self, resource: str, obj: Object) -> None:
        """Record an object that has changed in place."""
        self._record(MODIFIED, resource, obj)

    def merge(self, resource: str, object_name: str, patch: Mapping[str, Any]) -> Object:
        """Apply a JSON merge patch."""
        obj = self.objects[resource][object_name]
        _merge(obj, patch)
        self.change(resource, obj)
        return obj

    def delete(self, resource: str, object_name: str) -> None:
        """Delete an object if it exists. A PodGroup stays until its last pod is gone."""
        if (obj := self.objects[resource].get(object_name)) is None:
            return
        if resource == "podgroups":
            obj["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            self.change(resource, obj)
        else:
            self._delete(resource, obj)

    def control(self) -> None:
        """Remove deleted PodGroups whose last pod is gone."""
        occupied = {pod_group_name(pod) for pod in self.all("pods")}
        for group in self.all("podgroups"):
            if terminating(group) and name(group) not in occupied:
                self._delete("podgroups", group)

    def _admitted(self, obj: Mapping[str, Any]) -> Object:
        admitted, resource = deepcopy(dict(obj)), RESOURCES[obj["kind"]]
        if resource in ("pods", "podgroups", "compositepodgroups"):
            self._prioritize(resource, admitted["spec"])
        return admitted

    def _prioritize(self, resource: str, spec: Object) -> None:
        defaults = [name(entry) for entry in self.all("priorityclasses") if entry.get("globalDefault")]
        if defaults and not (self.fault == "a group gets no default class" and resource != "pods"):
            spec.setdefault("priorityClassName", defaults[0])
        priority_class = self.objects["priorityclasses"].get(spec.get("priorityClassName", ""), {})
        spec["priority"] = priority_class.get("value", 0)
        spec["preemptionPolicy"] = priority_class.get("preemptionPolicy", "PreemptLowerPriority")

    def _delete(self, resource: str, obj: Object) -> None:
        del self.objects[resource][name(obj)]
        self._record(DELETED, resource, obj)

    def _record(self, kind: str, resource: str, obj: Object) -> None:
        version = str(next(self._numbers))
        obj["metadata"]["resourceVersion"] = version
        space = CLUSTER if resource in CLUSTER_SCOPED else NAMESPACE
        self.log.append(
            kind, resource, namespace=space, name=name(obj), uid=obj["metadata"]["uid"], version=version,
            raw=orjson.dumps(obj),
        )  # fmt: skip


def _merge(obj: Object, patch: Mapping[str, Any]) -> None:
    for key, value in patch.items():
        if value is None:
            obj.pop(key, None)
        elif isinstance(value, Mapping):
            _merge(obj.setdefault(key, {}), value)
        else:
            obj[key] = value
