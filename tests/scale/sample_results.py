"""Sample results of scale runs."""

from __future__ import annotations

from typing import Any

DIGEST = "sha256:" + "0" * 64


def result(
    *,
    ready: float = 20.0,
    floor: float = 8.0,
    writes: int = 5000,
    reads: int = 100,
    identity: str = DIGEST,
    run: str = "run-1",
) -> dict[str, Any]:
    """Return the complete result of a run."""
    cost = {"processes": {"operator": {"cpuSeconds": 1.0, "memoryMiB": 50}}, "machine": machine()}
    raw_floor = {
        "markers": {"pods-created": floor / 2, "pods-ready": floor, "pods-deleted": 3.0},
        "creation": cost,
        "deletion": cost,
    }
    return {
        "apiVersion": "conformance.grove.io/v1alpha2",
        "kind": "ScaleResult",
        "run": run,
        "startedAt": "2026-01-02T03:04:05+00:00",
        "complete": True,
        "reason": None,
        "scenario": {"name": "Made", "digest": DIGEST, "pods": 1000, "nodes": 100, "upstreamNames": {}},
        "binder": "kube-scheduler",
        "implementation": {
            "name": "an operator",
            "version": "1",
            "descriptor": DIGEST,
            "settings": {},
            "programs": {"operator": {"program": "op", "digest": identity, "commit": None, "modified": None}},
            "identity": identity,
        },
        "environment": {
            "cpus": 2,
            "cpuModel": "a model",
            "memoryMiB": 24000,
            "architecture": "x86_64",
            "kernel": "Linux 6",
            "python": "3.11.7",
            "versions": {"kubernetes": "1.36.3"},
            "suite": {"commit": None, "modified": None},
            "loadBefore": [0.1, 0.1, 0.1],
        },
        "floors": {"before": raw_floor, "after": raw_floor, "mean": raw_floor["markers"]},
        "phases": [
            phase(
                "deploy", "create", "settled", {"pods-created": ready - 1, "pods-ready": ready}, writes, reads, floor
            ),
            phase("delete", "delete", "gone", {"pcs-deleted": 1.0, "all-deleted": 9.0}, 3000, 10, 3.0),
        ],
    }


def phase(
    name: str, action: str, end_condition: str, markers: dict[str, float], writes: int, reads: int, floor: float
) -> dict[str, Any]:
    """Return the result of one phase."""
    return {
        "name": name,
        "action": action,
        "until": end_condition,
        "startedAt": "2026-01-02T03:04:15.123+00:00",
        "seconds": max(markers.values()),
        "holdSeconds": 0.0,
        "markers": markers,
        "timesFloor": {marker: seconds / floor for marker, seconds in markers.items()},
        "podsCreated": 1000,
        "perPod": {"created-to-ready": {"p50": 1.0, "p90": 2.0, "p99": 3.0, "max": 4.0}},
        "writes": requests(writes),
        "reads": requests(reads),
        "throttled": 0,
        "uncertainRecords": 0,
        "processes": {"operator": {"cpuSeconds": 5.0, "memoryMiB": 100}},
        "machine": machine(),
        "storage": {"etcdMiB": 40.0, "auditLogMiB": 10.0, "records": 9000, "recordedMiB": 30.0},
        "finalCheck": [],
    }


def requests(total: int) -> dict[str, Any]:
    """Return the request counts of one program."""
    row = {"program": "op", "verb": "create", "resource": "pods", "count": total, "perPod": total / 1000}
    return {"total": total, "perPod": total / 1000, "refused": 0, "conflicts": 0, "rows": [row]}


def machine() -> dict[str, float]:
    """Return the load of a machine that runs nothing else."""
    return {
        "seconds": 20.0,
        "busyCpuSeconds": 38.0,
        "foreignCpuSeconds": 0.4,
        "foreignShare": 0.01,
        "recorderCpuSeconds": 0.8,
        "loadAverage": 2.0,
        "clockJumpSeconds": 0.0,
    }
