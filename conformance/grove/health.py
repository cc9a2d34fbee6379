"""Pods in all states, from fixtures/health/pods.yaml, and the pod status for each state.

For the status that a clique must report about its pods, see COND-08 … COND-15 and docs/spec/statuses.md, section 10.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance import data, documents

HOLD_STATUS = "conformance.grove.io/hold-status"
"""Annotation of a pod whose status the test writes instead of the fake kubelet."""
HOLD_DELETION = "conformance.grove.io/hold-deletion"
"""Annotation of a pod that the fake kubelet does not terminate, so that the pod stays terminating."""
TIMESTAMP = "2026-01-01T00:00:00Z"


@dataclass(frozen=True)
class HealthCase:
    """One case: a clique, the state of each of its pods, and the values that the clique's status must report."""

    name: str
    about: str
    min_available: int
    pods: tuple[Mapping[str, Any], ...]
    ready: int
    breached: bool


def cases() -> list[HealthCase]:
    """Return all cases of the fixture."""
    return list(read(data.folder("fixtures") / "health" / "pods.yaml"))


def read(path: Path) -> Iterator[HealthCase]:
    """Read a file of cases. Raises UsageError with file, line and field if the file is invalid."""
    document = documents.read(path, data.folder("fixtures") / "health" / "pods.schema.json")
    for case in document.value["cases"]:
        yield HealthCase(
            case["name"], case["about"], case["minAvailable"], tuple(case["pods"]), case["ready"], case["breached"]
        )


def status(pod: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a merge patch for the status of a bound pod. `state` is a pod of a case."""
    ready = bool(state.get("ready"))
    conditions = [
        {"type": condition_type, "status": str(value), "lastTransitionTime": TIMESTAMP}
        for condition_type, value in (("PodScheduled", True), ("Initialized", "init" not in state), ("Ready", ready))
    ]
    body: dict[str, Any] = {"phase": state.get("phase", _phase(state)), "conditions": conditions}
    spec = pod.get("spec", {})
    for field, key in (("containers", "containers"), ("initContainers", "init")):
        if key in state:
            containers = [_container(c, state[key], ready and key == "containers") for c in spec.get(field, ())]
            body["containerStatuses" if key == "containers" else "initContainerStatuses"] = containers
    return {"status": body}


def _phase(state: Mapping[str, Any]) -> str:
    """Return the phase that a kubelet reports: Pending until all containers have started once."""
    containers = state.get("containers", {})
    have_started = containers.get("started") or "lastExit" in containers
    return "Running" if state.get("ready") or (have_started and "init" not in state) else "Pending"


def _container(container: Mapping[str, Any], state: Mapping[str, Any], ready: bool) -> dict[str, Any]:
    running = {"running": {"startedAt": TIMESTAMP}} if state["started"] else {"waiting": {"reason": "Pending"}}
    entry = {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": state.get("ready", ready),
        "started": state["started"],
        "restartCount": int("lastExit" in state),
        "state": running,
    }
    if "lastExit" in state:
        termination = {"exitCode": state["lastExit"], "startedAt": TIMESTAMP, "finishedAt": TIMESTAMP}
        entry["lastState"] = {"terminated": termination}
    return entry
