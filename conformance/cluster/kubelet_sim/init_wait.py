"""The status of a pod with Grove's waiting init container (spec OBJ-640 to OBJ-645). Pure functions.

Fake pods run no programs. This init container, however, decides when other pods start, so it is simulated, for any
implementation. It is recognized by its arguments, not by its image or name. It waits until each clique in its arguments
has at least the given number of Ready pods in its own gang. A pod's clique is read from the pod's label, never derived
from its name (which avoids the problem of OBJ-642).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from conformance.grove.labels import CLIQUE, GANG
from kube.objects import ObjectMeta

HOLD_ANNOTATION = "conformance.grove.io/hold-status"
"""A pod with this annotation is left unchanged by this module and by the stages."""
LOST = "conformance.grove.io/lost"
"""The condition of a pod whose node has failed (`node_failure`). Such a pod is also left unchanged."""

_LONG_FLAG, _SHORT_FLAG = "--podcliques", "-p"
_INTEGER = re.compile(r"[+-]?[0-9]+")

CountReadyPods = Callable[[str], int]
"""Returns the number of a clique's pods that are Ready in the gang of the waiting pod."""


class Container(msgspec.Struct, rename="camel", gc=False):
    """The fields of a container that this module reads."""

    name: str = ""
    image: str = ""
    args: list[str] | None = None
    restart_policy: str = ""


class Condition(msgspec.Struct, gc=False):
    """A condition of a pod."""

    type: str = ""
    status: str = ""


class PodSpec(msgspec.Struct, rename="camel"):
    """The fields of a pod's spec that this module reads."""

    containers: list[Container] = []
    init_containers: list[Container] | None = None
    resource_claims: list[dict[str, Any]] | None = None
    restart_policy: str = "Always"
    node_name: str = ""


class PodStatus(msgspec.Struct, rename="camel"):
    """The fields of a pod's status that this module reads."""

    phase: str = ""
    conditions: list[Condition] | None = None
    init_container_statuses: list[dict[str, Any]] | None = None
    container_statuses: list[dict[str, Any]] | None = None
    resource_claim_statuses: list[dict[str, Any]] | None = None
    extended_resource_claim_status: dict[str, Any] | None = None


class SimulatedPod(msgspec.Struct):
    """The parts of a pod that this module reads."""

    metadata: ObjectMeta
    spec: PodSpec
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def gang(self) -> tuple[str, str]:
        """Return the namespace and the name of the pod's gang."""
        return (self.metadata.namespace, self.metadata.label(GANG))

    @property
    def clique(self) -> str:
        """Return the name of the pod's clique."""
        return self.metadata.label(CLIQUE)

    @property
    def is_ready(self) -> bool:
        """Return whether the pod is Ready."""
        return self._condition("Ready") == "True"

    @property
    def is_lost(self) -> bool:
        """Return whether the pod's node has failed."""
        return self._condition(LOST) == "True"

    @property
    def has_ended(self) -> bool:
        """Return whether the pod has succeeded or failed."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def has_prepared_claims(self) -> bool:
        """Return whether the pod's claims are prepared for its containers, and not released since."""
        return self._condition("PodReadyToStartContainers") == "True" and not self.has_ended

    @property
    def is_waiting(self) -> bool:
        """Return whether the pod's init containers are running: the pod is on a node and not Initialized (stage
        pod-starts)."""
        return (
            self._condition("Initialized") == "False"
            and self.status.phase == "Pending"
            and self.metadata.deletion_timestamp is None
            and HOLD_ANNOTATION not in (self.metadata.annotations or {})
            and not self.is_lost
        )

    @property
    def waits_for_claims(self) -> bool:
        """Return whether the pod's containers have not started because the pod has ResourceClaims."""
        return (
            bool(self.spec.resource_claims or self.status.extended_resource_claim_status)
            and self._condition("PodReadyToStartContainers") != "True"
            and self.status.phase == "Pending"
            and self.metadata.deletion_timestamp is None
            and HOLD_ANNOTATION not in (self.metadata.annotations or {})
            and not self.is_lost
        )

    def _condition(self, condition_type: str) -> str:
        return next((c.status for c in self.status.conditions or () if c.type == condition_type), "")


class MalformedError(Exception):
    """The real program rejects the arguments of the container and ends with exit code 1."""


def parent_counts(container: Container) -> dict[str, int] | None:
    """Map the cliques in the arguments to the number of pods that must be Ready; None if the container is not a waiting
    init container. A native sidecar never is, because it does not end.

    The short form counts only with a well-formed value, because other programs also have options with that name.
    """
    if container.restart_policy == "Always":
        return None
    values, has_long_flag = [], False
    for flag, value in _options(container.args or []):
        has_long_flag = has_long_flag or flag == _LONG_FLAG
        values.append(value)
    if not has_long_flag and not any(":" in value for value in values):
        return None
    return dict(pair for value in values if (pair := _pair(value)) is not None)


def first_unknown_container(containers: Iterable[Container], template_names: Collection[str]) -> str:
    """If the operator added init containers but none of them is a waiting container that this module can simulate,
    return the name of the first one: pods that should wait would start immediately. Otherwise return an empty string.
    `template_names` are the names of the template's containers."""
    added_containers = [container for container in containers if container.name not in template_names]
    return (
        ""
        if any(map(_is_waiting_container, added_containers))
        else next((container.name for container in added_containers), "")
    )


def _is_waiting_container(container: Container) -> bool:
    return _is_malformed(container) or parent_counts(container) is not None


def _options(arguments: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the flag and the value of each of the two options, in every spelling that the command line library
    accepts."""
    remaining = iter(arguments)
    for argument in remaining:
        flag, equals, value = argument.partition("=")
        if flag == _LONG_FLAG:
            yield _LONG_FLAG, value if equals else next(remaining, "?")
        elif argument == _SHORT_FLAG:
            yield _SHORT_FLAG, next(remaining, "?")
        elif argument.startswith(_SHORT_FLAG):
            yield _SHORT_FLAG, argument[len(_SHORT_FLAG) :].removeprefix("=")


def _pair(text: str) -> tuple[str, int] | None:
    """Parse one `name:count`; return None for a blank entry."""
    if not text.strip():
        return None
    parts = [part.strip() for part in text.split(":")]
    if len(parts) != 2 or not parts[0] or not _INTEGER.fullmatch(parts[1]) or int(parts[1]) <= 0:
        raise MalformedError(f"{text!r} is not NAME:COUNT")
    return parts[0], int(parts[1])


def finished_waits(pod: SimulatedPod, ready: CountReadyPods) -> set[str]:
    """Return the waiting init containers of a pod whose condition holds now. The caller remembers them, because a wait
    that has ended does not start again (OBJ-643)."""
    finished_names = set()
    for container in pod.spec.init_containers or ():
        try:
            counts = parent_counts(container)
        except MalformedError:
            continue
        if counts is not None and all(ready(clique) >= count for clique, count in counts.items()):
            finished_names.add(container.name)
    return finished_names


def completed_containers(pod: SimulatedPod) -> set[str]:
    """Return the init containers that have completed, according to the pod's status."""
    return {
        str(status.get("name"))
        for status in pod.status.init_container_statuses or ()
        if ((status.get("state") or {}).get("terminated") or {}).get("exitCode") == 0
    }


def status_patch(pod: SimulatedPod, finished_names: set[str], now: str) -> dict[str, Any] | None:
    """Return the change to a waiting pod's status; None if the status is already correct. `finished_names` are the
    names of waiting init containers whose wait is over."""
    containers = pod.spec.init_containers or []
    current_index = next((i for i, c in enumerate(containers) if _blocks(c, finished_names)), len(containers))
    has_failed = current_index < len(containers) and _is_malformed(containers[current_index])
    old_statuses = {str(status.get("name")): status for status in pod.status.init_container_statuses or ()}
    states = [
        _status(
            c,
            old_statuses.get(c.name, {}),
            _container_state(c, i - current_index, has_failed, pod.spec.restart_policy),
            now,
        )
        for i, c in enumerate(containers)
    ]
    status: dict[str, Any] = {}
    if [_progress(s) for s in states] != [_progress(s) for s in pod.status.init_container_statuses or ()]:
        status["initContainerStatuses"] = states
    if current_index == len(containers):
        status["conditions"] = [
            {"type": "Initialized", "status": "True", "reason": None, "message": None, "lastTransitionTime": now}
        ]
    elif has_failed and pod.spec.restart_policy == "Never":
        status["phase"] = "Failed"
    return status or None


def _progress(status: Mapping[str, Any]) -> tuple[object, ...]:
    """Return the part of a container status that shows its progress. The API server may change the format of the
    rest."""
    state = {word: detail for word, detail in (status.get("state") or {}).items() if detail is not None}
    return (status.get("name"), *((word, (state[word] or {}).get("reason")) for word in sorted(state)))


def _is_malformed(container: Container) -> bool:
    try:
        parent_counts(container)
    except MalformedError:
        return True
    return False


def _blocks(container: Container, finished_names: set[str]) -> bool:
    """Return whether an init container blocks the containers after it. Other kinds of init containers end
    immediately."""
    return _is_malformed(container) or (parent_counts(container) is not None and container.name not in finished_names)


def _container_state(container: Container, distance: int, has_failed: bool, restart_policy: str) -> str:
    """Return the state of an init container that is `distance` positions after the running one (negative: before
    it)."""
    if distance > 0:
        return "waiting"
    if distance == 0:
        if has_failed:
            return "failed" if restart_policy == "Never" else "crashing"
        return "running"
    return "serving" if container.restart_policy == "Always" else "done"


def _status(container: Container, old: Mapping[str, Any], state_name: str, now: str) -> dict[str, Any]:
    """Return a container status as the kubelet writes it. The timestamps of an unchanged state are kept."""
    state, started_at = old.get("state") or {}, now
    for phase in ("running", "terminated"):
        started_at = (state.get(phase) or {}).get("startedAt") or started_at
    finished_at = (state.get("terminated") or {}).get("finishedAt") or now
    crash_state = {"exitCode": 1, "reason": "Error", "startedAt": started_at, "finishedAt": finished_at}
    last_state = (
        {"terminated": old.get("lastState", {}).get("terminated") or crash_state} if state_name == "crashing" else {}
    )
    states: dict[str, dict[str, Any]] = {
        "waiting": {"waiting": {"reason": "PodInitializing"}},
        "running": {"running": {"startedAt": started_at}},
        "serving": {"running": {"startedAt": started_at}},
        "done": {
            "terminated": {"exitCode": 0, "reason": "Completed", "startedAt": started_at, "finishedAt": finished_at},
        },
        "failed": {"terminated": crash_state},
        "crashing": {"waiting": {"reason": "CrashLoopBackOff", "message": "the arguments are malformed"}},
    }
    return {
        "name": container.name,
        "state": states[state_name],
        "lastState": last_state,
        "ready": state_name in ("done", "serving"),
        "restartCount": int(state_name == "crashing"),
        "image": container.image,
        "imageID": "",
        "started": state_name in ("running", "serving"),
    }
