"""Fake nodes: manifests from profiles, creation and deletion.

Invariant: a fleet is a pure function of profile, count, pool and labels (TP-34), and its domains are nested (TP-09).
"""

from __future__ import annotations

import asyncio
import ipaddress
import uuid
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from tenacity import AsyncRetrying, RetryError, retry_if_result, wait_fixed

from conformance.cluster import device_pools, node_profiles, pace
from conformance.cluster.device_pools import POOLS
from conformance.cluster.gpu_partitions import PARTITIONS
from conformance.cluster.node_profiles import GPU as GPU
from conformance.cluster.node_profiles import NodeProfile
from conformance.errors import HarnessError, UsageError
from kube.client import Client
from kube.errors import ApiError
from kube.resource import NODES

POOL = "conformance.grove.io/pool"
PROFILE = "conformance.grove.io/profile"
ZONE, BLOCK, RACK = "topology.kubernetes.io/zone", "kubernetes.io/block", "kubernetes.io/rack"
HOSTNAME = "kubernetes.io/hostname"
FABRIC = "nvidia.com/gpu.clique"
"""The label of a node whose GPUs are linked with those of other nodes by NVLink: the nodes with the same value."""
SIMULATED_ANNOTATION = {"kwok.x-k8s.io/node": "fake"}
"""The annotation of nodes that KWOK simulates when it is installed by its chart. Other installations use the label
`type: kwok`, or simulate all nodes."""
PER_ROOT = "conformance.grove.io/gpus-per-pcie-root"
"""The annotation of a node whose GPUs share PCIe roots: how many share one."""
OCCUPIED = "conformance.grove.io/occupied-gpus"
"""The annotation of a node some of whose GPUs are taken: how many, counted from the first one."""
METRICS = "conformance.grove.io/gpu-metrics"
"""The annotation of a node or a pod with the metrics of its GPUs: a JSON object from counters of DCGM to numbers."""
_NOT_READY_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Keys:
    """The label keys for the levels of the topology."""

    zone: str = ZONE
    block: str = BLOCK
    rack: str = RACK


KEYS = Keys()


def node_stem(node_profile: NodeProfile, pool: str = "", fleet: str = "") -> str:
    """Return the common prefix of the names of nodes of one profile, fleet and pool. A hyphen and the index follow
    it."""
    return "-".join(filter(None, (pool, fleet, node_profile.name)))


def node_manifest(
    node_profile: NodeProfile,
    index: int,
    pool: str = "",
    extra_labels: Mapping[str, str] | None = None,
    *,
    fleet: str = "",
    block: str = "",
    location: Mapping[str, str] | None = None,
    occupied: int = 0,
    keys: Keys = KEYS,
) -> Manifest:
    """Return one node: the `index`-th (from 0) of its profile, fleet and pool, in the rack and block of that index.

    A node with a pool has the pool's label and taint, so that only pods that select the pool run on it. `block` is a
    block that the node shares with other profiles of its fleet; without it, each profile has its own blocks. `location`
    are labels for the place of the node, instead of the zone, block and rack that follow from the index. An annotation
    says that `occupied` GPUs are taken.
    """
    fleet_stem = "-".join(filter(None, (pool, fleet)))
    stem = node_stem(node_profile, pool, fleet)
    name = f"{stem}-{index}"
    labels = {
        HOSTNAME: name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": node_profile.architecture,
        "type": "kwok",
        PROFILE: node_profile.name,
        **({keys.zone: "zone-a"} if location is None else {}),
        **node_profile.labels,
        **(location or {}),
    }
    if node_profile.nodes_per_rack and location is None:
        # With the stem in the name, no two fleets of a cluster share a rack or a block (TP-05).
        rack = index // node_profile.nodes_per_rack
        labels[keys.rack] = f"{stem}-rack-{rack}"
        labels[keys.block] = (
            f"{fleet_stem}-{block}" if block else f"{stem}-block-{rack // node_profile.racks_per_block}"
        )
        if node_profile.rack_is_nvlink_domain:
            labels[FABRIC] = f"{uuid.uuid5(uuid.NAMESPACE_DNS, labels[keys.rack])}.0"
    taints: list[Manifest] = msgspec.to_builtins(node_profile.taints)
    if pool:
        labels[POOL] = pool
        taints.append({"key": POOL, "value": pool, "effect": "NoSchedule"})
    labels |= extra_labels or {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": _annotations(node_profile, occupied)},
        "spec": {"taints": taints} if taints else {},
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": _address(stem, index)},  # FC-075: otherwise no pod has a hostIP
                {"type": "Hostname", "address": name},
            ],
            "capacity": dict(node_profile.capacity),
            "allocatable": dict(node_profile.allocatable),
        },
    }


def _annotations(node_profile: NodeProfile, occupied: int) -> dict[str, str]:
    annotations = dict(SIMULATED_ANNOTATION)
    if node_profile.gpus_per_pcie_root > 1:
        annotations[PER_ROOT] = str(node_profile.gpus_per_pcie_root)
    if node_profile.partitions is not None:
        annotations[PARTITIONS] = msgspec.json.encode(node_profile.partitions).decode()
    if occupied:
        annotations[OCCUPIED] = str(occupied)
    if node_profile.gpu_metrics:
        annotations[METRICS] = msgspec.json.encode(node_profile.gpu_metrics).decode()
    if node_profile.pools:
        annotations[POOLS] = device_pools.encoded(node_profile.pools)
    return annotations


def manifests(
    profile_name: str, count: int, pool: str = "", extra_labels: Mapping[str, str] | None = None
) -> list[Manifest]:
    """Return `count` nodes of one profile."""
    node_profile = node_profiles.profile(profile_name)
    return [node_manifest(node_profile, index, pool, extra_labels) for index in range(count)]


def toleration(pool: str) -> dict[str, str]:
    """Return the toleration that a pod needs for the nodes of `pool`. The pod's nodeSelector must be {POOL: pool}."""
    return {"key": POOL, "operator": "Equal", "value": pool, "effect": "NoSchedule"}


def restrict_to_pool(pool: str, workload: Manifest) -> None:
    """Restrict the pods of a PodCliqueSet to the nodes of `pool`."""
    for clique in workload["spec"]["template"]["cliques"]:
        pod = clique["spec"]["podSpec"]
        pod["nodeSelector"] = {**pod.get("nodeSelector", {}), POOL: pool}
        pod["tolerations"] = [*pod.get("tolerations", []), toleration(pool)]


async def create_nodes(client: Client, desired: Sequence[Manifest]) -> None:
    """Create all nodes, with as many concurrent requests as the client allows. Raises kube.errors.ApiError."""
    await asyncio.gather(*(client.create(NODES, manifest) for manifest in desired))


async def create_schedulable_nodes(client: Client, desired: Sequence[Manifest], *, timeout: float = 60.0) -> None:
    """Create all nodes, and return when pods can be bound to them. Raises kube.errors.ApiError if a node cannot be
    created, or HarnessError if the nodes do not become schedulable."""
    await create_nodes(client, desired)
    await wait_until_schedulable(client, [node["metadata"]["name"] for node in desired], timeout=timeout)


async def create_requested_nodes(client: Client, desired: Sequence[Manifest], *, location: str) -> None:
    """Create requested nodes, and return when pods can be bound to them. `location` names the argument in messages.
    Raises UsageError if the API server rejects a node, or HarnessError if the nodes do not become schedulable."""
    try:
        await create_nodes(client, desired)
    except ApiError as error:
        if error.status != 422 and not error.already_exists:
            raise
        hint = "correct the profile, or the options"
        raise UsageError(f"the API server refuses a node: {error.message}", where=location, hint=hint) from error
    await wait_until_schedulable(client, [node["metadata"]["name"] for node in desired])


async def delete_nodes(client: Client, names: Iterable[str]) -> None:
    """Delete all nodes. A node that does not exist is not an error."""
    await asyncio.gather(*(client.delete(NODES, None, name) for name in names))


async def wait_until_schedulable(client: Client, names: Iterable[str], *, timeout: float = 60.0) -> None:
    """Return when all nodes are Ready and no longer have the taint of new nodes. Raises HarnessError after `timeout`
    seconds, or later on an overloaded machine."""
    expected = set(names)

    async def unready_nodes() -> set[str]:
        return expected - {node["metadata"]["name"] for node in await client.list(NODES) if is_schedulable(node)}

    try:
        await AsyncRetrying(retry=retry_if_result(bool), wait=wait_fixed(0.1), stop=pace.stop_after(timeout))(
            unready_nodes
        )
    except RetryError as error:
        unready = sorted(error.last_attempt.result())
        raise HarnessError(
            f"{len(unready)} of {len(expected)} nodes are not Ready after {timeout:g} s, the first: {unready[0]}"
        ) from None


def is_schedulable(node: Mapping[str, Any] | None) -> bool:
    """Return whether a node exists, is Ready, and has none of the taints of nodes that are not Ready."""
    if node is None:
        return False
    conditions = node.get("status", {}).get("conditions") or []
    is_ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
    return is_ready and not any(taint["key"] in _NOT_READY_TAINTS for taint in node.get("spec", {}).get("taints") or [])


def _address(stem: str, index: int) -> str:
    """Return an address in 172.16.0.0/12 that is the same in every run. Two fleets may share addresses, which is
    harmless."""
    start = zlib.crc32(stem.encode()) % (1 << 20)
    return str(ipaddress.IPv4Address("172.16.0.0") + (start + index) % (1 << 20))
