"""Pods in all states, from fixtures/health/pods.yaml, and the pod status for each state.

For the status that a clique must report about its pods, see COND-08 … COND-15 and docs/spec/statuses.md, section 10.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from conformance import data, formats
from conformance.formats import Format, Text

HOLD_STATUS = "conformance.grove.io/hold-status"
"""Annotation of a pod whose status the test writes instead of the fake kubelet."""
HOLD_DELETION = "conformance.grove.io/hold-deletion"
"""Annotation of a pod that the fake kubelet does not terminate, so that the pod stays terminating."""
TIMESTAMP = "2026-01-01T00:00:00Z"


class ContainerHealth(Format, frozen=True, kw_only=True):
    """The state of a container. `last_exit` is the exit code of its last run. `ready` is that of the pod by default."""

    started: bool
    last_exit: int | None = None
    ready: bool | None = None


class PodHealth(Format, frozen=True, kw_only=True):
    """The state of a pod. `init` and `containers` describe its containers of that kind."""

    ready: bool = False
    init: ContainerHealth | None = None
    containers: ContainerHealth | None = None
    phase: str = ""
    """By default the phase that a kubelet reports."""


CRASHED = PodHealth(containers=ContainerHealth(started=False, last_exit=1))


class HealthCase(Format, frozen=True):
    """One case: a clique, the state of each of its pods, and the values that the clique's status must report."""

    name: Annotated[str, Meta(pattern="^[a-z][a-z-]*$", description="name of the clique")]
    about: Text
    facts: Annotated[tuple[str, ...], Meta(min_length=1, description="rows of the specification")]
    min_available: Annotated[int, Meta(ge=1, description="minAvailable of the clique")]
    pods: Annotated[tuple[PodHealth, ...], Meta(min_length=1)]
    ready: Annotated[int, Meta(ge=0, description="expected readyReplicas")]
    breached: bool


class CaseList(Format, frozen=True):
    """The format of a file of cases."""

    cases: Annotated[list[HealthCase], Meta(min_length=1)]


def cases() -> list[HealthCase]:
    """Return all cases of the fixture."""
    return read(data.folder("fixtures") / "health" / "pods.yaml")


def read(path: Path) -> list[HealthCase]:
    """Read a file of cases. Raises UsageError with file, line and field if the file is invalid."""
    return formats.read(path, CaseList)[1].cases


def status(pod: Mapping[str, Any], state: PodHealth) -> dict[str, Any]:
    """Return a merge patch for the status of a bound pod."""
    conditions = [
        {"type": condition_type, "status": str(value), "lastTransitionTime": TIMESTAMP}
        for condition_type, value in (("PodScheduled", True), ("Initialized", not state.init), ("Ready", state.ready))
    ]
    body: dict[str, Any] = {"phase": state.phase or _phase(state), "conditions": conditions}
    spec = pod.get("spec", {})
    if state.containers:
        containers = [_container(c, state.containers, state.ready) for c in spec.get("containers", ())]
        body["containerStatuses"] = containers
    if state.init:
        body["initContainerStatuses"] = [_container(c, state.init, False) for c in spec.get("initContainers", ())]
    return {"status": body}


def _phase(state: PodHealth) -> str:
    """Return the phase that a kubelet reports: Pending until all containers have started once."""
    containers = state.containers
    have_started = containers is not None and (containers.started or containers.last_exit is not None)
    return "Running" if state.ready or (have_started and not state.init) else "Pending"


def _container(container: Mapping[str, Any], state: ContainerHealth, pod_ready: bool) -> dict[str, Any]:
    running = {"running": {"startedAt": TIMESTAMP}} if state.started else {"waiting": {"reason": "Pending"}}
    entry = {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": pod_ready if state.ready is None else state.ready,
        "started": state.started,
        "restartCount": int(state.last_exit is not None),
        "state": running,
    }
    if state.last_exit is not None:
        termination = {"exitCode": state.last_exit, "startedAt": TIMESTAMP, "finishedAt": TIMESTAMP}
        entry["lastState"] = {"terminated": termination}
    return entry
