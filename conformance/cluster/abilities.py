"""The abilities of a cluster to simulate more than pods that become Ready immediately, and probes that detect the
abilities within seconds.

A KWOK with its own stages makes a held pod, a crashing pod and a pod with a waiting init container Ready like any other
pod. Scenes with such pods would then judge the implementation wrongly.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

import orjson

from conformance.cluster import nodes, pod_behaviors
from conformance.cluster.existing.marks import with_run_label
from conformance.cluster.kubelet_sim.init_wait import LOST
from conformance.errors import UsageError
from conformance.grove.restricted import restricted
from kube.client import Client
from kube.resource import NODES, PODS

NAMESPACE = "default"
"""The namespace of the probe pods. It already has a service account."""
PROFILE = "dgx-h100"
PROBE_LABEL = pod_behaviors.PREFIX + "preflight"
"""The label of the objects that are created here."""
CHECK_INTERVAL = 0.1
"""Seconds between two checks."""
UNORDERED_STARTUP_TYPES = ("", "CliqueStartupTypeAnyOrder")

Object = Mapping[str, Any]


class Ability(StrEnum):
    """An ability of the cluster that a scene may need."""

    BEHAVIORS = "pod behaviors"
    STARTUP = "init containers that wait for other pods"
    NODE_FAILURES = "node failures"


def required_abilities(obj: object) -> set[Ability]:
    """Return the abilities that a cluster must have for an object, or a patch of an object, to have its effect."""
    abilities = set()
    for key, value in _fields(obj):
        if key in _behavior_annotations():
            abilities.add(Ability.BEHAVIORS)
        elif key == LOST:
            abilities.add(Ability.NODE_FAILURES)
        elif key == "cliqueStartupType" and value not in UNORDERED_STARTUP_TYPES:
            abilities.add(Ability.STARTUP)
    return abilities


async def find_missing_abilities(client: Client, timeout: float, run: str = "") -> dict[Ability, str]:
    """Return the abilities that a cluster lacks, each with the observed symptom, after at most `timeout` seconds.

    Raises UsageError if the cluster does not even simulate a node and a plain pod, because nothing can be judged then.
    The created objects have the label of `run`, and are removed at the end.
    """
    name_prefix = f"preflight-{secrets.token_hex(3)}"
    probe_nodes = [
        with_run_label(node, run) for node in nodes.manifests(PROFILE, 2, name_prefix, {PROBE_LABEL: name_prefix})
    ]
    healthy_node, failed_node = (str(node["metadata"]["name"]) for node in probe_nodes)
    poll = partial(_poll_until, deadline=time.monotonic() + timeout)
    try:
        await nodes.create_nodes(client, probe_nodes)
        if not await poll(partial(_are_schedulable, client, healthy_node, failed_node)):
            raise _simulation_error(f"a fake node is not Ready after {timeout:g} s")
        await asyncio.gather(
            *(client.create(PODS, with_run_label(_pod(probe, name_prefix, healthy_node), run)) for probe in _PROBES)
        )
        await client.patch(NODES, None, failed_node, {"metadata": {"labels": {LOST: "yes"}}})
        verdicts = dict[str, bool | None]()
        poll_probes, poll_failure = (
            partial(_all_decided, client, name_prefix, verdicts),
            partial(_has_failed, client, failed_node),
        )
        _, node_fails = await asyncio.gather(poll(poll_probes), poll(poll_failure))
    finally:
        for probe in _PROBES:
            await client.delete(PODS, NAMESPACE, f"{name_prefix}-{probe.name}", grace_seconds=0)
        await nodes.delete_nodes(client, (healthy_node, failed_node))
    if not verdicts.get(PLAIN_PROBE):
        raise _simulation_error(f"a fake pod is not Ready after {timeout:g} s")
    missing_abilities = {
        probe.ability: probe.symptom for probe in _PROBES if probe.ability is not None and not verdicts[probe.name]
    }
    return (
        missing_abilities
        if node_fails
        else missing_abilities | {Ability.NODE_FAILURES: f"a node with the label {LOST} stays Ready"}
    )


@dataclass(frozen=True)
class _Probe:
    """A pod that shows whether the cluster has an ability. `verdict` returns True if the cluster has the ability, False
    if it lacks the ability, and None if the pod does not show it yet. `symptom` describes a cluster that lacks it."""

    name: str
    ability: Ability | None
    symptom: str
    verdict: Callable[[Object], bool | None]
    annotations: Mapping[str, str]
    init: tuple[str, ...] = ()
    """The arguments of an init container."""


PLAIN_PROBE = "plain"


def _crashes(pod: Object) -> bool | None:
    """Return whether a pod crashes. The first crash suffices; the restart that follows is not awaited."""
    has_crashed = any(
        (status.get("lastState") or {}).get("terminated") for status in _status_list(pod, "containerStatuses")
    )
    return True if has_crashed else False if _condition(pod, "Ready") else None


def _stays_unready(pod: Object) -> bool | None:
    return False if _condition(pod, "Ready") else True if _status_list(pod, "containerStatuses") else None


def _init_container_waits(pod: Object) -> bool | None:
    """Return whether a pod's init container waits. The container's arguments are malformed, so it crashes in the fake
    cluster; other clusters do not read the arguments."""
    waiting_states = [
        (status.get("state") or {}).get("waiting") or {} for status in _status_list(pod, "initContainerStatuses")
    ]
    if any(state.get("reason") == "CrashLoopBackOff" for state in waiting_states):
        return True
    return False if _condition(pod, "Ready") else None


_PROBES = (
    _Probe(PLAIN_PROBE, None, "", lambda pod: True if _condition(pod, "Ready") else None, {}),
    _Probe(
        "held",
        Ability.BEHAVIORS,
        "a pod with conformance.grove.io/hold-ready is Ready",
        _stays_unready,
        {f"{pod_behaviors.PREFIX}hold-ready": "yes"},
    ),
    _Probe(
        "crashes",
        Ability.BEHAVIORS,
        "a pod with conformance.grove.io/behavior: crash-loop does not crash",
        _crashes,
        pod_behaviors.behavior_annotations("crash-loop", running_after="0s", exit_after="0s"),
    ),
    _Probe(
        "waits",
        Ability.STARTUP,
        "a pod with a waiting init container is Ready",
        _init_container_waits,
        {},
        ("--podcliques=none:0",),
    ),
)


async def _all_decided(client: Client, name_prefix: str, verdicts: dict[str, bool | None]) -> bool:
    """Update the verdicts of the probes, and return whether all of them are known."""
    pods = {
        pod["metadata"]["name"]: pod
        for pod in await client.list(PODS, NAMESPACE, selector=f"{PROBE_LABEL}={name_prefix}")
    }
    verdicts |= {probe.name: probe.verdict(pods.get(f"{name_prefix}-{probe.name}", {})) for probe in _PROBES}
    return None not in verdicts.values()


async def _has_failed(client: Client, node: str) -> bool:
    node_object = orjson.loads(await client.get(NODES, None, node))
    return any(
        condition["type"] == "Ready" and condition["status"] == "Unknown"
        for condition in _status_list(node_object, "conditions")
    )


async def _are_schedulable(client: Client, *names: str) -> bool:
    return all([nodes.is_schedulable(orjson.loads(await client.get(NODES, None, name))) for name in names])


async def _poll_until(condition: Callable[[], Awaitable[bool]], deadline: float) -> bool:
    """Poll until the condition is true or the deadline has passed, and return the last value of the condition."""
    while True:
        if (result := await condition()) or time.monotonic() > deadline:
            return result
        await asyncio.sleep(CHECK_INTERVAL)


def _simulation_error(problem: str) -> UsageError:
    hint = "start KWOK (or, on a slow machine, give a larger --time-scale)"
    return UsageError(f"{problem}: KWOK does not run, or does not play nodes of the suite", hint=hint)


def _pod(probe: _Probe, name_prefix: str, node: str) -> Object:
    container = {"name": "main", "image": "registry.example/preflight:1"}
    init = [{**container, "name": "init", "args": list(probe.init)}] if probe.init else []
    spec = {"nodeName": node, "containers": [container], "initContainers": init, "automountServiceAccountToken": False}
    metadata = {"name": f"{name_prefix}-{probe.name}", "namespace": NAMESPACE, "labels": {PROBE_LABEL: name_prefix}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "annotations": dict(probe.annotations)},
        "spec": restricted({**spec, "tolerations": [{"operator": "Exists"}]}),
    }


def _condition(pod: Object, condition_type: str) -> bool:
    return any(
        condition["type"] == condition_type and condition["status"] == "True"
        for condition in _status_list(pod, "conditions")
    )


def _status_list(obj: Object, field: str) -> list[Any]:
    return (obj.get("status") or {}).get(field) or []


def _behavior_annotations() -> frozenset[str]:
    behaviors = pod_behaviors.load()
    return frozenset(
        {pod_behaviors.BEHAVIOR, *(pod_behaviors.PREFIX + name for name in (*behaviors.parameters, *behaviors.holds))}
    )


def _fields(value: object) -> Iterator[tuple[str, object]]:
    """Yield every key with its value, at any depth."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key), item
            yield from _fields(item)
    elif isinstance(value, list):
        for item in value:
            yield from _fields(item)
