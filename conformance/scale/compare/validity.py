"""The conditions under which results may be used, and may be compared with each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.scale.results import Result

MACHINE_FIELDS = ("cpus", "cpuModel", "memoryMiB", "architecture")


@dataclass(frozen=True)
class Limits:
    """The limits within which a run may be used."""

    foreign_share: float = 0.1
    """The share of the machine's CPU that other processes may use in a phase."""
    clock_jump: float = 0.5
    """Seconds by which the wall clock may jump in a phase."""
    floor_ratio: float = 1.3
    """Maximum ratio of the raw floors before and after the phases …"""
    floor_seconds: float = 1.0
    """… and a difference in seconds that is always permitted: a floor of one or two seconds varies by half a second to
    a second."""


def failures(result: Result) -> list[str]:
    """Return the reasons why the implementation did not do its work; empty if it did."""
    if not result["complete"]:
        return [f"not complete: {result['reason']}"]
    return [
        f"{phase['name']}: final check: {'; '.join(phase['finalCheck'])}"
        for phase in result["phases"]
        if phase["finalCheck"]
    ]


def disturbances(result: Result, limits: Limits) -> list[str]:
    """Return the disturbances that make the times of a run unusable although the implementation did its work."""
    reasons = list(_floor_disturbances(result, limits))
    for phase in result["phases"]:
        reasons += [f"{phase['name']}: {reason}" for reason in _machine_disturbances(phase["machine"], limits)]
        if phase["uncertainRecords"]:
            reasons.append(f"{phase['name']}: {phase['uncertainRecords']} events were missed by the watch")
        if phase["throttled"]:
            reasons.append(f"{phase['name']}: the API server throttled {phase['throttled']} requests")
    return reasons


def foreign_share(result: Result, limits: Limits) -> float:
    """Return the largest share of the CPU that other processes used in a phase if it exceeds the limit; otherwise 0."""
    maximum = max((phase["machine"]["foreignShare"] for phase in result["phases"]), default=0.0)
    return maximum if maximum > limits.foreign_share else 0.0


def summary(reasons: Sequence[str]) -> str:
    """Return the reasons against a round in one short line: the first reason, and the number of other reasons."""
    return reasons[0] + (f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else "")


def differences(results: Sequence[Result]) -> list[str]:
    """Return the differences that make results incomparable: another load, machine, or version of a component."""
    facts = [
        {
            "scenario": result["scenario"]["digest"],
            "binder": result["binder"],
            **{name: result["environment"][name] for name in MACHINE_FIELDS},
            "features": " ".join(result["environment"].get("features", ())),
            **{f"version of {name}": value for name, value in result["environment"]["versions"].items()},
        }
        for result in results
    ]
    names = list(dict.fromkeys(name for run_facts in facts for name in run_facts))
    return [
        f"{name}: {_values(facts, name)}"
        for name in names
        if len({str(run_facts.get(name)) for run_facts in facts}) > 1
    ]


def implementation_changes(results: Sequence[Result]) -> list[str]:
    """Return the differences between the results of one side, all of which must come from the same implementation."""
    identities = {str(result["implementation"]["identity"]) for result in results}
    return [f"the implementation changed between runs: {', '.join(sorted(identities))}"] if len(identities) > 1 else []


def _floor_disturbances(result: Result, limits: Limits) -> Iterator[str]:
    before, after = result["floors"]["before"], result["floors"]["after"]
    if before is None or after is None:
        return
    before_seconds, after_seconds = before["markers"]["pods-ready"], after["markers"]["pods-ready"]
    slower_seconds, faster_seconds = max(before_seconds, after_seconds), min(before_seconds, after_seconds)
    if slower_seconds > limits.floor_ratio * faster_seconds and slower_seconds - faster_seconds > limits.floor_seconds:
        yield f"the raw floors before and after differ: {before_seconds:.1f} s and {after_seconds:.1f} s"
    for name, floor in (("before", before), ("after", after)):
        for part in ("creation", "deletion"):
            yield from (
                f"raw floor {name}: {reason}" for reason in _machine_disturbances(floor[part]["machine"], limits)
            )


def _machine_disturbances(machine: dict[str, Any], limits: Limits) -> Iterator[str]:
    if machine["foreignShare"] > limits.foreign_share:
        yield f"other processes used {machine['foreignShare']:.0%} of the CPU"
    if abs(machine["clockJumpSeconds"]) > limits.clock_jump:
        yield f"the clock jumped by {machine['clockJumpSeconds']:.1f} s"


def _values(facts: Sequence[dict[str, Any]], name: str) -> str:
    return " and ".join(sorted({str(run_facts.get(name)) for run_facts in facts}))
