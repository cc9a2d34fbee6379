"""GPUs that are taken before anything is scheduled, as by the workloads of others. Pure functions.

Where GPUs are devices, those that are taken have a taint; otherwise, fewer GPUs of the node are allocatable.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence

from conformance.cluster import gpu_devices
from conformance.cluster.nodes import GPU, OCCUPIED, Manifest
from conformance.errors import UsageError

OPTION = "--occupied"
_SHARE = re.compile(r"([0-9]{1,4})/([1-9][0-9]{0,3})")


def with_occupancy(nodes: Sequence[Manifest], share: str) -> list[Manifest]:
    """Return nodes on each of which a share of the GPUs is taken, such as `2/8`: two of eight. Nodes without GPUs are
    returned unchanged. If the share is empty, as many GPUs are taken as the fleet of a node says. Raises UsageError if
    the share is invalid, or if a node has another number of GPUs."""
    if not share:
        return [_with_fewer(node, int(node["metadata"]["annotations"].get(OCCUPIED, "0"))) for node in nodes]
    match = _SHARE.fullmatch(share)
    if match is None or int(match[1]) > int(match[2]):
        hint = "for example 2/8: two of the eight GPUs of each node"
        raise UsageError(f"{share[:40]!r} is not a share of the GPUs of a node", where=OPTION, hint=hint)
    number, total = int(match[1]), int(match[2])
    counts = {node["metadata"]["name"]: _gpu_count(node) for node in nodes}
    if not any(counts.values()):
        raise UsageError("no node has GPUs", where=OPTION, hint="leave it out, or choose nodes with GPUs")
    for name, count in counts.items():
        if count not in (0, total):
            raise UsageError(f"node {name} has {count} GPUs, not {total}", where=OPTION, hint=f"write …/{count}")
    return [_with_fewer(node, number) if counts[node["metadata"]["name"]] else node for node in nodes]


def _gpu_count(node: Manifest) -> int:
    gpus = gpu_devices.gpus_of(node["metadata"]["annotations"])
    return gpus.count if gpus else int(node["status"]["allocatable"].get(GPU, "0"))


def _with_fewer(node: Manifest, number: int) -> Manifest:
    count = _gpu_count(node)
    if number > count:
        problem = f"{number} GPUs of node {node['metadata']['name']} are taken, which has {count}"
        raise UsageError(problem, where="--nodes", hint="correct occupied in the fleet")
    if not number:
        return node
    changed = copy.deepcopy(node)
    if gpu_devices.gpus_of(node["metadata"]["annotations"]):
        changed["metadata"]["annotations"][OCCUPIED] = str(number)
    else:
        allocatable = changed["status"]["allocatable"]
        allocatable[GPU] = str(int(allocatable[GPU]) - number)
    return changed
