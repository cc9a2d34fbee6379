"""Mutants of the operator's reports about pods."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from kube.objects import Key
from mutants.registry import mutant
from mutants.replacement import Original, around, instead_of, replace
from reference_impl.api.models import Condition
from reference_impl.api.pods import ContainerStatus, Pod
from reference_impl.control import last_errors as written_errors
from reference_impl.control import operator
from reference_impl.control.cache import Cache
from reference_impl.control.last_errors import LastErrors
from reference_impl.control.podclique import CliqueReconciler
from reference_impl.control.writer import Writer
from reference_impl.plan import conditions, gangs, part_errors, pods, reconcile_error, statuses, termination


@mutant("operator", "counts a pod as scheduled only once a container has reported", "CORE-016")
@around(statuses, "clique_status")
def _binding_ignored(original: Original, clique: Any, pods: list[Pod], *rest: Any) -> Any:
    silent = [pod for pod in pods if pod.scheduled and not pod.status.container_statuses]
    hidden = [msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name="")) for pod in silent]
    return original(clique, [pod for pod in pods if pod not in silent] + hidden, *rest)


@mutant("operator", "treats a crashed pod as starting", "CORE-038")
def _crash_ignored() -> None:
    replace(termination, "_is_failing", lambda pod: False)


@mutant("operator", "treats a pod that has crashed once as failing for ever", "CORE-017", "TERM-015")
@instead_of(termination, "_is_failing")
def _crash_never_forgiven(pod: Pod) -> bool:
    container_statuses = [*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ())]
    return any(status.failed for status in container_statuses)


@mutant("operator", "ignores init containers", "CORE-038")
@instead_of(termination, "_is_failing")
def _init_crash_ignored(pod: Pod) -> bool:
    return not pod.ready and any(status.failed for status in pod.status.container_statuses or ())


@mutant("operator", "treats a container that exited with 0 as crashed", "CORE-038")
def _any_end_is_a_crash() -> None:
    def failed(self: ContainerStatus) -> bool:
        return self.last_state is not None and self.last_state.terminated is not None

    replace(ContainerStatus, "failed", property(failed))


@mutant("operator", "treats a started container as ready", "CORE-017", "TERM-026")
def _start_is_enough() -> None:
    replace(termination, "_is_stalled", lambda pod: False)


@mutant("operator", "reports a breach until enough pods are ready", "CORE-041", name="only-ready-counts")
def count_ready_pods_only() -> None:
    """Treat every pod that is not Ready as stalled, including those that are still starting."""
    replace(termination, "_is_stalled", lambda pod: not pod.ready)


@mutant("operator", "counts terminating pods as ready", "CORE-039")
@around(statuses, "clique_status")
def _terminating_counted(original: Original, clique: Any, pods: list[Pod], *rest: Any) -> Any:
    terminating_count = sum(pod.terminating and pod.ready for pod in pods)
    status = original(clique, pods, *rest)
    return msgspec.structs.replace(status, ready_replicas=status.ready_replicas + terminating_count)


@mutant("operator", "replaces a pod only once it is gone", "CORE-039")
def _replaced_late() -> None:
    replace(Pod, "active", property(lambda self: not self.finished))


@mutant("operator", "updates the transition time with every status", "CORE-019")
@instead_of(conditions, "with_condition")
def _transition_always(old: list[Condition] | None, new: Condition) -> list[Condition]:
    stored = conditions.find(old, new.type)
    if stored is None:
        return [*(old or ()), new]
    same = (stored.status, stored.reason, stored.message) == (new.status, new.reason, new.message)
    return [stored if same and c.type == new.type else new if c.type == new.type else c for c in old or ()]


@mutant("operator", "never updates the transition time of a condition", "CORE-019")
@around(conditions, "with_condition")
def _transition_never(original: Original, old: list[Condition] | None, new: Condition) -> list[Condition]:
    stored = conditions.find(old, new.type)
    if stored is not None:
        new = msgspec.structs.replace(new, last_transition_time=stored.last_transition_time)
    return [new if c.type == new.type else c for c in original(old, new)]


@mutant("operator", "reports a group's replica as available once it is scheduled", "CORE-020")
def _unready_replica_available() -> None:
    replace(statuses, "_is_clique_available", lambda clique: clique is not None)


@mutant("operator", "never reports a breach of a scaling group", "CORE-021")
@around(statuses, "group_status")
def _group_always_sound(original: Original, group: Any, *rest: Any) -> Any:
    status = original(group, *rest)
    sound_conditions = [
        msgspec.structs.replace(c, status="False") if c.type == termination.BREACHED else c
        for c in status.conditions or ()
    ]
    return msgspec.structs.replace(status, conditions=sound_conditions)


@mutant("operator", "gives a replacement the next index instead of the free one", "CORE-022")
@instead_of(pods, "free_indices")
def _index_never_reused(active: list[Pod], count: int) -> list[int]:
    first = max((pods.index_of(pod) for pod in active), default=-1) + 1
    return list(range(first, first + count))


@mutant("operator", "does not report the loss of all scheduled pods", "CORE-023", "CORE-029")
@instead_of(Writer, "warn")
async def _loss_unreported(*arguments: Any) -> None:
    return None


@mutant("operator", "writes the status of a clique again and again", "CORE-024")
@around(CliqueReconciler, "reconcile_status")
async def _status_rewritten(original: Original, self: CliqueReconciler, key: Key) -> float | None:
    wait = await original(self, key)
    if wait is None and (clique := self._cache.cliques.get(*key)) is not None and clique.status is not None:
        tick = {"status": {"observedGeneration": int(time.time())}}
        await self._writer.patch(self._cache.cliques, clique, tick, status=True)
        return 1.0
    return wait


@mutant("operator", "never fills lastErrors", "CORE-025")
@instead_of(LastErrors, "report_refusal")
async def _errors_unreported(*arguments: Any) -> None:
    return None


@mutant("operator", "never clears lastErrors", "CORE-040", name="errors-never-cleared")
def errors_forever() -> None:
    """Never clear lastErrors."""
    original = reconcile_error.last_errors

    def last_errors(old: Any, problems: Any, now: str) -> Any:
        return original(old, problems, now) if problems else old

    replace(written_errors, "last_errors", last_errors)


@mutant("operator", "reports errors of cliques in the cliques alone", *("CORE-046", "CORE-047"))
def _errors_of_cliques_kept_down() -> None:
    replace(Cache, "errors_of_parts", lambda self, pcs: [])


@mutant("operator", "never forgets an error that a clique has had", "CORE-040")
def _errors_of_cliques_remembered() -> None:
    last_errors: dict[str, list[Any]] = {}

    def of_set(pcs: Any, parts: Any) -> list[Any]:
        last_errors[pcs.metadata.uid] = original(pcs, parts) or last_errors.get(pcs.metadata.uid, [])
        return last_errors[pcs.metadata.uid]

    original = part_errors.part_errors
    replace(part_errors, "part_errors", of_set)


@mutant("operator", "emits no events about refused pods", "CORE-047")
@around(Writer, "warn")
async def _errors_without_events(
    original: Original, self: Writer, resource: Any, item: Any, reason: str, note: str
) -> None:
    if reason != written_errors.EVENT:
        await original(self, resource, item, reason, note)


@mutant("operator", "posts an event whenever a pod is refused", "CORE-048")
@around(LastErrors, "report_refusal")
async def _an_event_for_each_refusal(
    original: Original, self: LastErrors, key: Key, code: str, error: Any, message: str = ""
) -> None:
    await original(self, key, code, error, message)
    if (item := self._informer.get(*key)) is not None:
        await self._writer.warn(self._informer.resource, item, written_errors.EVENT, message)


@mutant("operator", "retries a refused pod as soon as the refusal is in the status", "CORE-031")
def _hot_retries() -> None:
    replace(operator, "differs_only_in_errors", lambda old, item: False)
    replace(pods, "without_attempt_details", lambda message, clique: message)


@mutant("operator", "never changes the references of an initialized gang", "GANG-009")
@around(gangs, "groups_with_references")
def _references_kept(original: Original, gang: Any, *rest: Any) -> Any:
    return gang.spec.podgroups if gangs.is_initialized(gang) else original(gang, *rest)


@mutant("operator", "reports a gang as complete once it has any pods", "GANG-010")
def _incomplete_is_enough() -> None:
    replace(gangs, "is_complete", lambda gang, groups, clique, shares: any(group.pod_references for group in groups))
