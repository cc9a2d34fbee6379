"""Pairs of clique templates that differ in one respect, from `fixtures/hashes/templates.yaml` or randomly generated."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from conformance import data, formats
from conformance.formats import Format
from conformance.grove.restricted import restricted

Spec = dict[str, Any]

KEYED_LISTS = ("containers", "volumes", "imagePullSecrets", "hostAliases", "schedulingGates", "resourceClaims")
KEYED_CONTAINER_LISTS = ("ports", "volumeMounts", "volumeDevices")


Name = Annotated[
    str,
    Meta(pattern="^[a-z]([a-z-]{0,14}[a-z])?$", description="name of the clique, at most 16 letters and hyphens"),
]
SpecPath = Annotated[str, Meta(pattern="^(/[A-Za-z0-9]+)+$", description="a path such as /containers/0/image")]


class ReversedPair(Format, frozen=True):
    """A pod spec, by the fields in which it differs from the base, and the lists to reverse in it."""

    name: Name
    pod_spec: Spec
    reversed: Annotated[list[SpecPath], Meta(min_length=1)]


class ChangedPair(Format, frozen=True):
    """A pod spec, by the fields in which it differs from the base, and the values to set in it, by path."""

    name: Name
    set: Annotated[dict[SpecPath, Any], Meta(min_length=1)]
    pod_spec: Spec = msgspec.field(default_factory=dict)


ReversedPairs = Annotated[list[ReversedPair], Meta(min_length=1)]
ChangedPairs = Annotated[list[ChangedPair], Meta(min_length=1)]
Notations = Annotated[list[tuple[Literal["cpu", "memory"], str, str]], Meta(min_length=1)]
"""A resource, and two notations of one amount of it."""


class PairList(Format, frozen=True):
    """The format of a file of pairs. `base` is the pod spec of all entries."""

    base: Spec
    keyed: ReversedPairs
    ordered: ReversedPairs
    open: ReversedPairs
    notations: Notations
    foreign_notations: Notations
    changed: ChangedPairs
    outside_pod_spec: ChangedPairs


@dataclass(frozen=True)
class TemplatePair:
    """A clique template before and after a change."""

    name: str
    before: Spec
    after: Spec


@dataclass(frozen=True)
class Pairs:
    """Pairs by the meaning of the change. `keyed`: reordered lists whose order has no meaning, so no pod may be
    replaced; `ordered` and `changed`: the pods must be replaced; `open`: the pods may be kept or replaced;
    `outside_pod_spec`: changes outside the pod spec. `notations`: an amount as the API machinery writes it, and in
    another notation; `foreign_notations`: the same, with a notation that the API machinery does not rewrite."""

    base: Spec
    keyed: list[TemplatePair]
    ordered: list[TemplatePair]
    open: list[TemplatePair]
    changed: list[TemplatePair]
    outside_pod_spec: list[TemplatePair]
    notations: list[TemplatePair]
    foreign_notations: list[TemplatePair]


def read(path: Path | None = None) -> Pairs:
    """Read a file of pairs. Raises UsageError with file, line and field if the file is invalid."""
    _, file = formats.read(path or data.folder("fixtures") / "hashes" / "templates.yaml", PairList)
    pairs = (
        list(_pairs(file.base, part))
        for part in (file.keyed, file.ordered, file.open, file.changed, file.outside_pod_spec)
    )
    notations = (list(_notations(file.base, part)) for part in (file.notations, file.foreign_notations))
    return Pairs(file.base, *pairs, *notations)


def _pairs(base: Spec, entries: Sequence[ReversedPair | ChangedPair]) -> Iterator[TemplatePair]:
    for entry in entries:
        before = template(entry.name, {**base, **entry.pod_spec})
        after = copy.deepcopy(before)
        if isinstance(entry, ReversedPair):
            for path in entry.reversed:
                holder, last = _place(after, path)
                holder[last] = holder[last][::-1]
        else:
            for path, value in entry.set.items():
                holder, last = _place(after, path)
                holder[last] = copy.deepcopy(value)
        after["spec"]["podSpec"] = restricted(after["spec"]["podSpec"])
        yield TemplatePair(entry.name, before, after)


def _notations(base: Spec, entries: Notations) -> Iterator[TemplatePair]:
    for number, (resource, *notations) in enumerate(entries):
        name = f"{resource}-{number}"
        yield TemplatePair(name, *(template(name, _requesting(base, resource, notation)) for notation in notations))


def random_notations(rng: random.Random, base: Spec, name: str) -> TemplatePair:
    """Return a pair of templates that request the same random amount of CPU, once as Kubernetes' library writes it and
    once as a decimal number (HASH-069)."""
    hundredths = rng.randint(1, 250)
    canonical = str(hundredths // 100) if hundredths % 100 == 0 else f"{hundredths * 10}m"
    templates = (
        template(name, _requesting(base, "cpu", quantity)) for quantity in (canonical, f"{hundredths / 100:.2f}")
    )
    return TemplatePair(name, *templates)


def _requesting(base: Spec, resource: str, amount: object) -> Spec:
    """Return a pod spec with the amount in every kind of field that holds a quantity."""
    (container,) = base["containers"]
    limit = {"emptyDir": {"sizeLimit": amount}} if resource == "memory" else {"emptyDir": {}}
    amounts = {"requests": {resource: amount}, "limits": {resource: amount}}
    return {**base, "containers": [{**container, "resources": amounts}], "volumes": [{"name": "v", **limit}]}


def template(name: str, pod_spec: Spec) -> Spec:
    """Return a clique template with one pod that restricted namespaces admit."""
    return {
        "name": name,
        "labels": {"example.com/clique": name},
        "spec": {"roleName": name, "replicas": 1, "minAvailable": 1, "podSpec": restricted(copy.deepcopy(pod_spec))},
    }


def _place(clique: Spec, path: str) -> tuple[Any, Any]:
    """Return the object or list that contains the value at a path, and the value's key or index in it."""
    steps = path.strip("/").split("/")
    holder: Any = clique if steps[0] == "template" else clique["spec"]["podSpec"]
    *parent_steps, last_step = steps[1:] if steps[0] == "template" else steps
    for step in parent_steps:
        holder = holder[int(step)] if isinstance(holder, list) else holder[step]
    return holder, int(last_step) if isinstance(holder, list) else last_step


def reordered_spec(rng: random.Random, pod_spec: Spec) -> Spec:
    """Return the pod spec with all lists whose order has no meaning reordered, if they have two or more items."""
    result = copy.deepcopy(pod_spec)
    _shuffle(rng, result, KEYED_LISTS)
    for field in ("containers", "initContainers", "ephemeralContainers"):
        for container in result.get(field, ()):
            _shuffle(rng, container, KEYED_CONTAINER_LISTS)
            _shuffle(rng, container.get("resources", {}), ("claims",))
    return result


def _shuffle(rng: random.Random, holder: Spec, names: tuple[str, ...]) -> None:
    for name in names:
        if len(holder.get(name, ())) > 1:
            before = list(holder[name])
            while holder[name] == before:
                rng.shuffle(holder[name])


def random_pod_spec(rng: random.Random) -> Spec:
    """Return a random valid pod spec with lists of all kinds, whose pods can run."""
    volumes = [{"name": name, "emptyDir": {}} for name in _names(rng, 2, 4)]

    def container(name: str) -> Spec:
        ports = rng.sample([(port, protocol) for port in (80, 443, 8000, 9000) for protocol in ("TCP", "UDP")], 3)
        return {
            "name": name,
            "image": f"registry.example/{rng.choice(('engine', 'router'))}:{rng.randint(1, 9)}",
            "args": _names(rng, 0, 3),
            "env": [{"name": name.upper(), "value": str(rng.randint(0, 99))} for name in _names(rng, 1, 4)],
            "ports": [{"containerPort": port, "protocol": protocol} for port, protocol in ports],
            "volumeMounts": [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes],
        }

    containers = [container(name) for name in _names(rng, 2, 3)]
    return {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": rng.randint(1, 5),
        "containers": containers,
        "initContainers": [container(f"init-{name}") for name in _names(rng, 1, 2)],
        "volumes": volumes,
        "imagePullSecrets": [{"name": name} for name in _names(rng, 2, 3)],
        "hostAliases": [{"ip": f"10.0.0.{n}", "hostnames": ["z", "a"]} for n in rng.sample(range(1, 30), 2)],
        "tolerations": [{"key": f"example.com/{name}", "operator": "Exists"} for name in _names(rng, 1, 3)],
    }


def changed_spec(rng: random.Random, pod_spec: Spec) -> Spec:
    """Return the pod spec with one meaningful change and its lists reordered."""
    result = reordered_spec(rng, pod_spec)
    container = rng.choice([*result["containers"], *result.get("initContainers", ())])
    match rng.randrange(6):
        case 0:
            container["image"] += "-changed"
        case 1:
            container["env"] = [*container["env"], {"name": "CHANGED", "value": "1"}]
        case 2:
            container["args"] = [*container["args"], "--changed"]
        case 3:
            container["volumeMounts"][0]["mountPath"] = "/changed"
        case 4:
            result["volumes"].append({"name": "changed", "emptyDir": {}})
        case _:
            result["tolerations"] = [*result["tolerations"], {"key": "example.com/changed", "operator": "Exists"}]
    return result


def _names(rng: random.Random, minimum: int, maximum: int) -> list[str]:
    return rng.sample(("ant", "bee", "cat", "dog", "eel", "fox", "gnu"), rng.randint(minimum, maximum))
