"""Mutants of the order of replicas in a coherent update, of its reports, and of losses and restarts during the
update."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from mutants.registry import mutant
from mutants.replacement import Original, around, instead_of, replace
from reference_impl.api.models import (
    Condition,
    PodCliqueSet,
    PodGang,
    PodGangStatus,
    ReplicaUpdate,
    SetUpdateProgress,
)
from reference_impl.api.pods import Pod
from reference_impl.control.coherent import CoherentProgress
from reference_impl.control.maps import MapWriter
from reference_impl.control.podclique import CliqueContext, CliqueReconciler
from reference_impl.plan import children, conditions, labels, pods, statuses, termination, update_progress
from reference_impl.plan.coherent import conditions as of_gangs
from reference_impl.plan.coherent import planner, slots, update, versions
from reference_impl.plan.coherent.slots import Slot
from reference_impl.plan.components import Key, Kind
from reference_impl.plan.layout import Layout
from reference_impl.plan.observed import Observed
from reference_impl.plan.revisions import Revision


def _reports(**instead: Any) -> None:
    """Report progress with these arguments in place of the correct ones."""
    original = update.advanced_progress

    def advanced(
        progress: SetUpdateProgress,
        waiting: Sequence[int],
        complete: bool,
        in_flight: Sequence[str],
        message: str,
        now: str,
    ) -> SetUpdateProgress:
        return original(
            progress, waiting, complete, **{"in_flight": in_flight, "message": message, "now": now, **instead}
        )

    replace(update, "advanced_progress", advanced)


@mutant("operator", "does not say why an update waits", "COHR-061")
def _silent_wait() -> None:
    _reports(message="")


@mutant("operator", "does not say which gangs an update waits for", "COHR-034")
def _nothing_in_flight() -> None:
    _reports(in_flight=())


@mutant("operator", "updates another replica while one waits", "COHR-071")
@around(CoherentProgress, "progress")
def _replicas_take_turns(
    original: Original,
    self: CoherentProgress,
    pcs: PodCliqueSet,
    generation: Revision,
    cliques: Any,
    step: Any,
    now: str,
) -> SetUpdateProgress | None:
    result = original(self, pcs, generation, cliques, step, now)
    if result is None or not result.currently_updating or not result.currently_updating[0].message:
        return result
    current_index = result.currently_updating[0].replica_index
    other_replicas = [
        index for index in self._outdated_replicas(pcs, generation, result, None) if index != current_index
    ]
    turns = [ReplicaUpdate(replica_index=index, update_started_at=now) for index in other_replicas[:1]]
    return msgspec.structs.replace(result, currently_updating=turns or result.currently_updating)


@mutant("operator", "updates all replicas of a set at once", "INV-016", "COHR-071")
def _replicas_at_once() -> None:
    replace(MapWriter, "_has_turn", staticmethod(lambda pcs, index: True))


@mutant("operator", "ends a changed update with the replica at work", "COHR-064", "COHR-107")
def _waiting_replicas_forgotten() -> None:
    original_begun, original_advanced = update.started_progress, update.advanced_progress
    interrupted: set[str] = set()

    def begun(old: SetUpdateProgress | None, scope: Collection[Key], now: str) -> SetUpdateProgress:
        result = original_begun(old, scope, now)
        if result.update_started_at and old is not None and old.update_started_at == result.update_started_at:
            interrupted.add(result.update_started_at)
        return result

    def advanced(
        progress: SetUpdateProgress,
        waiting: Sequence[int],
        complete: bool,
        in_flight: Sequence[str],
        message: str,
        now: str,
    ) -> SetUpdateProgress:
        remaining = () if complete and progress.update_started_at in interrupted else waiting
        return original_advanced(progress, remaining, complete, in_flight, message, now)

    replace(update, "started_progress", begun)
    replace(update, "advanced_progress", advanced)


@mutant("operator", "reports a component too many in the scope of an update", "COHR-033")
@around(update, "started_progress")
def _scope_unreported(
    original: Original, old: SetUpdateProgress | None, scope: Collection[Key], now: str
) -> SetUpdateProgress:
    result = original(old, scope, now)
    if not scope:
        return result
    names = sorted({*(result.in_scope_standalone_pod_cliques or ()), "nothing"})
    return msgspec.structs.replace(result, in_scope_standalone_pod_cliques=names)


@mutant("operator", "starts an update anew after a restart", "COHR-070")
def _restart_forgets_progress() -> None:
    original, started_at = slots.slots, time.time_ns()

    def forgetful(layout: Layout, key: Key, observed: Observed, generation: str) -> list[Slot]:
        return [
            dataclasses.replace(slot, has_current_template=slot.has_current_template and int(slot.entry) > started_at)
            for slot in original(layout, key, observed, generation)
        ]

    replace(planner, "slots", forgetful)


# -- losses ------------------------------------------------------------------------------------------------------------


@mutant("operator", "recreates lost pods of old gangs in the new version", "COHR-067")
def _lost_old_pods_return() -> None:
    replace(versions, "may_create_pods", lambda stored, entry, template, template_hash, present: True)


@mutant("operator", "recreates no lost pod while others of its gang run", "COHR-066")
@around(pods, "difference")
def _lost_new_pods_stay_lost(
    original: Original, shares: Mapping[str, int], members: list[Pod], target: str, may_create: Callable[[str], bool]
) -> pods.PodDifference:
    gangs_with_pods = {pod.metadata.label(labels.PODGANG) for pod in members}
    return original(shares, members, target, lambda gang: may_create(gang) and gang not in gangs_with_pods)


@mutant("operator", "replaces no lost pods of components that an update leaves alone", "COHR-068")
@around(CliqueReconciler, "_sync_pods")
async def _others_neglected(original: Original, self: CliqueReconciler, place: CliqueContext) -> None:
    pcs, clique = place.pcs, place.clique
    if update.is_running(pcs):
        group = clique.metadata.label(labels.SCALING_GROUP)
        config = children.group_config(pcs, clique.metadata.label(labels.REPLICA_INDEX), group)
        if config and Key(Kind.GROUP, config.name) not in update.scope_of(update_progress.set_progress(pcs)):
            return
    await original(self, place)


@mutant("operator", "recreates the pods of a gang that others join", "COHR-036")
@around(pods, "difference", memory=set)
def _joined_gangs_restart(
    original: Original,
    restarted: set[str],
    shares: Mapping[str, int],
    members: list[Pod],
    target: str,
    may_create: Callable[[str], bool],
) -> pods.PodDifference:
    result = original(shares, members, target, may_create)
    joined_gangs = {gang for _, gang in result.missing} - restarted
    restarted_pods = [
        pod for pod in members if pod.active and pod.ready and pod.metadata.label(labels.PODGANG) in joined_gangs
    ]
    restarted.update(pod.metadata.label(labels.PODGANG) for pod in restarted_pods)
    return pods.PodDifference([*result.surplus, *restarted_pods], result.missing)


@mutant("operator", "terminates gangs whose pods an update replaces", "COHR-062")
@instead_of(statuses, "_updating_condition")
def _updates_are_breaches(now: str) -> Condition:
    return Condition(
        type=termination.BREACHED,
        status="True",
        reason="InsufficientReadyPods",
        message="Update is in progress",
        last_transition_time=now,
    )


# -- statuses ----------------------------------------------------------------------------------------------------------


@mutant("operator", "reports gangs as scheduled after they were Ready", "COHR-018")
@around(of_gangs, "status")
def _scheduled_after_ready(original: Original, gang: PodGang, pods: Iterable[Pod], now: str) -> PodGangStatus:
    old, result = gang.status or PodGangStatus(), original(gang, pods, now)
    if conditions.is_true(old.conditions, of_gangs.READY):
        return result
    stored = conditions.find(old.conditions, of_gangs.SCHEDULED)
    shown_condition = stored or of_gangs._condition(of_gangs.SCHEDULED, False, now)
    corrected = [
        shown_condition if condition.type == of_gangs.SCHEDULED else condition for condition in result.conditions or ()
    ]
    return msgspec.structs.replace(result, conditions=corrected, last_scheduled=old.last_scheduled)
