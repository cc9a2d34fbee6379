"""Mutants of updates that are interrupted by pods that are not Ready, by scaling, by additional changes or by
OnDelete."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from typing import Any

from kube.informer import Informer
from mutants.profiles.lifecycle import adopt_nothing
from mutants.profiles.update import stepped
from mutants.registry import mutant
from mutants.replacement import Original, around, instead_of, replace
from reference_impl.api.models import (
    CliqueTemplate,
    CliqueUpdateProgress,
    GroupUpdateProgress,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
    PodSelection,
    ReplicaSelection,
    SetUpdateProgress,
)
from reference_impl.api.pods import Pod
from reference_impl.control.ownership import Adoption
from reference_impl.control.termination import Termination
from reference_impl.control.writer import Writer
from reference_impl.plan import (
    children,
    labels,
    pods,
    revisions,
    template_drift,
    update_clique_pods,
    update_group_replicas,
    update_progress,
    update_set_replicas,
)
from reference_impl.plan.lines import Line
from reference_impl.plan.update_group_replicas import Replica

MAX_OLD = 20
"""The maximum number of times that an object is built from an old template. The update replaces the object each time,
so without a limit the updates would never end and would keep the machine busy."""

# -- pods --------------------------------------------------------------------------------------------------------------


@mutant("operator", "replaces pods that are not Ready one by one", "UPD-014", "UPD-021")
def _unready_pods_wait() -> None:
    replace(update_clique_pods, "unready_pods", lambda old: [])


@mutant("operator", "treats Ready pods that failed before as not Ready", "UPD-015")
@instead_of(update_clique_pods, "unready_pods")
def _once_failed_is_unready(old: list[Pod]) -> list[Pod]:
    return [p for p in old if not p.ready or any(c.failed for c in p.status.container_statuses or ())]


@mutant("operator", "counts any new Ready pod as the successor", "UPD-016")
@instead_of(update_clique_pods, "is_replaced")
def _successors_counted(clique: PodClique, selection: PodSelection, members: list[Pod]) -> bool:
    target = clique.metadata.label(labels.TEMPLATE_HASH)
    new = [pod for pod in members if pod.active and pod.metadata.label(labels.TEMPLATE_HASH) == target]
    deleted = all(pod.metadata.name != selection.current for pod in members if pod.active)
    return deleted and sum(pod.ready for pod in new) > len(selection.completed or ())


@mutant("operator", "waits for the successor of a pod that was scaled away", "UPD-019")
@instead_of(update_clique_pods, "is_replaced")
def _scaled_away_awaited(clique: PodClique, selection: PodSelection, members: list[Pod]) -> bool:
    return any(pod.ready and update_clique_pods.is_successor(pod, selection) for pod in members if pod.active)


@mutant("operator", "replaces Ready pods although too few are Ready", "UPD-017")
def _minimum_not_awaited() -> None:
    replace(update_progress, "minimum", lambda clique: 0)


@mutant("operator", "does not wait for successors that fit on no node", "UPD-018")
@around(update_clique_pods, "is_replaced")
def _unplaced_not_awaited(original: Original, clique: PodClique, selection: PodSelection, members: list[Pod]) -> bool:
    placed = [pod for pod in members if pod.scheduled or not update_clique_pods.is_successor(pod, selection)]
    some_unplaced = len(placed) < len(members)
    return original(clique, selection, members) or (
        some_unplaced and all(p.metadata.name != selection.current for p in members)
    )


class _First:
    """The first state of each object that the operator has read, by UID."""

    def __init__(self) -> None:
        self._states: dict[str, Any] = {}

    def of(self, item: Any) -> Any:
        return self._states.setdefault(item.metadata.uid, copy.deepcopy(item))


@mutant("operator", "creates additional pods of a clique from its first template", "UPD-020")
def _added_pods_old() -> None:
    _built_from_first(lambda first, index: index >= first.spec.replicas)


@mutant("operator", "creates all pods of a clique from its first template", "UPD-040")
def _old_template_comes_back() -> None:
    _built_from_first(lambda first, index: True)


def _built_from_first(is_old: Any) -> None:
    original, make, first = pods.PodBuilder.pod, pods.PodBuilder.__init__, _First()
    built = Counter[str]()

    def init(self: pods.PodBuilder, clique: PodClique, *rest: Any, **options: Any) -> None:
        make(self, clique, *rest, **options)
        self.first = first.of(clique)  # type: ignore[attr-defined]
        self.old = object.__new__(pods.PodBuilder)  # type: ignore[attr-defined]
        make(self.old, self.first, *rest, **options)  # type: ignore[attr-defined]

    def pod(self: pods.PodBuilder, index: int, gang: str) -> children.Manifest:
        builder, clique = self, self.first  # type: ignore[attr-defined]
        if is_old(clique, index) and built[clique.metadata.uid] < MAX_OLD:
            built[clique.metadata.uid] += 1
            builder = self.old  # type: ignore[attr-defined]
        return original(builder, index, gang)

    pods.PodBuilder.__init__ = init  # type: ignore[method-assign]
    replace(pods.PodBuilder, "pod", pod)


@mutant("operator", "replaces all pods at once if a change restarts an update", "UPD-022")
def _pods_at_once_after_change() -> None:
    original, forced = update_clique_pods.step, update_clique_pods.unready_pods
    restarted, stepping = set[str](), [""]

    def step(pcs: PodCliqueSet, clique: PodClique, *rest: Any) -> update_clique_pods.CliqueUpdateStep:
        stepping[0] = clique.metadata.uid
        return original(pcs, clique, *rest)

    def carried(clique: PodClique, old: CliqueUpdateProgress | None, members: list[Pod]) -> None:
        if old is not None and old.update_ended_at is None:
            restarted.add(clique.metadata.uid)

    replace(update_clique_pods, "step", step)
    replace(update_clique_pods, "carried_selection", carried)
    replace(update_clique_pods, "unready_pods", lambda old: list(old) if stepping[0] in restarted else forced(old))


@mutant(
    "operator",
    "replaces all pods at once if a change restarts an update, and waits for successors of pods that were scaled away",
    "UPD-019",
    "UPD-022",
)
def _pods_at_once_and_awaited() -> None:
    _pods_at_once_after_change()
    _scaled_away_awaited()


@mutant("operator", "writes a new template to a clique only once", "UPD-023")
@around(template_drift, "is_outdated", memory=_First)
def _second_change_forgotten(original: Original, first: _First, clique: PodClique, current: revisions.Revision) -> bool:
    is_first = first.of(clique).metadata.label(labels.TEMPLATE_HASH) == clique.metadata.label(labels.TEMPLATE_HASH)
    return is_first and original(clique, current)


@mutant("operator", "replaces all pods that are older than the change", "UPD-024")
def _all_since_change() -> None:
    original, outdated, started_at = update_clique_pods.step, update_clique_pods.is_outdated, [""]

    def step(
        pcs: PodCliqueSet, clique: PodClique, members: list[Pod], *rest: Any
    ) -> update_clique_pods.CliqueUpdateStep:
        progress = update_progress.set_progress(pcs)
        started_at[0] = (progress.update_started_at if progress is not None else "") or ""
        return original(pcs, clique, members, *rest)

    def older(pod: Pod, current: revisions.Revision) -> bool:
        return outdated(pod, current) or (pod.metadata.creation_timestamp or "") < started_at[0]

    replace(update_clique_pods, "step", step)
    replace(update_clique_pods, "is_outdated", older)


# -- replicas of groups ------------------------------------------------------------------------------------------------


@mutant("operator", "never updates replicas of groups that are not available", "UPD-025")
def _unavailable_replicas_wait() -> None:
    replace(update_group_replicas, "unavailable_replicas", lambda replicas: [])


@mutant("operator", "creates additional replicas from the first template", "UPD-026", "UPD-031")
def _added_replicas_old() -> None:
    members, make_standalone, sets, groups = children.member_cliques, children.standalone_clique, _First(), _First()
    planned = Counter[str]()

    def member_cliques(pcs: PodCliqueSet, group: Any, *rest: Any, **options: Any) -> Iterator[children.Manifest]:
        old = list(members(sets.of(pcs), group, *rest, **options))
        size = groups.of(group).spec.replicas
        planned[group.metadata.uid] += group.spec.replicas > size
        for manifest, before in zip(members(pcs, group, *rest, **options), old, strict=True):
            added = int(manifest["metadata"]["labels"][labels.SCALING_GROUP_REPLICA_INDEX]) >= size
            limited = planned[group.metadata.uid] > MAX_OLD or update_progress.is_on_delete(pcs)
            yield before if added and not limited else manifest

    def standalone_clique(
        pcs: PodCliqueSet, index: int, template: CliqueTemplate, line: Line, **options: Any
    ) -> children.Manifest:
        first = sets.of(pcs)
        if index < first.spec.replicas:
            return make_standalone(pcs, index, template, line, **options)
        return make_standalone(first, index, children.find_template(first, template.name) or template, line, **options)

    replace(children, "member_cliques", member_cliques)
    replace(children, "standalone_clique", standalone_clique)


@mutant("operator", "waits for a replica of a group that was scaled away", "UPD-027")
@instead_of(update_group_replicas, "is_selection_complete")
def _group_scale_in_stalls(selection: ReplicaSelection, replicas: list[Replica]) -> bool:
    return selection.current < len(replicas) and replicas[selection.current].updated


@mutant("operator", "recreates all replicas of a restarted update at once", "UPD-028")
def _replicas_at_once_after_change() -> None:
    original, forced = update_group_replicas.step, update_group_replicas.unavailable_replicas
    restarted, stepping = set[str](), [""]

    def step(pcs: PodCliqueSet, group: PodCliqueScalingGroup, *rest: Any) -> update_group_replicas.GroupUpdateStep:
        stepping[0] = group.metadata.uid
        return original(pcs, group, *rest)

    def carried(old: GroupUpdateProgress | None, replicas: list[Replica]) -> None:
        if old is not None and old.update_ended_at is None:
            restarted.add(stepping[0])

    def every(replicas: list[Replica]) -> list[Replica]:
        return [replica for replica in replicas if replica.old] if stepping[0] in restarted else forced(replicas)

    replace(update_group_replicas, "step", step)
    replace(update_group_replicas, "carried_selection", carried)
    replace(update_group_replicas, "unavailable_replicas", every)


# -- replicas of sets --------------------------------------------------------------------------------------------------


@mutant("operator", "updates replicas without bound pods in the usual order", "UPD-029")
def _unplaced_replica_last() -> None:
    replace(update_set_replicas, "has_bound_pods", lambda cliques, index: True)


@mutant("operator", "updates breached replicas in the usual order", "UPD-030")
def _breached_replica_last() -> None:
    replace(update_set_replicas, "is_breached", lambda cliques, index: False)


@mutant("operator", "waits for a replica of a set that was scaled away", "UPD-032")
@around(update_set_replicas, "advanced_progress")
def _turn_of_removed_replica(
    original: Original,
    pcs: PodCliqueSet,
    progress: SetUpdateProgress,
    generation: str,
    cliques: update_set_replicas.ObservedSet,
    now: str,
) -> SetUpdateProgress:
    turn = update_progress.current_replica(pcs)
    stuck = turn is not None and turn >= pcs.spec.replicas
    return progress if stuck else original(pcs, progress, generation, cliques, now)


@mutant("operator", "starts the next update with the first replica, whichever was interrupted", "UPD-033")
def _other_replica_first() -> None:
    replace(update_set_replicas, "has_unfinished_update", lambda cliques, index: False)


@mutant("operator", "counts a terminated replica as updated", "UPD-034")
def _terminated_is_updated() -> None:
    terminate, done, terminated = Termination._terminate_replica, update_set_replicas.is_updated, set[tuple[str, int]]()

    async def replica(self: Termination, pcs: PodCliqueSet, index: int, causes: Any) -> None:
        terminated.add((pcs.metadata.name, index))
        await terminate(self, pcs, index, causes)

    def finished(cliques: update_set_replicas.ObservedSet, index: int, generation: str) -> bool:
        return (cliques._pcs.metadata.name, index) in terminated or done(cliques, index, generation)

    replace(Termination, "_terminate_replica", replica)
    replace(update_set_replicas, "is_updated", finished)


@mutant("operator", "never ends an update that OnDelete has stopped", "UPD-035", "COHR-111")
def _switch_freezes() -> None:
    stepped(lambda pcs, before, after, now: before if update_progress.is_on_delete(pcs) else after)
    replace(update_clique_pods, "_ended_on_delete", lambda pcs, progress, now: progress)


# -- sets that go in their update --------------------------------------------------------------------------------------


@mutant("operator", "does not let a set be deleted during its update", "UPD-044")
@around(Writer, "remove_finalizer")
async def _update_holds_set(
    original: Original, self: Writer, informer: Informer[Any], item: Any, finalizer: str
) -> None:
    if not (isinstance(item, PodCliqueSet) and update_progress.is_running(item)):
        await original(self, informer, item, finalizer)


@mutant("operator", "treats the template of a new set as a change of an earlier set of its name", "UPD-045")
@around(update_progress, "generation", memory=dict)
def _generation_remembered(original: Original, generations: dict[str, str], pcs: PodCliqueSet) -> str:
    key = f"{pcs.metadata.namespace}/{pcs.metadata.name}"
    generations[key] = original(pcs) or generations.get(key, "")
    return generations[key]


# -- deleted cliques ---------------------------------------------------------------------------------------------------


async def left_to_collector(
    self: Writer, informer: Informer[Any], item: Any, finalizer: str, dependents: Informer[Any], present: Any
) -> None:
    """Remove the object's finalizer without waiting for its dependents."""
    await self.remove_finalizer(informer, item, finalizer)


@mutant("operator", "leaves pods of deleted cliques to the garbage collector", "INV-024")
def _pods_left_to_collector() -> None:
    replace(Writer, "release", left_to_collector)
    replace(Adoption, "_adopt", adopt_nothing)
