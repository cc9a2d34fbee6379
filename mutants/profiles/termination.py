"""Mutants of gang termination."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

import msgspec

from mutants.registry import mutant
from mutants.replacement import Original, around, instead_of, replace, replace_data
from reference_impl.api.models import Condition, PodClique, PodCliqueScalingGroup, PodCliqueSet
from reference_impl.control.cache import BY_OWNER
from reference_impl.control.termination import Termination
from reference_impl.plan import children, conditions, ownership, statuses, termination, timestamps
from reference_impl.plan.children import CliqueOf


@mutant("operator", "never terminates a gang", "TERM-001", "TERM-008", "TERM-011", "TERM-013", "TERM-025", "TERM-026")
def _never_terminated() -> None:
    replace(termination, "due_in_set", lambda *_: termination.DueTerminations())
    replace(termination, "due_in_group", lambda *_: termination.DueTerminations())


@mutant("operator", "terminates after half of the delay", "TERM-002", "TERM-016")
def _terminated_early() -> None:
    original = termination.delay
    replace(termination, "delay", lambda pcs: original(pcs) / 2)


@mutant("operator", "terminates only the breached cliques of a set's replica", "TERM-001")
@around(Termination, "_delete_cliques")
async def _breached_only(
    original: Original, self: Termination, candidates: Iterable[PodClique], last: Collection[str] = ()
) -> None:
    await original(self, [clique for clique in candidates if clique.metadata.uid in last], last)


@mutant("operator", "terminates the gang of a breached standalone clique alone", "TERM-027", name="scaled-gangs-spared")
@around(Termination, "_terminate_replica")
async def spare_scaled_gangs(
    original: Original, self: Termination, pcs: PodCliqueSet, index: int, causes: Collection[str]
) -> None:
    """Do not terminate the scaled gangs of a set replica because of a standalone clique."""
    cliques = [c for c in self._cache.cliques.indexed(BY_OWNER, pcs.metadata.uid) if termination.index_of(c) == index]
    if set(causes).isdisjoint(clique.metadata.uid for clique in cliques):
        await original(self, pcs, index, causes)
        return
    groups = [group for group in self._groups(pcs) if termination.index_of(group) == index]
    for group in groups:
        members = termination.members(group, self._cache.child_finder(self._cache.cliques, group))
        cliques += [member for number, member in members if number < group.spec.min_available]
    await self._delete_cliques([clique for clique in cliques if clique.metadata.uid not in causes])
    for group in groups:
        await self._mark_terminating(group, index)
    await self._delete_cliques([clique for clique in cliques if clique.metadata.uid in causes])


@mutant("operator", "terminates all replicas of a set with one of them", "TERM-003")
@around(termination, "due_in_set")
def _all_replicas_terminated(original: Original, pcs: PodCliqueSet, *rest: Any) -> termination.DueTerminations:
    due = original(pcs, *rest)
    if due.causes:
        due.causes = {index: due.causes.get(index, set()) for index in range(pcs.spec.replicas)}
    return due


@mutant("operator", "deletes the scaling groups of terminated replicas", "TERM-003", "TERM-012")
@instead_of(Termination, "_mark_terminating")
async def _groups_terminated(self: Termination, group: PodCliqueScalingGroup, index: int) -> None:
    await self._writer.delete(self._cache.groups, group)


@mutant("operator", "deletes the gangs of a replica that it terminates", "TERM-022", name="gangs-terminated")
@around(Termination, "_terminate_replica")
async def terminate_gangs(
    original: Original, self: Termination, pcs: PodCliqueSet, index: int, causes: Collection[str]
) -> None:
    """Delete the gangs of a terminated replica as well. Like any missing gangs, they are recreated."""
    await original(self, pcs, index, causes)
    for gang in self._cache.gangs.indexed(BY_OWNER, pcs.metadata.uid):
        if ownership.replica_index(gang) == str(index):
            await self._writer.delete(self._cache.gangs, gang)


@mutant("operator", "treats cliques without a status as recovered", "TERM-004")
def _unreported_is_recovered() -> None:
    original = termination.complete_replicas

    def sound(group: PodCliqueScalingGroup, clique: CliqueOf) -> int:
        return sum(
            not any(
                conditions.is_true(m.status.conditions if m.status else None, termination.BREACHED) for m in members
            )
            for members in original(group, clique)
        )

    replace(statuses, "count_sound_replicas", sound)
    replace(termination, "count_sound_replicas", sound)


@mutant("operator", "never reports that a group is being terminated", "TERM-004", "TERM-005")
@instead_of(Termination, "_mark_terminating")
async def _never_flagged(self: Termination, group: PodCliqueScalingGroup, index: int) -> None:
    return


@mutant("operator", "terminates each replica of a set at most once", "TERM-006")
@around(Termination, "_terminate_replica", memory=set)
async def _terminated_once(
    original: Original,
    terminated: set[tuple[str, int]],
    self: Termination,
    pcs: PodCliqueSet,
    index: int,
    causes: Collection[str],
) -> None:
    if (pcs.metadata.uid, index) not in terminated:
        await original(self, pcs, index, causes)
        terminated.add((pcs.metadata.uid, index))


@mutant("operator", "reports for ever that a group is being terminated", "TERM-005")
def _flagged_for_good() -> None:
    replace_data(statuses, "TERMINATING", "Nothing", read_by=(statuses, "group_status"))


@mutant("operator", "does not recreate the members of a terminated group", "TERM-007")
@around(children, "member_cliques")
def _terminated_stays_gone(
    original: Original, pcs: Any, group: PodCliqueScalingGroup, *rest: Any, **options: Any
) -> Iterator[children.Manifest]:
    if not conditions.is_true(group.status.conditions if group.status else None, termination.TERMINATING):
        yield from original(pcs, group, *rest, **options)


@mutant("operator", "never terminates single replicas of a scaling group", "TERM-008")
def _groups_never_act() -> None:
    replace(termination, "due_in_group", lambda *_: termination.DueTerminations())


@mutant("operator", "terminates a whole group because of one replica", "TERM-008")
@around(termination, "due_in_group")
def _replica_takes_all(
    original: Original, pcs: Any, group: PodCliqueScalingGroup, *rest: Any
) -> termination.DueTerminations:
    due = original(pcs, group, *rest)
    if due.causes:
        due.causes = {index: due.causes.get(index, set()) for index in range(group.spec.replicas)}
    return due


@mutant("operator", "terminates a clique that has fewer pods than replicas", "TERM-009")
@around(termination, "clique_breached_since")
def _any_loss_counts(original: Original, clique: PodClique) -> float | None:
    reported = clique.status.conditions if clique.status else None
    breached = conditions.find(reported, termination.BREACHED)
    if clique.status and breached and clique.status.scheduled_replicas < clique.spec.replicas:
        return timestamps.seconds(breached.last_transition_time)
    return original(clique)


@mutant("operator", "terminates replicas that never ran", "TERM-010", "TERM-021")
def _never_run_terminated() -> None:
    replace(termination, "_has_changed", lambda *_: True)


@mutant("operator", "counts sound replicas of a group differently than its condition", "TERM-023", name="both-levels")
@instead_of(termination, "count_sound_replicas")
def act_on_both_levels(group: PodCliqueScalingGroup, clique: CliqueOf) -> int:
    """Terminate single replicas of a scaling group even when the group itself is breached."""
    members = termination.members(group, clique)
    lost = {index for index, member in members if termination.clique_breached_since(member) is not None}
    return group.spec.replicas - len(lost)


@mutant("operator", "never terminates because of crashing pods", "TERM-013")
def _crash_is_no_loss() -> None:
    replace(termination, "_is_failing", lambda pod: False)


@mutant("operator", "treats pods of silent nodes as ready", "TERM-014", "NODE-003")
def _silent_nodes_trusted() -> None:
    replace(termination, "_is_lost", lambda pod: False)


@mutant("operator", "treats starting pods as lost", "TERM-024")
def _starting_pods_lost() -> None:
    replace(termination, "_is_lost", lambda pod: not pod.ready)


def _transition(moves: Callable[[Condition, Condition], bool]) -> None:
    """Let `moves(old, new)` decide whether a breach gets a new transition time."""
    original = conditions.with_condition

    def put(old: list[Condition] | None, new: Condition) -> list[Condition]:
        stored = conditions.find(old, new.type)
        if stored is None or new.type != termination.BREACHED:
            return original(old, new)
        timestamp = new.last_transition_time if moves(stored, new) else stored.last_transition_time
        new = msgspec.structs.replace(new, last_transition_time=timestamp)
        return [new if condition.type == new.type else condition for condition in old or ()]

    replace(conditions, "with_condition", put)


@mutant("operator", "counts the delay from the first breach, despite recoveries", "TERM-016")
def _first_loss_counts() -> None:
    breaches: set[str] = set()

    def moves(stored: Condition, new: Condition) -> bool:
        if stored.status == new.status or stored.status == "True" or stored.last_transition_time in breaches:
            return False
        breaches.add(new.last_transition_time)
        return True

    _transition(moves)


@mutant("operator", "restarts the countdown when a breach gets worse", "TERM-017")
def _last_loss_counts() -> None:
    _transition(lambda stored, new: (stored.status, stored.message) != (new.status, new.message))


@mutant("operator", "counts the delay from its own start", "TERM-019")
@around(termination, "clique_breached_since", memory=time.time)
def _countdown_forgotten(original: Original, started_at: float, clique: PodClique) -> float | None:
    breached_at = original(clique)
    return None if breached_at is None else max(breached_at, started_at)


@mutant("operator", "uses the initial delay of a set for ever", "TERM-018")
def _delay_as_it_was() -> None:
    original, first = termination.delay, dict[str, float]()
    replace(termination, "delay", lambda pcs: first.setdefault(pcs.metadata.uid, original(pcs)))


@mutant("operator", "treats replicas that are lost in their first 6 seconds as never run", "TERM-020")
@instead_of(termination, "_has_changed")
def _early_loss_ignored(created: str | None, condition: Condition) -> bool:
    created_at, changed_at = timestamps.seconds(created), timestamps.seconds(condition.last_transition_time)
    return created_at is not None and changed_at is not None and changed_at > created_at + 6
