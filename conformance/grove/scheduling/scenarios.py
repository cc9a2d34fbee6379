"""Read instances from `fixtures/scheduling/*.yaml`, and write any instance as YAML that reproduces it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import yaml

from conformance import data, documents, formats
from conformance.documents import Document
from conformance.errors import UsageError
from conformance.grove.scheduling.instance import (
    HOST,
    Gang,
    Group,
    Instance,
    InstanceChange,
    Node,
    RunningPod,
    SchedulingOutcome,
)
from conformance.grove.scheduling.scenario_format import (
    Expectation,
    GangEntry,
    GroupEntry,
    NodeEntry,
    RestExpectation,
    RunningEntry,
    ScenarioEntry,
    ScenarioFile,
    Scope,
)


@dataclass(frozen=True)
class Scenario:
    """An instance with an id, a description, its expected outcomes, and the requirements that it checks."""

    id: str
    about: str
    instance: Instance
    expected: Expectation
    enumerable: bool = True
    change: InstanceChange | None = None
    """The change to make after the instance has come to rest, if any."""
    expected_after_change: RestExpectation | None = None
    checks: tuple[str, ...] = ()
    """The requirements that a forbidden outcome can break; an outcome fails the requirements that are about its
    breaches."""


def folder() -> Path:
    """Return the folder of the scenarios."""
    return data.folder("fixtures") / "scheduling"


def load(place: Path | None = None) -> list[Scenario]:
    """Return all scenarios, ordered by file name and entry. Raises UsageError with file, line and field if a file is
    invalid."""
    return [scenario for path in sorted((place or folder()).glob("*.yaml")) for scenario in read(path)]


def read(path: Path) -> list[Scenario]:
    """Return the scenarios of one file, for example a printed counterexample. Raises UsageError if the file is
    invalid."""
    document, file = formats.read(path, ScenarioFile)
    for index, entry in enumerate(file.scenarios):
        _check(document, index, entry)
    return [_scenario(entry) for entry in file.scenarios]


def to_yaml(instance: Instance, about: str = "") -> str:
    """Return an instance as the text of a file with one scenario, which `read` accepts."""
    entry: dict[str, Any] = {"id": instance.name or "instance"}
    if about:
        entry["about"] = about
    entry["nodes"] = [_node_entry(node) for node in instance.nodes]
    if instance.running:
        entry["running"] = [_running_entry(pod) for pod in instance.running]
    entry["gangs"] = [_gang_entry(gang) for gang in instance.gangs]
    return yaml.safe_dump({"scenarios": [entry]}, sort_keys=False, default_flow_style=None, width=120)


def notation(outcome: SchedulingOutcome) -> str:
    """Return an outcome as one line: `A.w n1x2+n2; B -`."""
    parts = [
        f"{gang}.{group} "
        + "+".join(f"{node}x{count}" if count > 1 else node for node, count in sorted(spread.items()))
        for gang, groups in outcome.placed.items()
        for group, spread in groups.items()
        if spread
    ]
    evictions = [f"evicted {', '.join(sorted(outcome.victims))}"] if outcome.victims else []
    evictions += [f"moved {', '.join(sorted(outcome.moved))}"] if outcome.moved else []
    return "; ".join(parts + evictions) or "nothing is placed"


def _scenario(entry: ScenarioEntry) -> Scenario:
    gangs = tuple(map(_gang, entry.gangs))
    instance = Instance(_nodes(entry.nodes), gangs, name=entry.id)
    instance = replace(instance, running=tuple(_running(pod, instance) for pod in entry.running))
    change = None
    if entry.then:
        new_gangs = tuple(map(_gang, entry.then.gangs))
        change = InstanceChange(_nodes(entry.then.nodes), entry.then.deleted, new_gangs)
    return Scenario(
        id=entry.id,
        about=entry.about,
        instance=instance,
        expected=entry,
        enumerable=entry.enumerable,
        change=change,
        expected_after_change=entry.then,
        checks=entry.checks,
    )


def _nodes(entries: Iterable[NodeEntry]) -> tuple[Node, ...]:
    return tuple(
        Node(
            name,
            entry.amounts,
            {HOST: name, **entry.labels},
            tuple(map(msgspec.to_builtins, entry.taints)),
            entry.schedulable,
        )
        for entry in entries
        for name in _node_names(entry)
    )


def _node_names(entry: NodeEntry) -> list[str]:
    return [entry.name] if entry.count is None else [f"{entry.name}-{i}" for i in range(entry.count)]


def _gang(entry: GangEntry) -> Gang:
    groups = tuple(map(_group, entry.groups))
    return Gang(entry.name, groups, entry.priority, entry.base, entry.required, entry.preferred, entry.configs)


def _group(entry: GroupEntry) -> Group:
    return Group(
        entry.name,
        entry.min,
        entry.desired,
        {"gpus": 1, **entry.amounts},
        entry.required,
        entry.preferred,
        entry.demands,
        entry.gated,
        entry.missing,
    )


def _running(entry: RunningEntry, instance: Instance) -> RunningPod:
    own_requests = {"gpus": 1, **entry.amounts}
    requests = instance.gang(entry.gang).group(entry.group).requests if entry.gang else own_requests
    return RunningPod(entry.name, entry.node, requests, entry.priority, entry.gang, entry.group, entry.state)


def _check(document: Document, index: int, entry: ScenarioEntry) -> None:
    """Check what the schema cannot express: that names exist, and that minimums do not exceed the desired pods."""
    gangs = {gang.name: {group.name for group in gang.groups} for gang in entry.gangs}
    nodes = {name for node in entry.nodes for name in _node_names(node)}

    def check_name(name: str, names: set[str], *field: str | int) -> None:
        if name not in names:
            place = document.location("scenarios", index, *field)
            raise UsageError(f"nothing is called {name!r}", where=place, hint=documents.suggestion(name, names))

    for i, pod in enumerate(entry.running):
        check_name(pod.node, nodes, "running", i, "node")
        if pod.gang:
            check_name(pod.gang, set(gangs), "running", i, "gang")
            check_name(pod.group, gangs[pod.gang], "running", i, "group")
    for i, gang in enumerate(entry.gangs):
        if gang.base:
            check_name(gang.base, set(gangs), "gangs", i, "base")
        for j, config in enumerate(gang.configs):
            for k, name in enumerate(config.groups):
                check_name(name, gangs[gang.name], "gangs", i, "configs", j, "groups", k)
        for j, group in enumerate(gang.groups):
            if group.min > group.desired and group.gated is None and group.missing is None:
                place = document.location("scenarios", index, "gangs", i, "groups", j, "min")
                raise UsageError("is more than is desired", where=place, hint="lower it")
    for key, names in (("always", entry.always), ("never", entry.never)):
        for i, name in enumerate(names):
            check_name(name, set(gangs), key, i)


def _node_entry(node: Node) -> dict[str, Any]:
    labels = {key: value for key, value in node.labels.items() if (key, value) != (HOST, node.name)}
    entry: dict[str, Any] = {"name": node.name, **node.capacity}
    if labels:
        entry["labels"] = labels
    if node.taints:
        entry["taints"] = [dict(taint) for taint in node.taints]
    if not node.schedulable:
        entry["schedulable"] = False
    return entry


def _running_entry(pod: RunningPod) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": pod.name, "node": pod.node}
    if pod.gang:
        entry |= {"gang": pod.gang, "group": pod.group}
    else:
        entry |= {"priority": pod.priority, **pod.requests}
    return entry if pod.state == "running" else {**entry, "state": pod.state}


def _gang_entry(gang: Gang) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": gang.name}
    entry |= {key: value for key in ("priority", "base", "required", "preferred") if (value := getattr(gang, key))}
    if gang.configs:
        entry["configs"] = [{"groups": list(scope.groups), **_keys(scope)} for scope in gang.configs]
    entry["groups"] = [
        {
            "name": group.name,
            "min": group.minimum,
            "desired": group.desired,
            **group.requests,
            **_keys(group),
            **group.demands,
            **{key: value for key in ("gated", "missing") if (value := getattr(group, key)) is not None},
        }
        for group in gang.groups
    ]
    return entry


def _keys(constrained: Scope | Group) -> dict[str, str]:
    return {key: value for key in ("required", "preferred") if (value := getattr(constrained, key))}
