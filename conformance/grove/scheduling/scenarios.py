"""Read instances from `fixtures/scheduling/*.yaml`, and write any instance as YAML that reproduces it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from conformance import data, documents
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
    Scope,
)
from conformance.grove.scheduling.pairs import PAIR_DEMANDS

SCHEMA = "scenarios.schema.json"
RESOURCES = ("gpus", "cpu", "memory")
_DEMANDS = ("nodeSelector", "tolerations", "nodeAffinity", "claim", "requestedBy", *PAIR_DEMANDS)


@dataclass(frozen=True)
class Expectation:
    """The expected outcomes of an instance; a field is None or empty if nothing is expected."""

    must: int | None = None
    should: int | None = None
    always: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    admitted: int | None = None
    victims: tuple[frozenset[str], ...] = ()
    forbidden: tuple[SchedulingOutcome, ...] = ()


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
    expected_after_change: Expectation = Expectation()
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
    document = documents.read(path, folder() / SCHEMA)
    result = []
    for index, entry in enumerate(document.value["scenarios"]):
        _check(document, index, entry)
        result.append(_scenario(entry))
    return result


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


def _scenario(entry: Mapping[str, Any]) -> Scenario:
    instance = Instance(
        nodes=tuple(node for item in entry["nodes"] for node in _nodes(item)),
        gangs=tuple(_gang(item) for item in entry["gangs"]),
        name=entry["id"],
    )
    running = tuple(_running(item, instance) for item in entry.get("running", ()))
    instance = Instance(instance.nodes, instance.gangs, running, instance.name)
    change_entry = entry.get("then")
    change = change_entry and InstanceChange(
        nodes=tuple(node for item in change_entry.get("nodes", ()) for node in _nodes(item)),
        deleted=tuple(change_entry.get("deleted", ())),
        gangs=tuple(_gang(item) for item in change_entry.get("gangs", ())),
    )
    return Scenario(
        entry["id"],
        entry.get("about", ""),
        instance,
        _expectation(entry),
        entry.get("enumerable", True),
        change,
        _expectation(change_entry or {}),
        tuple(entry.get("checks", ())),
    )


def _expectation(entry: Mapping[str, Any]) -> Expectation:
    return Expectation(
        entry.get("must"),
        entry.get("should", entry.get("must")),
        tuple(entry.get("always", ())),
        tuple(entry.get("never", ())),
        entry.get("admitted"),
        tuple(frozenset(names) for names in entry.get("victims", ())),
        tuple(SchedulingOutcome(placed) for placed in entry.get("forbidden", ())),
    )


def _nodes(entry: Mapping[str, Any]) -> list[Node]:
    count = entry.get("count")
    names = [entry["name"]] if count is None else [f"{entry['name']}-{i}" for i in range(count)]
    return [
        Node(
            name,
            _resources(entry),
            {HOST: name, **entry.get("labels", {})},
            tuple(entry.get("taints", ())),
            entry.get("schedulable", True),
        )
        for name in names
    ]


def _gang(entry: Mapping[str, Any]) -> Gang:
    return Gang(
        entry["name"],
        tuple(_group(item) for item in entry["groups"]),
        entry.get("priority", 0),
        entry.get("base", ""),
        entry.get("required", ""),
        entry.get("preferred", ""),
        tuple(
            Scope(tuple(item["groups"]), item.get("required", ""), item.get("preferred", ""))
            for item in entry.get("configs", ())
        ),
    )


def _group(entry: Mapping[str, Any]) -> Group:
    return Group(
        entry["name"],
        entry["min"],
        entry["desired"],
        {"gpus": 1, **_resources(entry)},
        entry.get("required", ""),
        entry.get("preferred", ""),
        {key: entry[key] for key in _DEMANDS if key in entry},
        entry.get("gated"),
        entry.get("missing"),
    )


def _running(entry: Mapping[str, Any], instance: Instance) -> RunningPod:
    gang, group = entry.get("gang", ""), entry.get("group", "")
    asks = instance.gang(gang).group(group).requests if gang else {"gpus": 1, **_resources(entry)}
    state = entry.get("state", "running")
    return RunningPod(entry["name"], entry["node"], asks, entry.get("priority", 0), gang, group, state)


def _resources(entry: Mapping[str, Any]) -> dict[str, int]:
    return {name: entry[name] for name in RESOURCES if name in entry}


def _check(document: Document, index: int, entry: Mapping[str, Any]) -> None:
    """Check what the schema cannot express: that names exist, and that minimums do not exceed the desired pods."""
    gangs = {gang["name"]: {group["name"] for group in gang["groups"]} for gang in entry["gangs"]}
    nodes = {node.name for item in entry["nodes"] for node in _nodes(item)}

    def check_name(name: str, names: set[str], *field: str | int) -> None:
        if name not in names:
            place = document.location("scenarios", index, *field)
            raise UsageError(f"nothing is called {name!r}", where=place, hint=documents.suggestion(name, names))

    for i, pod in enumerate(entry.get("running", ())):
        check_name(pod["node"], nodes, "running", i, "node")
        if "gang" in pod:
            check_name(pod["gang"], set(gangs), "running", i, "gang")
            check_name(pod.get("group", ""), gangs[pod["gang"]], "running", i, "group")
    for i, gang in enumerate(entry["gangs"]):
        if "base" in gang:
            check_name(gang["base"], set(gangs), "gangs", i, "base")
        for j, config in enumerate(gang.get("configs", ())):
            for k, name in enumerate(config["groups"]):
                check_name(name, gangs[gang["name"]], "gangs", i, "configs", j, "groups", k)
        for j, group in enumerate(gang["groups"]):
            if group["min"] > group["desired"] and not {"gated", "missing"} & group.keys():
                place = document.location("scenarios", index, "gangs", i, "groups", j, "min")
                raise UsageError("is more than is desired", where=place, hint="lower it")
    for key in ("always", "never"):
        for i, name in enumerate(entry.get(key, ())):
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
