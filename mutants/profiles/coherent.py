"""Mutants in how a coherent update proceeds: its steps, its scope, its gates."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from mutants.registry import mutant
from mutants.replacement import replace
from reference_impl.api.models import PodCliqueSet, ReplicaUpdate, SetUpdateProgress
from reference_impl.control.coherent import CoherentSets
from reference_impl.plan.coherent import budget, maps, moves, planner, pods, progress, scope, slots, steps, update
from reference_impl.plan.coherent.budget import Batch
from reference_impl.plan.coherent.components import Component
from reference_impl.plan.coherent.layout import Entry, Key, Layout
from reference_impl.plan.coherent.maps import ReplicaMap, Templates
from reference_impl.plan.coherent.naming import NameSource
from reference_impl.plan.coherent.observed import Observed
from reference_impl.plan.coherent.slots import Slot
from reference_impl.plan.coherent.steps import Phase, SubStep


@mutant("step-in-one", "operator", "replaces a whole step with its anchor", "COHR-030", "COHR-047")
def _step_in_one() -> None:
    def beginning(components: Sequence[Component], left: Mapping[Key, int]) -> SubStep:
        count = steps.step_count(components)
        return SubStep(Phase.ANCHOR, {c.key: min(steps.target(c, count), left[c.key]) for c in components})

    replace(steps, "beginning", beginning)


@mutant("one-step-only", "operator", "opens one anchor with the minimum, and rolls the rest as tails", "COHR-032")
def _one_step_only() -> None:
    replace(steps, "step_count", lambda components: 1)


@mutant("batch-without-limit", "operator", "takes all members of a step down at once", "INV-011", "COHR-047")
def _batch_without_limit() -> None:
    right = steps.sub_step

    def sub_step(components: Sequence[Component], done: Mapping[Key, int], left: Mapping[Key, int]) -> SubStep:
        found = right(components, done, left)
        return found if found.phase is Phase.ANCHOR else SubStep(found.phase, dict(left))

    def affordable(
        components: Sequence[Component], places: budget.Slots, wanted: Mapping[Key, int], *, whole: bool
    ) -> Batch:
        return {c.key: [s for s in places[c.key] if not s.done][: wanted[c.key]] for c in components}

    replace(steps, "sub_step", sub_step)
    replace(budget, "affordable", affordable)


@mutant("gates-ignored", "operator", "begins a sub-step whatever has become of the one before", "INV-017", "COHR-060")
def _gates_ignored() -> None:
    replace(progress, "not_ready", lambda layout, generation, components, observed: ())
    replace(progress, "incomplete", lambda layout, generation, components, observed: None)
    _batch_whatever_is_available()


def _batch_whatever_is_available() -> None:
    def affordable(
        components: Sequence[Component], places: budget.Slots, wanted: Mapping[Key, int], *, whole: bool
    ) -> Batch:
        return {c.key: [s for s in places[c.key] if not s.done][: wanted[c.key]] for c in components}

    replace(budget, "affordable", affordable)


@mutant("last-index-first", "operator", "replaces the replicas with the highest indices first", "COHR-037")
def _last_index_first() -> None:
    right = slots.slots

    def backwards(layout: Layout, key: Key, observed: Observed, generation: str) -> list[Slot]:
        return right(layout, key, observed, generation)[::-1]

    replace(planner, "slots", backwards)


@mutant("broken-last", "operator", "replaces what is available before what is not", "COHR-063")
def _broken_last() -> None:
    right = slots.slots

    def found(layout: Layout, key: Key, observed: Observed, generation: str) -> list[Slot]:
        return sorted(right(layout, key, observed, generation), key=lambda slot: (not slot.available, slot.turn))

    replace(planner, "slots", found)
    _batch_whatever_is_available()


@mutant("tails-share-a-gang", "operator", "puts all further replicas of a sub-step into one gang", "COHR-047")
def _tails_share_a_gang() -> None:
    right = moves.moved

    def moved(
        layout: Layout, batch: Batch, join: Entry | None, generation: str, names: NameSource, *, opens: bool
    ) -> tuple[Layout, tuple[str, ...]]:
        result, touched = right(layout, batch, join, generation, names, opens=opens)
        known = {entry.name for entry in layout}
        new = [entry for entry in result if entry.name not in known]
        if opens or len(new) < 2:
            return result, touched
        groups: dict[str, tuple[int, ...]] = {}
        for entry in new:
            for group, own in entry.groups.items():
                groups[group] = (*groups.get(group, ()), *own)
        kept = [entry for entry in result if entry.name in known]
        return (*kept, dataclasses.replace(new[0], groups=groups)), (new[0].name,)

    replace(planner, "moved", moved)


@mutant("everything-in-scope", "operator", "rolls whatever is of an old generation", "COHR-040", "COHR-041", "INV-015")
def _everything_in_scope() -> None:
    def outdated(pcs: PodCliqueSet, held: ReplicaMap, present: Templates) -> set[Key]:
        old = [entry for entry in held.layout if entry.generation != present.generation]
        return {key for entry in old for key in maps._keys(entry)}

    def settled(pcs: PodCliqueSet, held: ReplicaMap, entry: Entry, key: Key, present: Templates) -> bool:
        return entry.generation == present.generation

    def all_of(
        changed: Iterable[Key], previous: Iterable[Key], replicas: Iterable[scope.ReplicaState], generation: str
    ) -> frozenset[Key]:
        return frozenset({*changed, *previous})

    replace(maps, "outdated", outdated)
    replace(maps, "settled", settled)
    replace(scope, "scope", all_of)


@mutant("ends-at-once", "operator", "reports the end of an update before anything is rolled", "COHR-032", "COHR-070")
def _ends_at_once() -> None:
    replace(CoherentSets, "_complete", lambda self, pcs, index, generation, found, step: True)
    replace(CoherentSets, "_waiting", lambda self, pcs, generation, present, done: [])


@mutant("silent-wait", "operator", "does not say why an update waits", "COHR-061")
def _silent_wait() -> None:
    right = update.advanced

    def advanced(
        progress: SetUpdateProgress,
        waiting: Sequence[int],
        complete: bool,
        in_flight: Sequence[str],
        message: str,
        now: str,
    ) -> SetUpdateProgress:
        return right(progress, waiting, complete, in_flight, "", now)

    replace(update, "advanced", advanced)


@mutant("nothing-in-flight", "operator", "does not say which gangs an update waits for", "COHR-034")
def _nothing_in_flight() -> None:
    right = update.advanced

    def advanced(
        progress: SetUpdateProgress,
        waiting: Sequence[int],
        complete: bool,
        in_flight: Sequence[str],
        message: str,
        now: str,
    ) -> SetUpdateProgress:
        return right(progress, waiting, complete, (), message, now)

    replace(update, "advanced", advanced)


@mutant("replicas-take-turns", "operator", "updates another replica while one waits", "INV-016", "COHR-071")
def _replicas_take_turns() -> None:
    right = update.advanced

    def advanced(
        progress: SetUpdateProgress,
        waiting: Sequence[int],
        complete: bool,
        in_flight: Sequence[str],
        message: str,
        now: str,
    ) -> SetUpdateProgress:
        found = right(progress, waiting, complete, in_flight, message, now)
        turns = found.currently_updating or []
        others = [index for index in waiting if turns and index != turns[0].replica_index]
        if not turns or complete or not message or not others:
            return found
        return msgspec.structs.replace(
            found, currently_updating=[ReplicaUpdate(replica_index=others[0], update_started_at=now)]
        )

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


@mutant("lost-old-pods-return", "operator", "recreates lost pods of old gangs anew", "COHR-067", "INV-014")
def _lost_old_pods_return() -> None:
    replace(maps, "fits", lambda held, entry, template, own, present: True)


@mutant("lost-new-pods-stay-lost", "operator", "recreates no lost pod while an update runs", "COHR-066")
def _lost_new_pods_stay_lost() -> None:
    right = pods.difference

    def difference(counts: Mapping[str, int], found: list[Any], target: str, may_create: Any) -> pods.Difference:
        known = {pod.metadata.label("grove.io/podgang") for pod in found}
        return right(counts, found, target, lambda gang: may_create(gang) and (not found or gang not in known))

    replace(pods, "difference", difference)
