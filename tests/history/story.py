"""Handmade histories: objects are recorded one by one, and each record has the next revision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from conformance.grove import labels
from conformance.history.log import Log
from conformance.history.query import History
from conformance.history.record import ADDED, DELETED, MODIFIED, Record

SPACE = "space"
KINDS = {
    "podgangmaps": "PodGangMap",
    "podcliquesets": "PodCliqueSet",
    "podcliques": "PodClique",
    "podcliquescalinggroups": "PodCliqueScalingGroup",
}


class Story:
    """Records changes of objects in one namespace, half a second apart."""

    def __init__(self, log: Log | None = None) -> None:
        self.log = log or Log()
        self.history = History(self.log, SPACE)
        self.revision = 100
        self.at = 0.0
        self._objects: dict[tuple[str, str], tuple[str, Mapping[str, Any]]] = {}
        self._deleted: dict[tuple[str, str], str] = {}
        """Uids of deleted objects, to which owner references may still refer."""
        self._created = 0

    def record(
        self,
        resource: str,
        name: str,
        document: Mapping[str, Any],
        *,
        revision: int | None = None,
        kind: str = "",
        listed: bool = False,
        after: float = 0.5,
    ) -> Record:
        """Append a record of an object. `revision` replaces the next revision, for a record that arrives out of
        order."""
        stored = self._objects.get((resource, name))
        if stored is None:
            self._created += 1
        uid = stored[0] if stored is not None else f"uid-{self._created}"
        self.revision += 1
        self.at += after
        metadata = {"name": name, "namespace": SPACE, "uid": uid, **document.get("metadata", {})}
        full_document = {**document, "metadata": metadata}
        kind = kind or (MODIFIED if stored is not None else ADDED)
        if kind == DELETED:
            self._objects.pop((resource, name), None)
            self._deleted[resource, name] = uid
        else:
            self._objects[resource, name] = (uid, full_document)
        return self.log.append(
            kind,
            resource,
            namespace="" if resource == "nodes" else SPACE,
            name=name,
            uid=uid,
            version=str(revision if revision is not None else self.revision),
            raw=orjson.dumps(full_document),
            listed=listed,
            at=self.at,
        )

    def keep_pace(self) -> None:
        """Set the story's clock to the log's, because waits compare arrival times with the deadline."""
        self.at = self.log.now()

    def delete(self, resource: str, name: str) -> Record:
        return self.record(resource, name, self._objects[resource, name][1], kind=DELETED)

    def pod(
        self,
        name: str,
        *,
        gang: str = "",
        clique: str = "",
        gated: bool = False,
        node: str = "",
        host: str = "",
        extra: Mapping[str, str] | None = None,
        owner: tuple[str, str] | None = None,
        terminating: bool = False,
        ready: bool = False,
        phase: str = "",
        priority: int = 0,
        asks: Mapping[str, str] | None = None,
        served_by_devices: str = "",
        **options: Any,
    ) -> Record:
        tags = {labels.GANG: gang, labels.CLIQUE: clique, **(extra or {})}
        spec: dict[str, Any] = {"schedulingGates": [{"name": labels.GATE}]} if gated else {}
        if node:
            spec["nodeName"] = node
        if host:
            spec["hostname"] = host
        if priority:
            spec["priority"] = priority
        if asks:
            spec["containers"] = [{"name": "main", "resources": {"requests": dict(asks)}}]
        metadata: dict[str, Any] = {
            "labels": {key: value for key, value in tags.items() if value},
            "ownerReferences": self.owners(owner),
        }
        if terminating:
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        status = {"conditions": [{"type": "Ready", "status": "True"}]} if ready else {}
        status |= {"phase": phase} if phase else {}
        if served_by_devices:
            status["extendedResourceClaimStatus"] = {"requestMappings": [{"resourceName": served_by_devices}]}
        return self.record("pods", name, {"metadata": metadata, "spec": spec, "status": status}, **options)

    def node(
        self,
        name: str,
        *,
        ready: bool = True,
        cordoned: bool = False,
        tags: Mapping[str, str] | None = None,
        **allocatable: str,
    ) -> Record:
        """Record a node. The keyword arguments are the node's allocatable resources. `gpus` stands for
        nvidia.com/gpu."""
        amounts = {("nvidia.com/gpu" if resource == "gpus" else resource): n for resource, n in allocatable.items()}
        status = {"conditions": [{"type": "Ready", "status": str(ready)}], "allocatable": amounts}
        spec = {"unschedulable": True} if cordoned else {}
        return self.record("nodes", name, {"metadata": {"labels": dict(tags or {})}, "spec": spec, "status": status})

    def gang(
        self,
        name: str,
        groups: Mapping[str, tuple[int, Sequence[str]]],
        *,
        initialized: bool = True,
        owner: tuple[str, str] | None = None,
        **options: Any,
    ) -> Record:
        podgroups = [
            {
                "name": group,
                "minReplicas": minimum,
                "podReferences": [{"namespace": SPACE, "name": pod} for pod in referenced],
            }
            for group, (minimum, referenced) in groups.items()
        ]
        status = {"conditions": [{"type": "Initialized", "status": str(initialized)}]}
        metadata = {"labels": {labels.MANAGED_BY: labels.OPERATOR}, "ownerReferences": self.owners(owner)}
        return self.record(
            "podgangs", name, {"metadata": metadata, "spec": {"podgroups": podgroups}, "status": status}, **options
        )

    def owned(self, resource: str, name: str, owner: tuple[str, str] | None, **spec: Any) -> Record:
        """Record a clique, a scaling group or a set with this owner."""
        metadata = {"labels": {labels.MANAGED_BY: labels.OPERATOR}, "ownerReferences": self.owners(owner)}
        return self.record(resource, name, {"metadata": metadata, "spec": spec})

    def owners(self, owner: tuple[str, str] | None) -> list[dict[str, Any]]:
        if owner is None:
            return []
        stored = self._objects.get(owner)
        uid = stored[0] if stored is not None else self._deleted.get(owner, "uid-unknown")
        return [{"kind": KINDS[owner[0]], "name": owner[1], "uid": uid, "controller": True}]
