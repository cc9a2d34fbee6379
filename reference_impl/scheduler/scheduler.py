"""The gang scheduler: scheduling cycles based on the informer caches, bindings, conditions, and events about waiting
gangs."""

from __future__ import annotations

import asyncio
import gc
import logging
from time import perf_counter
from typing import Any

from kube.client import Client
from kube.errors import REQUEST_FAILED, ApiError
from kube.informer import Informer, typed_decoder
from kube.resource import NODES, PODS
from reference_impl.api import models
from reference_impl.api.models import PodGang, to_json
from reference_impl.plan import labels
from reference_impl.runtime import logs
from reference_impl.runtime.clock import now
from reference_impl.runtime.events import EventRecorder
from reference_impl.scheduler import cycle, gang_status, snapshot, volume_decisions
from reference_impl.scheduler.capacity import Capacity
from reference_impl.scheduler.devices import decisions as device_decisions
from reference_impl.scheduler.devices.claim_store import ClaimStore
from reference_impl.scheduler.gang import Gang, score
from reference_impl.scheduler.metrics import SchedulerMetrics
from reference_impl.scheduler.model import Node, Pod
from reference_impl.scheduler.preemption import Eviction
from reference_impl.scheduler.state_informers import StateInformers
from reference_impl.scheduler.unschedulable import Unschedulable, reasons

log = logging.getLogger(__name__)

SETTLE_SECONDS = 0.02
"""Watch events that arrive within this time are handled by one cycle."""
SETTLE_PER_GANG = 0.0001
"""The settle time per gang, for clusters with more than 200 gangs. A cycle inspects every gang, which takes about 30 µs
each, so that cycles occupy about a quarter of the time (tests/bench/gang_cycle.py)."""
STATUS_SECONDS = 0.2
"""The minimum interval, in seconds, between writes of conditions. It lets intermediate states of a gang share one
write."""
RESOLVE_SECONDS = 1.0
"""Interval between requests about pods whose binding request got no response."""
RESERVATION_SECONDS = 30.0
"""The time, in seconds, for which room is reserved for a gang whose search gives up. After that, gangs of lower
priority may use the room (GS-25)."""
GANG_INDEX = "gang"


class GangScheduler:
    """Schedules the gangs that name this scheduler. `pods` is the pod class for the version of the API server, and
    `devices` whether the server has ResourceClaims."""

    def __init__(self, client: Client, *, name: str, pods: type[Pod] = Pod, devices: bool = True) -> None:
        self._client, self._name = client, name
        self.metrics = SchedulerMetrics()
        self.metrics.count_requests(client)
        self._nodes = Informer(client, NODES, typed_decoder(Node))
        self._pods: Informer[Pod] = Informer(client, PODS, typed_decoder(pods))
        self._gangs = Informer(client, models.PODGANGS, typed_decoder(PodGang))
        self._bindings = Informer(client, models.TOPOLOGY_BINDINGS, typed_decoder(models.ClusterTopologyBinding))
        self._state_informers = StateInformers(client, self._on_state_change)
        self._claim_store = ClaimStore(client, self._on_state_change, served=devices)
        self._pods.add_index(GANG_INDEX, self._gang_of)
        self._assumed_nodes: dict[str, str] = {}
        self._waiting_reasons: dict[str, str] = {}
        self._pending = self._placement_depends_on_pods = False
        """Whether pods wait, and whether their placement depends on where other pods are."""
        self._postponed: set[str] = set()
        """Gangs whose nodes are chosen and whose claims are not bound yet."""
        self._preemptors: set[str] = set()
        """Gangs that wait for the termination of pods that were evicted in their favor."""
        self._reserved_since: dict[str, float] = {}
        """The time since which room has been reserved, by gang."""
        self._preemptors_by_gang: dict[str, str] = {}
        """Gangs whose pods are being evicted, with the preempting gang."""
        self._posted_notes: dict[str, str] = {}
        self._events = EventRecorder(client, name)
        self._unschedulable = Unschedulable(client, self._pods, self._events)
        self._unresolved_pods: dict[str, Pod] = {}
        """Pods (by uid) whose binding request got no response. Only the API server knows whether they are bound."""
        self._unresolved_event = asyncio.Event()
        self._changed = asyncio.Event()
        self._stale_gangs: set[tuple[str, str]] = set()
        self._stale_event = asyncio.Event()
        self.ready = asyncio.Event()
        self._nodes.add_handler(self._on_node)
        self._pods.add_handler(self._on_pod)
        self._gangs.add_handler(self._on_gang)

    async def run(self) -> None:
        """Watch the cluster and schedule until cancelled."""
        async with asyncio.TaskGroup() as group:
            informers: tuple[Informer[Any], ...] = (
                self._nodes,
                self._pods,
                self._gangs,
                *self._state_informers.informers.values(),
                *self._claim_store.informers,
            )
            for informer in informers:
                group.create_task(informer.run())
            # Only preferences need topology bindings, and not every cluster serves them, so startup does not wait for
            # their cache.
            group.create_task(self._bindings.run())
            for informer in informers:
                await informer.wait_until_synced()
            gc.freeze()
            self.ready.set()
            group.create_task(self._write_statuses())
            group.create_task(self._unschedulable.run())
            group.create_task(self._resolve_bindings())
            await self._schedule()

    async def _schedule(self) -> None:
        """Run a cycle whenever something has changed, until cancelled."""
        while True:
            await self._changed.wait()
            await asyncio.sleep(max(SETTLE_SECONDS, SETTLE_PER_GANG * len(self._gangs)))
            self._changed.clear()
            await self._cycle()

    @staticmethod
    def _gang_of(pod: Pod) -> tuple[str, ...]:
        gang = pod.metadata.label(labels.PODGANG)
        return (f"{pod.metadata.namespace}/{gang}",) if gang else ()

    def _on_node(self, event_type: str, old: Node | None, item: Node) -> None:
        if (
            old is None
            or event_type == "DELETED"
            or old.usable != item.usable
            or old.allocatable != item.allocatable
            or old.spec != item.spec
            or old.metadata.labels != item.metadata.labels
        ):
            self._changed.set()

    def _on_pod(self, event_type: str, old: Pod | None, item: Pod) -> None:
        if item.spec.node_name or event_type == "DELETED":
            self._assumed_nodes.pop(item.metadata.uid, None)
        frees_capacity = event_type == "DELETED" or (old is not None and old.holds_resources != item.holds_resources)
        has_new_claims = old is not None and old.status.resource_claim_statuses != item.status.resource_claim_statuses
        if frees_capacity or (item.waiting and (old is None or not old.waiting or has_new_claims)):
            self._changed.set()
        gang = item.metadata.label(labels.PODGANG)
        if gang and item.spec.node_name and (old is None or old.ready != item.ready or event_type == "DELETED"):
            self._mark_stale((item.metadata.namespace, gang))

        if self._placement_depends_on_pods and old is not None and _filter_inputs(old) != _filter_inputs(item):
            self._changed.set()

    def _on_state_change(self) -> None:
        if self._pending:
            self._changed.set()

    def _on_gang(self, event_type: str, old: PodGang | None, item: PodGang) -> None:
        if event_type == "DELETED":
            self._posted_notes.pop(f"{item.metadata.namespace}/{item.metadata.name}", None)
        elif old is None or old.spec != item.spec or not snapshot.is_responsible(old, self._name):
            self._changed.set()

    def _mark_stale(self, key: tuple[str, str]) -> None:
        self._stale_gangs.add(key)
        self._stale_event.set()

    def _gang(self, item: PodGang) -> Gang:
        pods = self._pods.indexed(GANG_INDEX, f"{item.metadata.namespace}/{item.metadata.name}")
        binding = self._bindings.get("", (item.metadata.annotations or {}).get(labels.TOPOLOGY_NAME, ""))
        levels = tuple(level.key for level in binding.spec.levels) if binding else ()
        return snapshot.gang(item, pods, self._name, self._assumed_nodes, levels)

    async def _cycle(self) -> None:
        """Run one scheduling cycle: decide about all waiting gangs, then evict and bind."""
        started_at = perf_counter()
        items = [item for item in self._gangs if snapshot.is_responsible(item, self._name)]
        items.sort(key=lambda item: (item.metadata.creation_timestamp or "", item.metadata.key))
        items.sort(key=lambda item: f"{item.metadata.namespace}/{item.metadata.name}" not in self._postponed)
        gangs = {(g := self._gang(item)).name: (g, item) for item in items}
        open_gangs = sum(any(group.waiting or group.missing_count for group in g.groups) for g, _ in gangs.values())
        if not open_gangs:
            self.metrics.record_cycle(0, 0, perf_counter() - started_at)
            self._unschedulable.replace(())
            self._pending = self._placement_depends_on_pods = False
            return
        self._preemptors &= {name for name, (g, _) in gangs.items() if not g.minimum_reached}
        await self._claim_store.deallocate_unused(
            lambda: snapshot.unbound_pods(self._pods, self._name, self._assumed_nodes)
        )
        ledger = self._claim_store.ledger(self._nodes)
        state = self._state_informers.state(self._pods, self._assumed_nodes.copy(), ledger)
        capacity = Capacity(self._nodes, snapshot.used_resources(self._pods, self._assumed_nodes), state)
        other_pods = snapshot.other_pods(self._pods, gangs, self._preemptors)
        other_pods.overdue_gangs = self._overdue_gangs()
        plan = cycle.plan([g for g, _ in gangs.values()], capacity, other_pods)
        self._record_reservations(plan)
        decisions = volume_decisions.decisions(plan.bindings, capacity)
        self._postponed = volume_decisions.postpone_gangs([g for g, _ in gangs.values()], plan, decisions)
        representatives = ((pod, capacity.shape(pod).pod, node) for pod, node in plan.bindings)
        claim_decisions, without_devices = device_decisions.decisions(representatives, ledger)
        self._pending = any(group.waiting for g, _ in gangs.values() for group in g.groups)
        self._placement_depends_on_pods = self._pending and bool(capacity.keys)
        for pod, node in plan.bindings:
            self._assumed_nodes[pod.metadata.uid] = node
        self.metrics.record_cycle(open_gangs - len(plan.waiting), len(plan.waiting), perf_counter() - started_at)
        self._waiting_reasons = {name: str(shortfall) for name, shortfall in plan.waiting.items()}
        self._unschedulable.replace(
            entry
            for name, (gang, _) in gangs.items()
            for entry in reasons(gang, self._waiting_reasons.get(name), plan.extra_pod_reasons)
        )
        self._preemptors |= {eviction.preemptor for eviction in plan.evictions}
        await self._preempt(plan.evictions, {name: item for name, (_, item) in gangs.items()})
        without_devices |= await self._claim_store.write(claim_decisions)
        for pod, _ in device_decisions.withdraw(plan, [g for g, _ in gangs.values()], without_devices):
            self._assumed_nodes.pop(pod.metadata.uid, None)
            self._changed.set()
        # Base gangs are bound first, so that a scaled gang never runs without its base gang (GS-03).
        scaled = {name for name, (g, _) in gangs.items() if g.base}
        for is_scaled in (False, True):
            bindings = [(pod, node) for pod, node in plan.bindings if (self._gang_of(pod)[0] in scaled) is is_scaled]
            if not all(await asyncio.gather(*(self._bind(pod, node) for pod, node in bindings))):
                self._changed.set()
        if not all(await asyncio.gather(*(self._state_informers.write_decision(decision) for decision in decisions))):
            self._changed.set()
        bound_gang_names = {f"{p.metadata.namespace}/{p.metadata.label(labels.PODGANG)}" for p, _ in plan.bindings}
        for name in bound_gang_names | set(plan.waiting):
            self._mark_stale(gangs[name][1].metadata.key)
        for name, reason in self._waiting_reasons.items():
            await self._post_event(gangs[name][1], reason)

    def _overdue_gangs(self) -> set[str]:
        timestamp = asyncio.get_running_loop().time()
        return {
            name for name, reserved_at in self._reserved_since.items() if timestamp >= reserved_at + RESERVATION_SECONDS
        }

    def _record_reservations(self, plan: cycle.Plan) -> None:
        """Record the gangs for which room is reserved, and trigger another cycle when the time of a reservation is
        over."""
        loop = asyncio.get_running_loop()
        for name in self._reserved_since.keys() - plan.waiting.keys():
            del self._reserved_since[name]
        for name in plan.reserved_for:
            if name not in self._reserved_since:
                self._reserved_since[name] = loop.time()
                loop.call_later(RESERVATION_SECONDS, self._changed.set)

    def _domain(self, key: str, node: str) -> str:
        """Return the domain of a node; a node without the label is a separate domain."""
        node_object = self._nodes.get("", node)
        return (node_object.metadata.label(key) if node_object else "") or node

    async def _preempt(self, evictions: list[Eviction], items: dict[str, PodGang]) -> None:
        """Evict pods in favor of gangs of higher priority. For a gang that is evicted completely, write its condition
        first (GS-33)."""
        self._preemptors_by_gang = {e.gang: e.preemptor for e in evictions if e.ends_gang and e.gang in items}
        await asyncio.gather(*(self._write_status(items[name].metadata.key) for name in self._preemptors_by_gang))
        await asyncio.gather(*(self._evict(eviction) for eviction in evictions))
        for name, preemptor in {e.gang: e.preemptor for e in evictions if e.gang in items}.items():
            text = f"evicted {sum(e.gang == name for e in evictions)} pods in favour of {preemptor}"
            await self._post_event(items[name], text, "Preempted")
        self._preemptors_by_gang = {}

    async def _evict(self, eviction: Eviction) -> None:
        """Delete a pod. Its capacity becomes free when the pod has terminated."""
        pod, meta = eviction.pod, eviction.pod.metadata
        log.debug(
            "evicting pod %s/%s from node %s in favour of gang %s",
            meta.namespace,
            meta.name,
            eviction.node,
            eviction.preemptor,
        )
        try:
            await self._client.delete(PODS, meta.namespace, meta.name, uid=meta.uid)
        except REQUEST_FAILED as error:
            if not isinstance(error, ApiError) or not error.conflict:
                log.warning("cannot evict pod %s/%s: %s", meta.namespace, meta.name, error)
            self._changed.set()
        else:
            self._pods.observe_deletion(pod)

    async def _bind(self, pod: Pod, node: str) -> bool:
        """Bind a pod. Return False if the API server refused the binding and the pod's capacity is free again.

        A request without a response may have bound the pod. Its capacity stays reserved until `_resolve_bindings` or
        the watch finds out.
        """
        meta = pod.metadata
        logs.set_subject("gang-scheduler", meta.namespace, meta.name)
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        try:
            await self._client.create(PODS, body, subresource="binding")
        except REQUEST_FAILED as error:
            log.warning("cannot bind pod %s/%s to node %s: %s", meta.namespace, meta.name, node, error or repr(error))
            self.metrics.failed_bindings.inc()
            if not isinstance(error, ApiError) or error.status >= 500:
                self._unresolved_pods[meta.uid] = pod
                self._unresolved_event.set()
                return True
            self._assumed_nodes.pop(meta.uid, None)
            return error.not_found
        self.metrics.successful_bindings.inc()
        return True

    async def _resolve_bindings(self) -> None:
        """Query the API server about pods whose binding request got no response, until it is known whether they are
        bound."""
        while True:
            await self._unresolved_event.wait()
            self._unresolved_event.clear()
            await asyncio.gather(*(self._resolve(pod) for pod in list(self._unresolved_pods.values())))
            if self._unresolved_pods:
                self._unresolved_event.set()
                await asyncio.sleep(RESOLVE_SECONDS)

    async def _resolve(self, pod: Pod) -> None:
        """Free the capacity of a pod that turns out not to be bound; if the pod is bound, update the informer cache."""
        meta = pod.metadata
        if meta.uid in self._assumed_nodes:
            try:
                answer = await self._client.get_or_none(PODS, meta.namespace, meta.name)
            except REQUEST_FAILED as error:
                log.info("binding of pod %s/%s is still unknown: %s", meta.namespace, meta.name, error or repr(error))
                return
            current = None if answer is None else self._pods.decode(answer)
            if current is not None and current.metadata.uid == meta.uid and current.spec.node_name:
                self._pods.observe(current)
            else:
                self._assumed_nodes.pop(meta.uid, None)
                self._changed.set()
        self._unresolved_pods.pop(meta.uid, None)

    async def _post_event(self, item: PodGang, note: str, reason: str = "GangWaiting") -> None:
        """Post an event that says why a gang waits or is preempted. The same note is not posted twice in a row."""
        name = f"{item.metadata.namespace}/{item.metadata.name}"
        if self._posted_notes.get(name) == note:
            return
        self._posted_notes[name] = note
        await self._events.record(models.PODGANGS, item.metadata, "Warning", reason, note, action="Scheduling")

    async def _write_statuses(self) -> None:
        """Write the conditions of gangs whose status has changed, until cancelled."""
        while True:
            await self._stale_event.wait()
            await asyncio.sleep(STATUS_SECONDS)
            self._stale_event.clear()
            keys, self._stale_gangs = self._stale_gangs, set()
            await asyncio.gather(*(self._write_status(key) for key in keys))

    async def _write_status(self, key: tuple[str, str]) -> None:
        logs.set_subject("gang-scheduler", *key)
        item = self._gangs.get(*key)
        if item is None or not snapshot.is_responsible(item, self._name):
            return
        pods = {
            pod.metadata.name: pod
            for pod in self._pods.indexed(GANG_INDEX, f"{key[0]}/{key[1]}")
            if pod.metadata.deletion_timestamp is None
        }
        name, gang = f"{key[0]}/{key[1]}", self._gang(item)
        preemptor = self._preemptors_by_gang.get(name, "")
        status = gang_status.status(
            item,
            gang,
            pods,
            self._waiting_reasons.get(name),
            now(),
            preemptor=preemptor,
            score=score(gang, self._domain),
        )
        if status == item.status:
            return
        meta = item.metadata
        body = {"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version}, "status": to_json(status)}
        try:
            answer = await self._client.patch(models.PODGANGS, meta.namespace, meta.name, body, subresource="status")
        except REQUEST_FAILED as error:
            if isinstance(error, ApiError) and error.conflict:  # the operator wrote in between, so try again
                self._mark_stale(key)
                if preemptor and await self._read_gang(key):
                    await self._write_status(key)
            elif not isinstance(error, ApiError) or not error.not_found:
                log.warning("cannot write status of gang %s/%s: %s", *key, error)
                self._mark_stale(key)
        else:
            self._gangs.observe(self._gangs.decode(answer))

    async def _read_gang(self, key: tuple[str, str]) -> bool:
        """Read a gang from the API server, because an eviction does not wait until the watch shows the last write.
        Return whether the gang was read."""
        try:
            answer = await self._client.get_or_none(models.PODGANGS, *key)
        except REQUEST_FAILED as error:
            log.warning("cannot read gang %s/%s: %s", *key, error)
            return False
        if answer is not None:
            self._gangs.observe(self._gangs.decode(answer))
        return answer is not None


def _filter_inputs(pod: Pod) -> tuple[object, ...]:
    """Return the fields of a pod that filters for other pods read and that can change."""
    return pod.spec.node_name, pod.metadata.labels, pod.metadata.deletion_timestamp
