"""Proof that a cluster has the Workload API: the API server keeps its fields and serves its kinds, kube-scheduler
treats groups as gangs, and the controller manager removes their finalizers.

Discovery proves this only for the API server (WL37-E17). Therefore groups are created whose pods fit on no node. A
scheduler with the gates does not process an incomplete group, and reports each pod of a complete group as
unschedulable. No pod is ever bound. The proof works on any cluster whose kube-scheduler has the profile `scheduler`.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import orjson
from tenacity import AsyncRetrying, RetryError, retry_if_not_result, wait_fixed

from conformance.cluster import pace
from conformance.cluster.features import APISERVER, CONTROLLER_MANAGER, SCHEDULER, Features
from conformance.errors import UsageError
from conformance.grove.restricted import restricted
from kube.client import Client
from kube.errors import ApiError
from kube.resource import NAMESPACES, PODS, Resource

GROUP = "scheduling.k8s.io"
FLAT_VERSIONS, TREE_VERSION = ("v1beta1", "v1alpha2"), "v1alpha3"
"""Versions with PodGroups, the newest first, and the version with CompositePodGroups (WL37-E01)."""
TIMEOUT_SECONDS = 30.0
"""Seconds within which each component must have acted. It normally takes less than one; a scheduler that has had to
wait for its API needs 15 (WL37-E22)."""
GENERIC, GANG, TOPOLOGY, COMPOSITE, PREEMPTION = (
    "GenericWorkload",
    "GangScheduling",
    "TopologyAwareWorkloadScheduling",
    "CompositePodGroup",
    "WorkloadAwarePreemption",
)
NOWHERE_LABEL = {"conformance.grove.io/preflight": "nowhere"}
"""A label that no node has."""
Manifest = dict[str, Any]
LastError = Callable[[str], str]
"""Returns the last error in the log of a component; empty if the log cannot be read."""


@dataclass(frozen=True)
class ExpectedFeatures:
    """The features that a cluster should have. `version` is the version of PodGroups, or empty if no part of the
    Workload API is expected."""

    version: str
    topology: bool = False
    tree: bool = False
    preemption: bool = False
    scheduler: bool = True

    @classmethod
    def of(cls, features: Features, minor: str, scheduler: bool = True) -> ExpectedFeatures:
        """Return the features to expect. A gate that is enabled in one component must be enabled in all components that
        need it."""
        is_enabled = features.is_on(GENERIC) or any(name.startswith(f"{GROUP}/") for name in features.runtime_config)
        has_beta = tuple(map(int, minor.split("."))) >= (1, 37)
        return cls(
            version=FLAT_VERSIONS[0 if has_beta else 1] if is_enabled else "",
            topology=features.is_on(TOPOLOGY),
            tree=features.is_on(COMPOSITE),
            preemption=features.is_on(PREEMPTION),
            scheduler=scheduler,
        )

    @property
    def pod_groups(self) -> Resource:
        """Return the resource of leaf groups."""
        return Resource(GROUP, self.version, "podgroups", "PodGroup")

    @property
    def composites(self) -> Resource:
        """Return the resource of inner groups."""
        return Resource(GROUP, TREE_VERSION, "compositepodgroups", "CompositePodGroup")


async def check(
    client: Client,
    expected: ExpectedFeatures,
    *,
    scheduler: str,
    timeout: float = TIMEOUT_SECONDS,
    last_error: LastError = lambda component: "",
) -> None:
    """Raise UsageError with the first component that lacks something, and how to start it. All created objects are
    removed.

    `scheduler` is the scheduler name of kube-scheduler.
    """
    if expected.version:
        namespace = f"preflight-{secrets.token_hex(3)}"
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        preflight = _Preflight(client, expected, namespace, scheduler, timeout, last_error)
        try:
            await preflight.check()
        except UsageError:
            await preflight.remove_finalizers()
            raise
        finally:
            await client.delete(NAMESPACES, None, namespace)


class _Preflight:
    def __init__(
        self,
        client: Client,
        expected: ExpectedFeatures,
        namespace: str,
        scheduler: str,
        timeout: float,
        last_error: LastError,
    ) -> None:
        self._client, self._expected, self._namespace = client, expected, namespace
        self._scheduler, self._timeout, self._last_error = scheduler, timeout, last_error

    async def check(self) -> None:
        await self._wait_for_service_account()
        await self._check_pod_fields()
        await self._check_api()
        await self._check_group_fields()
        if self._expected.scheduler:
            await self._check_scheduler()
        await self._check_controller()

    # -- the API server: what it serves and keeps, by requests that change nothing ---------------------------------

    async def _wait_for_service_account(self) -> None:
        path = f"/api/v1/namespaces/{self._namespace}/serviceaccounts/default"

        async def exists() -> bool:
            return (await self._client.exchange("GET", path)).status == 200

        if not await self._wait_until(exists):
            problem = f"makes no service account within {self._timeout:g} s"
            raise UsageError(problem, where=CONTROLLER_MANAGER, hint="see its log")

    async def _check_pod_fields(self) -> None:
        """Check that pods keep their scheduling group. If the gate is disabled, the field is dropped, and the pods of a
        gang are scheduled one by one (WL37-E10)."""
        stored = await self._dry_run(PODS, self._pod("kept", "absent"))
        if "schedulingGroup" not in stored["spec"]:
            raise _disabled_gate_error(
                APISERVER, GENERIC, "it drops schedulingGroup of pods: gangs would be plain pods"
            )

    async def _check_api(self) -> None:
        expected = self._expected
        for resource, gate in ((expected.pod_groups, GENERIC), (expected.composites, COMPOSITE)):
            if resource == expected.composites and not expected.tree:
                continue
            response = await self._client.exchange("GET", f"/apis/{resource.group}/{resource.version}")
            if response.status == 404:
                version = f"{resource.group}/{resource.version}"
                problem = (
                    f"{version} is not served: a kube-scheduler with the gate binds no pod at all, plain ones included"
                )
                raise UsageError(problem, where=APISERVER, hint=f"start it with --runtime-config={version}=true")
            if response.status >= 400:
                raise response.error()
            if resource.plural not in {entry["name"] for entry in orjson.loads(response.content)["resources"]}:
                raise _disabled_gate_error(APISERVER, gate, f"{resource} are not served")

    async def _check_group_fields(self) -> None:
        """Check that groups keep the fields of the enabled gates. Fields of disabled gates are dropped (WL37-E18, E20,
        WL-F07, WL-F08)."""
        expected = self._expected
        group = self._group("kept", 1, parent="absent" if expected.tree else "", topology=expected.topology)
        if expected.preemption:
            group["spec"]["disruptionMode"] = "PodGroup"
        stored = await self._dry_run(expected.pod_groups, group)
        gates = {
            "schedulingConstraints": TOPOLOGY,
            "parentCompositePodGroupName": COMPOSITE,
            "disruptionMode": PREEMPTION,
        }
        for name, gate in gates.items():
            if name in group["spec"] and stored["spec"].get(name) != group["spec"][name]:
                raise _disabled_gate_error(APISERVER, gate, f"it drops {name} of groups without an error")

    async def _dry_run(self, resource: Resource, body: Manifest) -> Manifest:
        path = resource.path(self._namespace)
        response = await self._client.request("POST", path, params={"dryRun": "All"}, body=body)
        stored: Manifest = orjson.loads(response)
        return stored

    # -- kube-scheduler: what it reports about pods that fit nowhere -----------------------------------------------

    async def _check_scheduler(self) -> None:
        gate = GENERIC if self._expected.version == FLAT_VERSIONS[0] else f"{GENERIC} or {GANG}"
        await self._create(self._expected.pod_groups, self._group("flat", 2, topology=self._expected.topology))
        probes = [_Probe(("flat-0",), ("flat-1",), gate, "the pods of a PodGroup are bound one by one")]
        if self._expected.tree:
            await self._create(self._expected.composites, self._composite("root", 2))
            for leaf in ("leaf-0", "leaf-1"):
                await self._create(self._expected.pod_groups, self._group(leaf, 1, parent="root"))
            probes.append(
                _Probe(("leaf-0-0",), ("leaf-1-0",), COMPOSITE, "a part of a CompositePodGroup is bound alone")
            )
        for probe in probes:
            for name in probe.first_pods:
                await self._create(PODS, self._pod(name, name.rpartition("-")[0]))
        # Pods are processed in the order of their creation: once plain-1 has a condition, all earlier pods have theirs.
        for name in ("plain-0", "plain-1"):
            await self._create(PODS, self._pod(name))
            if not await self._wait_for_conditions([name]):
                raise self._scheduler_error()
        for probe in probes:
            if any([_condition(await self._read(name)) for name in probe.first_pods]):
                raise _disabled_gate_error(SCHEDULER, probe.gate, probe.consequence)
        for probe in probes:
            for name in probe.remaining_pods:
                await self._create(PODS, self._pod(name, name.rpartition("-")[0]))
        for probe in probes:
            if not await self._wait_for_conditions([*probe.first_pods, *probe.remaining_pods]):
                problem = f"says nothing of a complete group within {self._timeout:g} s{self._cause(SCHEDULER)}"
                raise UsageError(problem, where=SCHEDULER, hint=f"start it with --feature-gates={probe.gate}=true")
        if self._expected.topology:
            condition = _condition(await self._read("flat-0"))
            if "placement" not in str(condition.get("message")):
                raise _disabled_gate_error(SCHEDULER, TOPOLOGY, "it ignores the topology of groups")

    def _scheduler_error(self) -> UsageError:
        cause = self._cause(SCHEDULER) or ": one of its APIs may not be served"
        return UsageError(
            f"says nothing of a plain pod within {self._timeout:g} s{cause}",
            where=SCHEDULER,
            hint=f"have the API server serve what the gates of {SCHEDULER} need, or turn these off",
        )

    def _cause(self, component: str) -> str:
        return f": {error}" if (error := self._last_error(component)) else ""

    async def _wait_for_conditions(self, names: Sequence[str]) -> bool:
        async def are_reported() -> bool:
            return all([_condition(await self._read(name)) for name in names])

        return await self._wait_until(are_reported)

    async def _read(self, name: str) -> Manifest:
        pod: Manifest = orjson.loads(await self._client.get(PODS, self._namespace, name))
        return pod

    # -- the controller manager ------------------------------------------------------------------------------------

    async def _check_controller(self) -> None:
        """Check that the controller manager removes the finalizers of a deleted PodGroup. Without its controller, the
        PodGroup remains forever (WL37-E21)."""
        resource = self._expected.pod_groups
        await self._create(resource, self._group("empty", 1))
        await self._client.delete(resource, self._namespace, "empty")

        async def is_deleted() -> bool:
            return await self._client.get_or_none(resource, self._namespace, "empty") is None

        if not await self._wait_until(is_deleted):
            raise _disabled_gate_error(
                CONTROLLER_MANAGER, GENERIC, f"a deleted PodGroup is still there after {self._timeout:g} s"
            )

    async def remove_finalizers(self) -> None:
        """Remove the finalizers of all groups: without a controller that does this, the namespace would remain
        forever."""
        resource = self._expected.pod_groups
        with suppress(ApiError):  # not served, or a group has been deleted
            for group in await self._client.list(resource, self._namespace):
                body = {"metadata": {"finalizers": None}}
                await self._client.patch(resource, self._namespace, group["metadata"]["name"], body)

    # -- objects ---------------------------------------------------------------------------------------------------

    async def _create(self, resource: Resource, body: Manifest) -> None:
        await self._client.create(resource, body, namespace=self._namespace)

    def _pod(self, name: str, group: str = "") -> Manifest:
        spec: Manifest = {
            "schedulerName": self._scheduler,
            "nodeSelector": NOWHERE_LABEL,
            "containers": [{"name": "none", "image": "registry.k8s.io/pause"}],
        }
        if group:
            spec["schedulingGroup"] = {"podGroupName": group}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": restricted(spec)}

    def _group(self, name: str, count: int, *, parent: str = "", topology: bool = False) -> Manifest:
        spec: Manifest = {"schedulingPolicy": {"gang": {"minCount": count}}}
        if topology:
            spec["schedulingConstraints"] = {"topology": [{"key": next(iter(NOWHERE_LABEL))}]}
        if parent:
            spec |= {"parentCompositePodGroupName": parent, "workloadRef": _workload_reference(name)}
        resource = self._expected.pod_groups
        return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}, "spec": spec}

    def _composite(self, name: str, count: int) -> Manifest:
        resource = self._expected.composites
        spec = {"schedulingPolicy": {"gang": {"minGroupCount": count}}, "workloadRef": _workload_reference(name)}
        return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}, "spec": spec}

    async def _wait_until(self, condition: Callable[[], Awaitable[bool]]) -> bool:
        retry = AsyncRetrying(
            retry=retry_if_not_result(bool), wait=wait_fixed(0.05), stop=pace.stop_after(self._timeout)
        )
        try:
            await retry(condition)
        except RetryError:
            return False
        return True


@dataclass(frozen=True)
class _Probe:
    """A group whose `first_pods` are not processed before the `remaining_pods` exist. `gate` is the gate that is
    missing in a scheduler that does process them."""

    first_pods: tuple[str, ...]
    remaining_pods: tuple[str, ...]
    gate: str
    consequence: str


def _workload_reference(name: str) -> dict[str, str]:
    return {"workloadName": "preflight", "templateName": name}


def _condition(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the condition that the scheduler has set on a pod; empty if there is none."""
    conditions = pod.get("status", {}).get("conditions") or []
    return next((condition for condition in conditions if condition["type"] == "PodScheduled"), {})


def _disabled_gate_error(component: str, gate: str, problem: str) -> UsageError:
    gates = ",".join(f"{name}=true" for name in gate.split(" or "))
    return UsageError(
        f"the feature gate {gate} is off: {problem}", where=component, hint=f"start it with --feature-gates={gates}"
    )
