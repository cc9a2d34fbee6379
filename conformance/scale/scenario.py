"""Scale scenarios: data in `fixtures/scale/`, and the manifests that a run creates from them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance import documents
from conformance.data import folder
from conformance.errors import UsageError


@dataclass(frozen=True)
class Scenario:
    """One shape of load. `pods` counts all pods of the set."""

    name: str
    description: str
    replicas: int
    pods_per_replica: int
    node_profile: str
    node_count: int
    manifest: Mapping[str, Any]

    @property
    def pods(self) -> int:
        """Return how many pods the set has."""
        return self.replicas * self.pods_per_replica

    def pod_clique_set(self, namespace: str, scheduler_name: str | None) -> dict[str, Any]:
        """Return the PodCliqueSet. Its pods set `scheduler_name`, or none if the implementation should choose."""
        manifest: dict[str, Any] = copy.deepcopy(dict(self.manifest))
        manifest["metadata"]["namespace"] = namespace
        manifest["spec"]["replicas"] = self.replicas
        if scheduler_name is not None:
            for clique in manifest["spec"]["template"]["cliques"]:
                clique["spec"]["podSpec"]["schedulerName"] = scheduler_name
        return manifest

    def plain_pods(self, namespace: str, scheduler_name: str) -> list[dict[str, Any]]:
        """Return the same pods without any operator, for kube-scheduler by that name: the raw floor."""
        result = []
        for clique in self.manifest["spec"]["template"]["cliques"]:
            for index in range(self.replicas * clique["spec"]["replicas"]):
                spec = {**clique["spec"]["podSpec"], "schedulerName": scheduler_name}
                metadata = {"name": f"{clique['name']}-{index}", "namespace": namespace}
                result.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        return result


def names() -> list[str]:
    """Return the names of all scenarios."""
    return sorted(path.stem for path in (folder("fixtures") / "scale").glob("*.yaml"))


def load(name: str) -> Scenario:
    """Return the scenario in `fixtures/scale/<name>.yaml`. Raises UsageError."""
    path = folder("fixtures") / "scale" / f"{name}.yaml"
    if not path.is_file():
        raise UsageError(f'unknown scale scenario "{name}"', hint=documents.suggestion(name, names()))
    return read(path)


def read(path: Path) -> Scenario:
    """Read and check one scenario file. Raises UsageError with file, line and field."""
    document = documents.read(path, folder("fixtures") / "scale" / "scenario.schema.json")
    data = document.value
    cliques = data["manifest"]["spec"]["template"]["cliques"]
    pods = sum(clique["spec"]["replicas"] for clique in cliques)
    if pods != data["podsPerReplica"]:
        raise UsageError(
            f"is {data['podsPerReplica']}, but the cliques have {pods} pods",
            where=document.where("podsPerReplica"),
            hint="make them agree",
        )
    return Scenario(
        name=data["name"],
        description=data["description"],
        replicas=data["replicas"],
        pods_per_replica=data["podsPerReplica"],
        node_profile=data["nodes"]["profile"],
        node_count=data["nodes"]["count"],
        manifest=data["manifest"],
    )
