"""Faults of what the operator says about pods."""

from __future__ import annotations

from typing import Any

import msgspec

from reference_impl.api.models import Condition
from reference_impl.api.pods import ContainerStatus, Pod
from reference_impl.faults import fault, replace
from reference_impl.plan import conditions, statuses


@fault("binding-unseen", "operator", "counts a pod as scheduled once a container has reported", "CORE-016")
def _binding_unseen() -> None:
    right = statuses.clique_status

    def clique_status(clique: Any, pods: list[Pod], *rest: Any) -> Any:
        silent = [pod for pod in pods if pod.scheduled and not pod.status.container_statuses]
        hidden = [msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name="")) for pod in silent]
        return right(clique, [pod for pod in pods if pod not in silent] + hidden, *rest)

    replace(statuses, "clique_status", clique_status)


@fault("crash-unseen", "operator", "takes a crashed pod for one that is on its way", "CORE-017")
def _crash_unseen() -> None:
    replace(statuses, "_failing", lambda pod: False)


@fault("crash-never-forgiven", "operator", "takes a pod that has crashed once for broken for good", "CORE-017")
def _crash_never_forgiven() -> None:
    def failing(pod: Pod) -> bool:
        found = [*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ())]
        return any(status.failed for status in found)

    replace(statuses, "_failing", failing)


@fault("init-crash-unseen", "operator", "does not look at init containers", "CORE-017")
def _init_crash_unseen() -> None:
    def failing(pod: Pod) -> bool:
        return not pod.ready and any(status.failed for status in pod.status.container_statuses or ())

    replace(statuses, "_failing", failing)


@fault("any-end-is-a-crash", "operator", "takes a container that ended well for crashed", "CORE-017")
def _any_end_is_a_crash() -> None:
    def failed(self: ContainerStatus) -> bool:
        return self.last_state is not None and self.last_state.terminated is not None

    replace(ContainerStatus, "failed", property(failed))


@fault("start-is-enough", "operator", "takes a started container for a ready one", "CORE-017")
def _start_is_enough() -> None:
    replace(statuses, "_stalled", lambda pod: False)


@fault("only-ready-counts", "operator", "takes minAvailable for breached until enough pods are ready", "CORE-017")
def _only_ready_counts() -> None:
    replace(statuses, "_stalled", lambda pod: not pod.ready)


@fault("leaving-counted", "operator", "counts pods that are being deleted as ready", "CORE-018")
def _leaving_counted() -> None:
    right = statuses.clique_status

    def clique_status(clique: Any, pods: list[Pod], *rest: Any) -> Any:
        leaving = sum(pod.terminating and pod.ready for pod in pods)
        status = right(clique, pods, *rest)
        return msgspec.structs.replace(status, ready_replicas=status.ready_replicas + leaving)

    replace(statuses, "clique_status", clique_status)


@fault("replaced-late", "operator", "replaces a pod only when it is gone", "CORE-018")
def _replaced_late() -> None:
    replace(Pod, "active", property(lambda self: not self.finished))


@fault("transition-always", "operator", "moves the transition time whenever a status is written", "CORE-019")
def _transition_always() -> None:
    def put(old: list[Condition] | None, new: Condition) -> list[Condition]:
        known = conditions.find(old, new.type)
        if known is None:
            return [*(old or ()), new]
        same = (known.status, known.reason, known.message) == (new.status, new.reason, new.message)
        return [known if same and c.type == new.type else new if c.type == new.type else c for c in old or ()]

    replace(conditions, "put", put)


@fault("transition-never", "operator", "keeps the first transition time of a condition for good", "CORE-019")
def _transition_never() -> None:
    right = conditions.put

    def put(old: list[Condition] | None, new: Condition) -> list[Condition]:
        known = conditions.find(old, new.type)
        if known is not None:
            new = msgspec.structs.replace(new, last_transition_time=known.last_transition_time)
        return [new if c.type == new.type else c for c in right(old, new)]

    replace(conditions, "put", put)
