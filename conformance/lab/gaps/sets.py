"""Instances and mappings as PodCliqueSets: an operator creates their groups and pods, and decides the order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.grove import pods as pod_fields
from conformance.grove.restricted import restricted
from conformance.grove.scheduling.manifests import LABEL_KEYS
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.lab.gaps import device_claims, forms, mappings
from conformance.lab.gaps.mappings import MappingRun
from conformance.lab.gaps.plays import InstanceRun, is_running
from conformance.suite.scenes.api import Object
from conformance.testing.predicates import pods_of
from conformance.testing.topology_bindings import topology_binding
from conformance.testing.workload_groups import Leaf, WorkloadTarget


class SetInstanceRun(InstanceRun):
    """An instance as a PodCliqueSet: a component of single pods is a clique, and a component whose replicas have
    several pods is a scaling group."""

    def create(self) -> None:
        """Create the set, and the ClusterTopologyBinding if the set needs one."""
        super().create()
        binding = f"{self._env.namespace}-{self.bench.name}"
        is_constrained = self.instance.block or any(leaf.key for leaf in self.leaves)
        if is_constrained:
            self._env.create(topology_binding(binding, {level: LABEL_KEYS[level] for level in ("block", "rack")}))
        cliques, groups = list[Object](), list[Object]()
        for component, leaves in forms.leaves_by_component(self.instance):
            is_single, first_leaf = component.is_single_pod, leaves[0]
            name = first_leaf.name if is_single else first_leaf.name.rpartition("-")[0]
            count, minimum = (component.replicas, component.minimum) if is_single else (component.pods, component.pods)
            member = name if is_single else _member_clique(name)
            cliques.append(clique(member, count, minimum, component.gpus, self.bench.target))
            device_claims.add_claim(cliques[-1]["spec"]["podSpec"], self.bench.name, component)
            if not is_single:
                group: Object = {"name": name, "cliqueNames": [member]}
                group |= {"replicas": component.replicas, "minAvailable": component.minimum}
                groups.append(group | (_constraint("rack", binding) if component.rack else {}))
        template: Object = {"cliques": cliques, "podCliqueScalingGroups": groups}
        template |= _constraint("block", binding) if self.instance.block else {}
        self._env.create(pod_clique_set(self.bench.name, template))

    def groups(self) -> list[Object]:
        """Return an empty list: the operator creates groups and pods."""
        return []

    pods = groups

    def lose_pods(self) -> None:
        """Occupy the node of the first lost component's pod, and delete one pod of each lost component. The operator
        recreates the pods."""
        env, view = self._env, self._env.history.view()
        leaves = [
            component_leaves[0]
            for component, component_leaves in forms.leaves_by_component(self.instance)
            if component.name in self.instance.lost
        ]
        lost_pods = [self.bound_pods(view, leaf)[0] for leaf in leaves]
        self.bench.create_plain_pod("taker", gpus=leaves[0].gpus, node=pod_fields.node(lost_pods[0]))
        names = [str(pod["metadata"]["name"]) for pod in lost_pods]
        for name in names:
            env.delete("pods", name)
        env.wait_for(
            f"{self.bench.name} has lost pods",
            lambda view: all(view.get("pods", name) is None for name in names) or Unmet("a deleted pod is still there"),
        )

    def bound_pods(self, view: View, leaf: Leaf) -> list[Mapping[str, Any]]:
        """Return the bound pods of a clique."""
        return [pod for pod in pods_of(view, self._clique(leaf)) if is_running(pod)]

    def _clique(self, leaf: Leaf) -> str:
        for component, leaves in forms.leaves_by_component(self.instance):
            if leaf in leaves:
                return f"{self.bench.name}-0-{leaf.name}" + (
                    "" if component.is_single_pod else f"-{_member_clique(leaf.name)}"
                )
        raise KeyError(leaf.name)


class SetMappingRun(MappingRun):
    """A run of a mapping in which the workload is created as a PodCliqueSet."""

    def create(self) -> None:
        """Create the set."""
        target, groups = self.bench.target, {"b-prefill": {"p-l": 1, "p-w": 2}, "c-decode": {"d-l": 1, "d-w": 1}}
        cliques = [clique("a-router", 2, 1, 1, target)]
        cliques += [clique(name, n, n, 1, target) for pods in groups.values() for name, n in pods.items()]
        scaling_groups = [
            {"name": name, "cliqueNames": list(pods), "replicas": 2, "minAvailable": 1} for name, pods in groups.items()
        ]
        self._env.create(
            pod_clique_set(self.bench.name, {"cliques": cliques, "podCliqueScalingGroups": scaling_groups})
        )

    def groups(self) -> list[Object]:
        """Return an empty list: the operator creates groups and pods."""
        return []

    pods = groups

    def take_pods_to_ungate(self, view: View) -> Sequence[str]:
        """Return nothing: the operator removes the gates."""
        return ()

    def outcome(self, view: View) -> str:
        """Return in words which parts are bound."""
        prefix = f"{self.bench.name}-0"
        parts = {"router": [f"{prefix}-a-router"]}
        for part, group, member in (("p", "b-prefill", "p"), ("d", "c-decode", "d")):
            for index in range(2):
                parts[f"{part}{index}"] = [f"{prefix}-{group}-{index}-{member}-{role}" for role in "lw"]
        bound = {
            part: sum(is_running(pod) for name in names for pod in pods_of(view, name)) for part, names in parts.items()
        }
        return mappings.describe(bound)


def clique(name: str, replicas: int, minimum: int, gpus: int, target: WorkloadTarget) -> Object:
    """Return the template of a clique whose pods run on the nodes of a bench."""
    resources = {"cpu": "10m", "nvidia.com/gpu": str(gpus)}
    pod = restricted(
        {
            "nodeSelector": dict(target.selector),
            "tolerations": [dict(toleration) for toleration in target.tolerations],
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "registry.example/x:1", "resources": {"limits": resources}}],
        }
    )
    return {
        "name": name,
        "labels": dict(target.labels),
        "spec": {"roleName": name, "replicas": replicas, "minAvailable": minimum, "podSpec": pod},
    }


def pod_clique_set(name: str, template: Object) -> Object:
    """Return a set with one replica."""
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": name},
        "spec": {"replicas": 1, "updateStrategy": {"type": "RollingRecreate"}, "template": template},
    }


def _member_clique(group: str) -> str:
    """Return the name of a scaling group's clique. Each scaling group's name starts with a different letter. The
    clique's name is short because the names of set, group and clique may have 45 characters altogether."""
    return f"{group[0]}w"


def _constraint(domain: str, binding: str) -> Object:
    return {"topologyConstraint": {"topologyName": binding, "pack": {"required": domain}}}
