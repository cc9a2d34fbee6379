"""Mutants in whose turn it is in a coherent update, in what is reported, and in what survives losses and restarts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from mutants.registry import mutant
from mutants.replacement import replace
from reference_impl.api.coherent import GangLayout
from reference_impl.api.models import (
    CliqueTemplate,
    Condition,
    PodClique,
    PodCliqueSet,
    PodGang,
    PodGangStatus,
    ReplicaUpdate,
    SetUpdateProgress,
)
from reference_impl.api.pods import Pod
from reference_impl.control.clique_gangs import CliqueGangs
from reference_impl.control.coherent import CoherentSets
from reference_impl.control.podclique import CliqueReconciler
from reference_impl.plan import children, conditions, labels, statuses, termination, update_progress
from reference_impl.plan.coherent import conditions as of_gangs
from reference_impl.plan.coherent import maps, planner, pods, slots, update
from reference_impl.plan.coherent.components import Component
from reference_impl.plan.coherent.layout import Key, Kind, Layout
from reference_impl.plan.coherent.maps import ReplicaMap
from reference_impl.plan.coherent.naming import NameSource
from reference_impl.plan.coherent.observed import Observed
from reference_impl.plan.coherent.slots import Slot
from reference_impl.plan.revisions import Revision


def _reports(**instead: Any) -> None:
    """Report progress with these arguments instead of the right ones."""
    right = update.advanced

    def advanced(
        progress: SetUpdateProgress,
        waiting: Sequence[int],
        complete: bool,
        in_flight: Sequence[str],
        message: str,
        now: str,
    ) -> SetUpdateProgress:
        return right(progress, waiting, complete, **{"in_flight": in_flight, "message": message, "now": now, **instead})

    replace(update, "advanced", advanced)


@mutant("silent-wait", "operator", "does not say why an update waits", "COHR-061")
def _silent_wait() -> None:
    _reports(message="")


@mutant("nothing-in-flight", "operator", "does not say which gangs an update waits for", "COHR-034")
def _nothing_in_flight() -> None:
    _reports(in_flight=())


@mutant("replicas-take-turns", "operator", "updates another replica while one waits", "COHR-071")
def _replicas_take_turns() -> None:
    right = CoherentSets.progress

    def progress(
        self: CoherentSets, pcs: PodCliqueSet, generation: Revision, found: Any, step: Any, now: str
    ) -> SetUpdateProgress | None:
        result = right(self, pcs, generation, found, step, now)
        if result is None or not result.currently_updating or not result.currently_updating[0].error_message:
            return result
        own = result.currently_updating[0].replica_index
        others = [index for index in self._waiting(pcs, generation, result, None) if index != own]
        turns = [ReplicaUpdate(replica_index=index, update_started_at=now) for index in others[:1]]
        return msgspec.structs.replace(result, currently_updating=turns or result.currently_updating)

    replace(CoherentSets, "progress", progress)


@mutant("replicas-at-once", "operator", "updates all replicas of a set at once", "INV-016", "COHR-071")
def _replicas_at_once() -> None:
    replace(CoherentSets, "_has_turn", staticmethod(lambda pcs, index: True))


@mutant("waiting-replicas-forgotten", "operator", "ends a changed update with the replica at work", "COHR-064")
def _waiting_replicas_forgotten() -> None:
    right_begun, right_advanced = update.begun, update.advanced
    interrupted: set[str] = set()

    def begun(old: SetUpdateProgress | None, scope: Collection[Key], now: str) -> SetUpdateProgress:
        found = right_begun(old, scope, now)
        if found.update_started_at and old is not None and old.update_started_at == found.update_started_at:
            interrupted.add(found.update_started_at)
        return found

    def advanced(
        progress: SetUpdateProgress,
        waiting: Sequence[int],
        complete: bool,
        in_flight: Sequence[str],
        message: str,
        now: str,
    ) -> SetUpdateProgress:
        left = () if complete and progress.update_started_at in interrupted else waiting
        return right_advanced(progress, left, complete, in_flight, message, now)

    replace(update, "begun", begun)
    replace(update, "advanced", advanced)


@mutant("scope-unreported", "operator", "reports a component too many in the scope of an update", "COHR-033")
def _scope_unreported() -> None:
    right = update.begun

    def begun(old: SetUpdateProgress | None, scope: Collection[Key], now: str) -> SetUpdateProgress:
        found = right(old, scope, now)
        if not scope:
            return found
        names = sorted({*(found.updated_standalone_pod_cliques or ()), "nothing"})
        return msgspec.structs.replace(found, updated_standalone_pod_cliques=names)

    replace(update, "begun", begun)


@mutant("restart-forgets-progress", "operator", "starts an update anew after a restart", "COHR-070")
def _restart_forgets_progress() -> None:
    plan, right_slots = planner.next_step, slots.slots
    before: dict[tuple[str, str], set[str]] = {}

    def next_step(
        layout: Layout,
        scope: Sequence[Component],
        observed: Observed,
        generation: str,
        gang_layout: GangLayout,
        names: NameSource,
    ) -> planner.Step:
        found = {entry.name for entry in layout if entry.generation == generation}
        before.setdefault(_where(layout, generation), found)
        return plan(layout, scope, observed, generation, gang_layout, names)

    def forgetful(layout: Layout, key: Key, observed: Observed, generation: str) -> list[Slot]:
        forgotten = before.get(_where(layout, generation), set())
        return [
            Slot(slot.gang, slot.done and slot.gang not in forgotten, slot.available, slot.turn, slot.index)
            for slot in right_slots(layout, key, observed, generation)
        ]

    replace(planner, "next_step", next_step)
    replace(planner, "slots", forgetful)


def _where(layout: Layout, generation: str) -> tuple[str, str]:
    return (layout[0].name.rpartition("-")[0] if layout else "", generation)


# -- losses ------------------------------------------------------------------------------------------------------------


@mutant("lost-old-pods-return", "operator", "recreates lost pods of old gangs in the new version", "COHR-067")
def _lost_old_pods_return() -> None:
    replace(maps, "fits", lambda held, entry, template, own, present: True)


@mutant("lost-new-pods-stay-lost", "operator", "recreates no lost pod while others of its gang run", "COHR-066")
def _lost_new_pods_stay_lost() -> None:
    right = pods.difference

    def difference(
        counts: Mapping[str, int], found: list[Pod], target: str, may_create: Callable[[str], bool]
    ) -> pods.Difference:
        known = {pod.metadata.label(labels.PODGANG) for pod in found}
        return right(counts, found, target, lambda gang: may_create(gang) and gang not in known)

    replace(pods, "difference", difference)


@mutant("others-neglected", "operator", "replaces no lost pods of components that an update leaves alone", "COHR-068")
def _others_neglected() -> None:
    right = CliqueReconciler._balance

    async def balance(self: CliqueReconciler, clique: PodClique, pcs: PodCliqueSet | None) -> None:
        if pcs is not None and update.running(pcs):
            group = clique.metadata.label(labels.SCALING_GROUP)
            config = children.group_config(pcs, clique.metadata.label(labels.REPLICA_INDEX), group)
            if config and Key(Kind.GROUP, config.name) not in update.scope_of(update_progress.of_set(pcs)):
                return
        await right(self, clique, pcs)

    replace(CliqueReconciler, "_balance", balance)


@mutant("joined-gangs-restart", "operator", "recreates the pods of a gang that others join", "COHR-036")
def _joined_gangs_restart() -> None:
    right = pods.difference
    restarted: set[str] = set()

    def difference(
        counts: Mapping[str, int], found: list[Pod], target: str, may_create: Callable[[str], bool]
    ) -> pods.Difference:
        result = right(counts, found, target, may_create)
        joined = {gang for _, gang in result.missing} - restarted
        again = [pod for pod in found if pod.active and pod.ready and pod.metadata.label(labels.PODGANG) in joined]
        restarted.update(pod.metadata.label(labels.PODGANG) for pod in again)
        return pods.Difference([*result.surplus, *again], result.missing)

    replace(pods, "difference", difference)


@mutant("updates-are-breaches", "operator", "terminates gangs whose pods an update replaces", "COHR-062")
def _updates_are_breaches() -> None:
    def updating(now: str) -> Condition:
        return Condition(
            type=termination.BREACHED,
            status="True",
            reason="InsufficientReadyPods",
            message="Update is in progress",
            last_transition_time=now,
        )

    replace(statuses, "_updating", updating)


# -- statuses ----------------------------------------------------------------------------------------------------------


@mutant("scheduled-after-ready", "operator", "reports gangs as scheduled after they were Ready", "COHR-018")
def _scheduled_after_ready() -> None:
    right = of_gangs.status

    def status(gang: PodGang, minimums: Mapping[str, int], pods: Sequence[Pod], now: str) -> PodGangStatus:
        old, found = gang.status or PodGangStatus(), right(gang, minimums, pods, now)
        if conditions.is_true(old.conditions, of_gangs.READY):
            return found
        known = conditions.find(old.conditions, of_gangs.SCHEDULED)
        late = known or of_gangs._condition(of_gangs.SCHEDULED, False, now)
        listed = [late if each.type == of_gangs.SCHEDULED else each for each in found.conditions or ()]
        return msgspec.structs.replace(found, conditions=listed, last_scheduled=old.last_scheduled)

    replace(of_gangs, "status", status)


@mutant("emptied-gangs-in-statuses", "operator", "keeps emptied gangs in the statuses of cliques", "COHR-016")
def _emptied_gangs_in_statuses() -> None:
    right = CliqueGangs._mapping

    def mapping(
        self: CliqueGangs, pcs: PodCliqueSet, clique: PodClique, held: ReplicaMap, template: CliqueTemplate
    ) -> dict[str, int]:
        known: Mapping[str, Any] = (clique.status.pod_gang_mapping if clique.status else None) or {}
        return {**dict.fromkeys(known, 0), **right(self, pcs, clique, held, template)}

    replace(CliqueGangs, "_mapping", mapping)
