"""INV-009: a serving pod is deleted only for a cause (GS-30, GS-41, GS-42, GS-44, CHG-SC-30).

A deletion is judged if the pod was Ready on a healthy node, all PodGroups of its gang had their minimum Ready, and no
gang of the same set replica has been unhealthy recently. A deletion has a cause if an object above the pod was deleted
or scaled in, the set's template had changed since the pod was created, its clique had too many pods, a pod of higher
priority was waiting, the suite itself deleted or outdated the pod, or a component of the cluster evicted it. A node
whose taints or conditions another user may have written counts as healthy.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from conformance.grove import labels, pods
from conformance.grove.fields import at, condition, decimal, items, label, number, terminating, text
from conformance.history.gangs import Gangs
from conformance.history.origins import Origins
from conformance.history.record import DELETED, Record
from conformance.invariants.invariant import Invariant
from conformance.invariants.pod_owners import PodOwners

GRACE_SECONDS = 5.0
"""Seconds for which a component may act on an earlier state: an unhealthy gang, a waiting pod, a smaller size."""
_UNLIMITED = 1 << 31

SetReplica = tuple[str, str]
"""Name of the set, and index of its replica."""


@dataclass
class _Pod:
    gang: str
    clique: str
    owner_uid: str
    set_replica: SetReplica
    parents: tuple[tuple[str, str, str], ...]
    """The objects that the pod is part of: resource, name, and the pod's replica index in that object (empty for
    none)."""
    template: tuple[object, object]
    """The templates of the set and the clique when the pod was created."""
    priority: int
    is_ready: bool = False
    is_terminating: bool = False


class DeletionHasCause(Invariant):
    """INV-009."""

    timed = True
    id = "INV-009"
    statement = "no pod that serves in a sound gang is deleted without a cause"

    def __init__(self, origins: Origins) -> None:
        super().__init__()
        self._origins = origins
        self._owners = PodOwners()
        self._pods: dict[str, _Pod] = {}
        self._ready_pods: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        """Pods that are Ready and not being deleted, by gang and clique."""
        self._members: defaultdict[str, set[str]] = defaultdict(set)
        """Pods that are not being deleted, by the UID of their clique."""
        self._gangs: defaultdict[SetReplica, set[str]] = defaultdict(set)
        self._once_healthy: set[str] = set()
        """Gangs that have been healthy."""
        self._unhealthy_at: dict[str, float] = {}
        """Gang that has been healthy → the last time at which it was not."""
        self._terminating_cliques: set[str] = set()
        """UIDs of cliques that are being deleted."""
        self._replicas: dict[tuple[str, str], int] = {}
        """Resource and name → desired replicas; negative if the object is being deleted."""
        self._templates: dict[str, object] = {}
        """Set name → the set's template; clique UID → the clique's podSpec."""
        self._hashes: dict[str, str] = {}
        """Template hash of each clique, by UID."""
        self._sizes: dict[str, int] = {}
        self._scale_outs: dict[str, tuple[float, int]] = {}
        """UID of a clique that was scaled out → the time of that, and the number of replicas before it."""
        self._waiting_pods: defaultdict[int, set[str]] = defaultdict(set)
        """Priority → pods that wait for a node."""
        self._waited_at: dict[int, float] = {}
        """Priority → the last time at which a pod with it was waiting."""
        self._nodes: dict[str, Record] = {}

    def observe(self, record: Record, gangs: Gangs) -> None:
        """Judge deletions of pods, and track everything that can be a cause."""
        self._owners.observe(record)
        if record.resource == "nodes":
            self._nodes[record.name] = record
            return
        if record.resource == "pods":
            self._observe_pod(record, gangs)
            return
        if record.resource == "podgangs":
            self._track_health(record.name, gangs, record.at)
        size = number(record.object, "spec", "replicas") or 0
        is_terminating = record.kind == DELETED or terminating(record.object)
        self._replicas[record.resource, record.name] = -1 if is_terminating else size
        if record.resource == "podcliquesets":
            self._templates[record.name] = at(record.object, "spec", "template")
        if record.resource == "podcliques":
            (self._terminating_cliques.add if is_terminating else self._terminating_cliques.discard)(record.uid)
            before = self._sizes.get(record.uid)
            if before is not None and before < size:
                self._scale_outs[record.uid] = (record.at, before)
            self._sizes[record.uid] = size
            self._templates[record.uid] = at(record.object, "spec", "podSpec")
            self._hashes[record.uid] = label(record.object, labels.TEMPLATE_HASH)

    def _unknown_reason(self, gangs: Gangs, now: float) -> str:
        judged = self._once_healthy or any(self._is_healthy(name, gangs) for name in gangs.names())
        return "" if judged else "no gang was ever sound"

    # -- keeping count -------------------------------------------------------------------------------------------

    def _observe_pod(self, record: Record, gangs: Gangs) -> None:
        document = record.object
        pod = self._pods.get(record.uid)
        if pod is None:
            if not label(document, labels.GANG):
                self._track_waiting(record, number(document, "spec", "priority") or 0)
                return
            pod = self._pods[record.uid] = self._add_pod(document, self._owners.original_owner(record))
        self._track_health(pod.gang, gangs, record.at)
        is_terminating = record.kind == DELETED or terminating(document)
        if is_terminating and not pod.is_terminating:
            self._judge(record, pod, gangs)
        pod.is_terminating = is_terminating
        pod.is_ready = pods.is_ready(document)
        self._track_waiting(record, pod.priority)
        for group, is_member in (
            (self._members[pod.owner_uid], not is_terminating),
            (self._ready_pods[pod.gang, pod.clique], pod.is_ready),
        ):
            (group.add if is_member and not is_terminating else group.discard)(record.uid)

    def _add_pod(self, document: Mapping[str, object], owner_uid: str) -> _Pod:
        set_replica = (label(document, labels.PART_OF), label(document, labels.SET_INDEX))
        gang = label(document, labels.GANG)
        self._gangs[set_replica].add(gang)
        return _Pod(
            gang,
            label(document, labels.CLIQUE),
            owner_uid,
            set_replica,
            (
                ("podcliquesets", set_replica[0], set_replica[1]),
                ("podcliquescalinggroups", label(document, labels.GROUP), label(document, labels.GROUP_INDEX)),
                ("podgangs", gang, ""),
            ),
            self._template(set_replica[0], owner_uid),
            number(document, "spec", "priority") or 0,
        )

    def _template(self, set_name: str, clique_uid: str) -> tuple[object, object]:
        return self._templates.get(set_name), self._templates.get(clique_uid)

    def _track_health(self, gang: str, gangs: Gangs, moment: float) -> None:
        """Track whether a gang has been healthy until now."""
        if self._is_healthy(gang, gangs):
            self._once_healthy.add(gang)
        elif gang in self._once_healthy:
            self._unhealthy_at[gang] = moment

    def _track_waiting(self, record: Record, priority: int) -> None:
        if record.uid in self._waiting_pods[priority]:
            self._waited_at[priority] = record.at
        self._waiting_pods[priority].discard(record.uid)
        if record.kind != DELETED and not pods.is_bound(record.object) and not terminating(record.object):
            self._waiting_pods[priority].add(record.uid)

    def _is_healthy(self, name: str, gangs: Gangs) -> bool:
        """Return whether every group has its minimum of Ready pods."""
        gang = gangs[name]
        return bool(gang.minimums) and all(
            len(self._ready_pods[name, group]) >= minimum for group, minimum in gang.minimums.items()
        )

    # -- judging -------------------------------------------------------------------------------------------------

    def _judge(self, record: Record, pod: _Pod, gangs: Gangs) -> None:
        if self._violation is not None or not pod.is_ready or record.listed or not self._is_healthy(pod.gang, gangs):
            return
        unhealthy_gangs = [
            name for name in self._gangs[pod.set_replica] & self._once_healthy if not self._is_healthy(name, gangs)
        ]
        if unhealthy_gangs or any(
            record.at - self._unhealthy_at.get(name, float("-inf")) <= GRACE_SECONDS
            for name in self._gangs[pod.set_replica]
        ):
            return
        if self._is_node_healthy(record) and not self._has_cause(record, pod):
            reason = f"pod {record.name} was Ready, gang {pod.gang} was sound, and nothing asked for its deletion"
            self._report_violation(reason, record)

    def _has_cause(self, record: Record, pod: _Pod) -> bool:
        """Return whether the deletion has a cause."""
        if (
            record.uid in self._origins.excused
            or pod.owner_uid not in self._sizes
            or pod.owner_uid in self._terminating_cliques
        ):
            return True
        if self._is_unwanted(pod) or self._template(pod.set_replica[0], pod.owner_uid) != pod.template:
            return True
        if label(record.object, labels.TEMPLATE_HASH) != self._hashes.get(pod.owner_uid, ""):
            return True
        disruption_reason = text(condition(record.object, "DisruptionTarget"), "reason")
        if disruption_reason not in ("", "PreemptionByScheduler") and self._origins.is_disrupted(record.name):
            return True
        resized_at, previous_size = self._scale_outs.get(pod.owner_uid, (float("-inf"), 0))
        size = self._sizes.get(pod.owner_uid, 0)
        if len(self._members[pod.owner_uid]) > (
            min(size, previous_size) if record.at - resized_at <= GRACE_SECONDS else size
        ):
            return True
        return any(
            waiting or record.at - self._waited_at.get(priority, float("-inf")) <= GRACE_SECONDS
            for priority, waiting in self._waiting_pods.items()
            if priority > pod.priority
        )

    def _is_unwanted(self, pod: _Pod) -> bool:
        """Return whether an object that the pod is part of is being deleted, or has been scaled in below the pod's
        index."""
        for resource, name, index in pod.parents:
            desired = self._replicas.get((resource, name), _UNLIMITED)
            if desired < 0 or ((number_of_part := decimal(index)) is not None and number_of_part >= desired):
                return True
        return False

    def _is_node_healthy(self, record: Record) -> bool:
        node = self._nodes.get(pods.node(record.object))
        if node is None or node.kind == DELETED or terminating(node.object):
            return False
        if node.name in self._origins.changed_nodes:
            return True
        is_tainted = any(text(taint, "effect") == "NoExecute" for taint in items(node.object, "spec", "taints"))
        return not is_tainted and text(condition(node.object, "Ready"), "status") == "True"
