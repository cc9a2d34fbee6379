"""Divide a run among machines: each scene belongs to exactly one shard, and all shards take about the same time.

Pure: every machine computes the same division from the same tests, so that the machines need not communicate.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from conformance import data, formats
from conformance.errors import UsageError
from conformance.formats import Format
from conformance.suite.scenes import repeated

Costs = Mapping[str, float]
"""Scene, as in `Plan.groups` → seconds that it takes."""


class SceneCosts(Format, frozen=True):
    """The format of a file of costs: file of the tests → scene, or test with its own environment → what it takes."""

    api_version: Literal["conformance.grove.io/v1alpha1"]
    kind: Literal["SceneCosts"]
    seconds: dict[str, Annotated[dict[str, Annotated[int, Meta(ge=1)]], Meta(min_length=1)]]
    cpu: dict[str, Annotated[dict[str, Annotated[float, Meta(ge=0.1)]], Meta(min_length=1)]]
    """CPU seconds of the worker, the cluster and the implementation."""


@dataclass(frozen=True)
class Shard:
    """Shard `number` of `of` shards, counted from 1."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def parse(text: str, place: str = "--shard") -> Shard:
    """Parse a shard such as `2/5`, which was given with the option `place`. Raises UsageError if the text is not a
    shard."""
    match = re.fullmatch(r"([0-9]{1,4})/([0-9]{1,4})", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise UsageError(f"{text!r} is not a shard", where=place, hint="give i/n, from 1/n to n/n, for example 2/5")
    return Shard(int(match[1]), int(match[2]))


def costs() -> Costs:
    """Return the costs of the suite's scenes. Raises UsageError with file, line and field if their file is invalid."""
    return read(data.folder("fixtures") / "costs" / "scenes.yaml")


def read(path: Path) -> Costs:
    """Read a file of costs. Raises UsageError with file, line and field if the file is invalid."""
    return by_scene(formats.read(path, SceneCosts)[1].seconds)


def by_scene(costs: Mapping[str, Mapping[str, float]]) -> Costs:
    """Return costs by file and name as costs by scene."""
    return {f"{file}::{name}": cost for file, names in costs.items() for name, cost in names.items()}


def part(scenes: Mapping[str, str], shard: Shard, repeat: int = 1, place: str = "--shard") -> frozenset[str]:
    """Return the tests of a shard. `scenes` maps each test to its scene. Raises UsageError if there are fewer scenes
    than shards."""
    count = len(set(scenes.values()))
    if 0 < count < shard.of:
        raise UsageError(f"only {count} scenes are selected", where=f"{place} {shard}", hint=f"give at most {count}")
    return divide(scenes, shard.of, costs(), repeat)[shard.number - 1]


def prices(scenes: Iterable[str], costs: Costs, repeat: int = 1) -> dict[str, float]:
    """Return the cost of each of these scenes. A scene without a known cost gets the median of all known costs."""
    median_cost = statistics.median(costs.values()) if costs else 1.0
    return {scene: costs.get(repeated.without_mark(scene, repeat), median_cost) for scene in set(scenes)}


def divide(scenes: Mapping[str, str], shards: int, costs: Costs, repeat: int = 1) -> list[frozenset[str]]:
    """Return the tests of each shard. `scenes` maps each test to its scene.

    Scenes are assigned in order of decreasing cost, each to the shard with the least to do.
    """
    cost_of = prices(scenes.values(), costs, repeat)
    load = [0.0] * shards
    shard: dict[str, int] = {}
    for scene in sorted(cost_of, key=lambda scene: (-cost_of[scene], scene)):
        shard[scene] = min(range(shards), key=lambda count: (load[count], count))
        load[shard[scene]] += cost_of[scene]
    return [frozenset(test for test, scene in scenes.items() if shard[scene] == n) for n in range(shards)]
