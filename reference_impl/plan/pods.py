"""The pods of a clique: which pods are missing, which are surplus, and their manifests (spec OBJ-215, OBJ-250 to
OBJ-265)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from reference_impl.api import models
from reference_impl.api.models import PodClique
from reference_impl.api.pods import Pod
from reference_impl.plan import claims, labels, startup, timestamps
from reference_impl.plan.children import Manifest, owner_reference, with_environment


def index_of(pod: Pod) -> int:
    """Return the pod's index, which is the number at the end of its hostname, or -1 if there is no number."""
    index_text = pod.spec.hostname.rpartition("-")[2]
    return int(index_text) if index_text.isdigit() else -1


def free_indices(active: list[Pod], count: int) -> list[int]:
    """Return the lowest indices that no active pod uses."""
    used = {index_of(pod) for pod in active}
    result: list[int] = []
    candidate = 0
    while len(result) < count:
        if candidate not in used:
            result.append(candidate)
        candidate += 1
    return result


@dataclass(frozen=True)
class PodDifference:
    """The pods to delete, and the index and gang of each pod to create."""

    surplus: list[Pod]
    missing: list[tuple[int, str]]


def difference(
    shares: Mapping[str, int], pods: list[Pod], target: str, may_create: Callable[[str], bool]
) -> PodDifference:
    """Return the pods to delete and to create so that the pods of a clique are in its gangs.

    `shares` says how many pods each gang holds, `may_create` whether pods may be created in a gang, and `target` is the
    template hash that pods should have. A finished pod does not count as a replica: it is deleted and replaced
    (OBJ-265). The least valuable surplus pods are deleted first (`deletion_rank`). Pods never change their gang;
    instead, they are deleted from one gang and created in another.
    """
    surplus = [pod for pod in pods if pod.finished and not pod.terminating]
    active = [pod for pod in pods if pod.active]
    by_gang: dict[str, list[Pod]] = {}
    for pod in active:
        by_gang.setdefault(pod.metadata.label(labels.PODGANG), []).append(pod)
    for gang, gang_pods in by_gang.items():
        if (extra_count := len(gang_pods) - shares.get(gang, 0)) > 0:
            surplus += sorted(gang_pods, key=lambda pod: deletion_rank(pod, target))[:extra_count]
    gangs_to_fill = [
        gang for gang, count in shares.items() if may_create(gang) for _ in range(count - len(by_gang.get(gang, ())))
    ]
    removed_uids = {pod.metadata.uid for pod in surplus}
    remaining = [pod for pod in active if pod.metadata.uid not in removed_uids]
    return PodDifference(surplus, list(zip(free_indices(remaining, len(gangs_to_fill)), gangs_to_fill, strict=True)))


_PHASES = {"Unknown": 1, "Running": 2}


def deletion_rank(pod: Pod, target: str) -> tuple[float, ...]:
    """Return the sort key of a pod for scale-in; the pod with the lowest key is deleted first (CHG-SC-36). `target` is
    the template hash that pods should have. Among pods that Kubernetes does not distinguish, the pod with the highest
    index is deleted first."""
    created = timestamps.seconds(pod.metadata.creation_timestamp)
    return (
        pod.scheduled,
        _PHASES.get(pod.status.phase, 0),
        pod.ready,
        pod.metadata.label(labels.TEMPLATE_HASH) == target,
        -math.inf if created is None else -created,
        -index_of(pod),
    )


def without_attempt_details(message: str, clique: str) -> str:
    """Return a message about a pod of the clique without the parts that differ between attempts: the random suffix of
    the pod's name, and the used amount of a quota."""
    message = re.sub(r", used: \S+, limited: ", ", limited: ", message)
    return re.sub(rf"\b{re.escape(clique)}-[a-z0-9]{{5}}\b", f"{clique}-*", message)


def _gates(pod_spec: Manifest) -> list[Manifest]:
    """Return Grove's gate and the gates of the template. The clients that added the latter must remove them."""
    other_gates = [gate for gate in pod_spec.get("schedulingGates") or () if gate.get("name") != labels.GATE]
    return [{"name": labels.GATE}, *other_gates]


class PodBuilder:
    """Builds the pods of one clique. Parts that all pods have in common are built once."""

    def __init__(
        self,
        clique: PodClique,
        scheduler_name: str,
        waits: dict[str, int] | None = None,
        init_image: str = "",
        claims_of: Callable[[int], list[str]] | None = None,
    ) -> None:
        """`waits` holds, for each parent clique, the number of its pods that must be Ready before this clique's pods
        may start (`startup.awaited_cliques`). `claims_of` returns the names of a pod's ResourceClaims by the pod's
        index."""
        self._claims_of = claims_of
        meta = clique.metadata
        pcs, index = meta.label(labels.PART_OF), meta.label(labels.REPLICA_INDEX)
        replica = f"{pcs}-{index}"
        self._name = meta.name
        self._namespace = meta.namespace
        self._owner = owner_reference(models.PODCLIQUES.api_version, "PodClique", meta)
        self._annotations = meta.annotations
        self._labels = {
            **(meta.labels or {}),
            labels.PODCLIQUE: meta.name,
            labels.REPLICA_INDEX: index,
        }
        environment: list[Manifest] = [
            {"name": "GROVE_PCS_NAME", "value": pcs},
            {"name": "GROVE_PCS_INDEX", "value": index},
            {"name": "GROVE_PCLQ_NAME", "value": meta.name},
            {"name": "GROVE_HEADLESS_SERVICE", "value": f"{replica}.{meta.namespace}.svc.cluster.local"},
            {
                "name": "GROVE_PCLQ_POD_INDEX",
                "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{labels.POD_INDEX}']"}},
            },
        ]
        self._spec: dict[str, Any] = {
            **startup.with_init_container(
                with_environment(clique.spec.pod_spec, environment), pcs, waits or {}, init_image
            ),
            "schedulingGates": _gates(clique.spec.pod_spec),
            "schedulerName": clique.spec.pod_spec.get("schedulerName") or scheduler_name,
            "subdomain": replica,
        }

    def pod(self, index: int, gang: str) -> Manifest:
        """Return the manifest of the clique's pod with this index, labeled as a member of `gang`."""
        metadata: Manifest = {
            "generateName": f"{self._name}-",
            "namespace": self._namespace,
            "labels": {**self._labels, labels.PODGANG: gang, labels.POD_INDEX: str(index)},
            "ownerReferences": [self._owner],
        }
        if self._annotations:
            metadata["annotations"] = self._annotations
        spec = claims.with_claims(self._spec, self._claims_of(index)) if self._claims_of else self._spec
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {**spec, "hostname": f"{self._name}-{index}"},
        }
