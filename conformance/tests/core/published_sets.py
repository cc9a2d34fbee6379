"""Scenes with sets as users publish them: the samples, with native sidecars, probes and volumes of every kind.

The pods of `SetWithEveryPodField` have every field but never run. The pods of these sets run and wait for each other,
and some of the sets are scaled out.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, ClassVar

import yaml

from conformance.grove import samples
from conformance.grove.expected import ExpectedObjects, expected
from conformance.grove.fields import name
from conformance.grove.restricted import restricted
from conformance.grove.template import read
from conformance.testing import accepted_pods, composition, predicates
from conformance.testing.scene import Scene, SceneEnvironment
from conformance.tests.core.ready_set import PODS_READY, SET_AVAILABLE, STATUSES_AT_REST, all_pods_ready, has_caught_up

Object = dict[str, Any]


class PublishedSet(Scene):
    """The objects of a sample, and enough nodes for the set with one more replica of a scaling group. If `group` names
    a scaling group, that group gets another replica when the set is available. `expected` is as in
    ReadyDisaggregatedSet, and includes the added replica."""

    sample: ClassVar[str]
    group: ClassVar[str]
    nodes: ClassVar[int]

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", self.nodes)
        *objects, workload = yaml.safe_load_all(samples.path(self.sample).read_text("utf-8"))
        provide_storage(env, objects, workload)
        for obj in objects:
            env.create(obj)
        workload = env.placed(workload)
        self.accepted_pods = accepted_pods.request_pods(env, workload)
        if not all(reply.accepted for reply in self.accepted_pods.replies.values()):
            workload = without_host_fields(workload)
            self.accepted_pods = accepted_pods.request_pods(env, workload)
        self.namespace, self.scheduler, self.set_name = env.namespace, env.implementation.scheduler_name, name(workload)
        expected_names = self.expected = expected(workload)
        env.create(workload)
        env.settle(SET_AVAILABLE, predicates.is_available(self.set_name, 1), 60)
        if self.group:
            expected_names = self.expected = self._scale_out(env, workload)
        env.settle(PODS_READY, all_pods_ready(expected_names), 60)
        view = env.settle(STATUSES_AT_REST, has_caught_up(expected_names, self.set_name), 60)
        self.expected = composition.with_actual_gang_names(expected_names, view)

    def _scale_out(self, env: SceneEnvironment, workload: Object) -> ExpectedObjects:
        (group,) = (group for group in read(workload).groups if group.name == self.group)
        expected_set = expected(with_group_replicas(workload, self.group, group.replicas + 1))
        full_name = next(name for name in expected_set.groups if name.endswith(f"-{self.group}"))
        env.patch("podcliquescalinggroups", full_name, {"spec": {"replicas": group.replicas + 1}})
        return expected_set


class WideExpertParallelSet(PublishedSet):
    """Leaders and workers that each need a whole node: they use the host network with host ports, host devices, and
    required anti-affinity. Workers start after their leader (InOrder)."""

    sample, group, nodes = "wide-ep", "decode", 6


class RoutedSet(PublishedSet):
    """A router that starts after the prefill and decode workers (Explicit), with generic ephemeral volumes."""

    sample, group, nodes = "disaggregated", "workers", 3


class RenderedSet(PublishedSet):
    """Seventeen pods whose defaults and empty fields are spelled out."""

    sample, group, nodes = "rendered", "", 5


Published = WideExpertParallelSet | RoutedSet | RenderedSet


def with_group_replicas(workload: Object, group: str, replicas: int) -> Object:
    """Return a copy of a set with another number of replicas in one scaling group."""
    scaled_workload = copy.deepcopy(workload)
    for entry in scaled_workload["spec"]["template"]["podCliqueScalingGroups"]:
        if entry["name"] == group:
            entry["replicas"] = replicas
    return scaled_workload


def provide_storage(env: SceneEnvironment, objects: list[Object], workload: Object) -> None:
    """Give all claims a StorageClass whose volumes the cluster creates immediately, because a cluster of a run has no
    default StorageClass. On a cluster that cannot create such volumes, replace every claim with an emptyDir."""
    claims = [obj for obj in objects if obj["kind"] == "PersistentVolumeClaim"]
    volumes = [volume for spec in _pod_specs(workload) for volume in spec.get("volumes", ())]
    if not env.provisioner:
        for volume in volumes:
            if volume.pop("ephemeral", None) or volume.pop("persistentVolumeClaim", None):
                volume["emptyDir"] = {}
        objects[:] = [obj for obj in objects if obj not in claims]
        return
    specs = [claim["spec"] for claim in claims]
    specs += [volume["ephemeral"]["volumeClaimTemplate"]["spec"] for volume in volumes if "ephemeral" in volume]
    for spec in specs:
        spec["storageClassName"] = env.namespace
    if specs:
        storage_class = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": env.provisioner}
        objects.insert(0, {**storage_class, "metadata": {"name": env.namespace}, "volumeBindingMode": "Immediate"})


def without_host_fields(workload: Object) -> Object:
    """Return a copy of a set whose pods do not use resources of their host, for clusters that do not permit such
    use."""
    workload_without_host = copy.deepcopy(workload)
    for clique in workload_without_host["spec"]["template"]["cliques"]:
        spec = clique["spec"]["podSpec"]
        for field in ("hostNetwork", "hostIPC", "dnsPolicy"):
            spec.pop(field, None)
        for volume in spec.get("volumes", ()):
            if volume.pop("hostPath", None):
                volume["emptyDir"] = {}
        for container in (*spec.get("initContainers", ()), *spec["containers"]):
            container.pop("securityContext", None)
            for port in container.get("ports", ()):
                port.pop("hostPort", None)
            for mount in container.get("volumeMounts", ()):
                mount.pop("mountPropagation", None)
        clique["spec"]["podSpec"] = restricted(spec)
    return workload_without_host


def _pod_specs(workload: Object) -> Iterator[Object]:
    for clique in workload["spec"]["template"]["cliques"]:
        yield clique["spec"]["podSpec"]
