"""Trials: the runs of the suite that prove mutants and variants, and the order in which they start."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import yaml

from mutants.registry import Mutant, Variant

TIME_SCALE = "0.25"
"""The usual time scale. It shortens waits for things that a broken implementation never does."""

INVARIANT = "INV"
"""The prefix of the requirements that are judged in every test."""

DURATIONS_FILE = Path(__file__).parent.parent / "reports" / "mutants.json"
"""The file with the duration of each trial's last run."""


@dataclass(frozen=True)
class Bench:
    """An implementation that trials run on, and the options of its cluster."""

    implementation: str
    cluster: tuple[str, ...] = ()


USUAL = Bench("reference")
WORKLOAD_API = Bench("reference-workload-api", ("--kubernetes", "1.37", "--features", "workload-api"))
"""The bench for requirements that are judged with kube-scheduler (docs/workload-api.md)."""


NAMES_BENCH = Bench("reference-names")
"""The bench for requirements of the contract's earlier release line, which the default reference does not follow."""
NAMES_REQUIREMENTS = frozenset({"CORE-032", "CORE-033", "RES-051"})
KAI_BENCH = Bench("reference-kai")
"""The bench for requirements about schedulers' topology resources, which need the back-end of such a scheduler."""
KAI_REQUIREMENTS = frozenset({"TOPO-052", "TOPO-053"})
BENCHES = (USUAL, NAMES_BENCH, KAI_BENCH, WORKLOAD_API)


def bench(ids: Iterable[str]) -> Bench:
    """Return the bench that trials of these requirements run on."""
    requested = set(ids)
    if any(identity.startswith("WAPI-") for identity in requested):
        return WORKLOAD_API
    if not requested.isdisjoint(KAI_REQUIREMENTS):
        return KAI_BENCH
    return USUAL if requested.isdisjoint(NAMES_REQUIREMENTS) else NAMES_BENCH


@dataclass(frozen=True)
class Trial:
    """A run of the suite: its subject, its requirements, and the outcome that each requirement must have."""

    kind: Literal["mutant", "variant", "reference"]
    name: str
    text: str
    ids: tuple[str, ...]
    time_scale: str = TIME_SCALE
    blocked: tuple[str, ...] = ()
    """Requirements that must be left without a verdict because a test ends early."""
    profiles: tuple[str, ...] = ()
    """Profiles that run as a whole. All their requirements must get a verdict."""
    exempt: tuple[str, ...] = ()
    """Requirements whose outcome does not matter."""
    armed: tuple[str, ...] = ()
    """The armed switches, unless the only one is the switch that the trial is named after."""
    whole: bool = False
    """Whether all requirements are judged, on clusters that the run starts itself."""

    def right(self, identity: str) -> str:
        """Return the outcome that a requirement must have."""
        if identity in self.blocked:
            return "blocked"
        return "failed" if self.kind == "mutant" else "passed"

    @property
    def switches(self) -> tuple[str, ...]:
        """The switches that are armed."""
        return () if self.kind == "reference" else self.armed or (self.name,)

    @property
    def bench(self) -> Bench:
        """The bench that the trial runs on."""
        return bench(self.ids)

    @classmethod
    def of_mutant(cls, mutant: Mutant) -> Trial:
        """Return the trial of a mutant."""
        ids = (*mutant.caught_by, *mutant.blocks)
        return cls("mutant", mutant.name, mutant.text, ids, blocked=mutant.blocks)

    @classmethod
    def of_variant(cls, variant: Variant) -> Trial:
        """Return the trial of a variant."""
        scale = str(variant.time_scale or TIME_SCALE)
        trial = cls("variant", variant.name, variant.text, variant.passes, scale)
        return replace(trial, profiles=variant.profiles, exempt=variant.exempt)


def combined_trials(variants: Iterable[Variant], *, whole: bool = False) -> list[Trial]:
    """Return one trial per bench in which all compatible variants are armed together. Each trial judges the first
    requirement that each variant names or, with `whole`, all requirements."""
    compatible = [variant for variant in variants if not variant.conflict]
    casts = [(target, [variant for variant in compatible if bench(variant.passes) is target]) for target in BENCHES]
    return [_at_once(cast, target, whole) for target, cast in casts if cast]


def _at_once(cast: Sequence[Variant], on: Bench, whole: bool) -> Trial:
    """Return the trial of variants that are armed together. If one variant is exempt from a requirement, no other
    variant has to pass it."""
    exempt = {id for variant in cast for id in variant.exempt}
    passes = [[id for id in variant.passes if id not in exempt] for variant in cast]
    return Trial(
        "variant",
        f"together-on-{on.implementation}",
        f"{len(cast)} variants at once",
        tuple(sorted({id for ids in passes for id in (ids if whole else ids[:1])})),
        exempt=tuple(sorted(exempt)),
        armed=tuple(variant.name for variant in cast),
        profiles=("workload-api",) if whole and on is WORKLOAD_API else (),
        whole=whole,
    )


def controls(chosen: Sequence[Mutant], runs: int) -> list[Trial]:
    """Return at most `runs` trials without a mutant that cover all requirements claimed by the chosen mutants.

    An area of requirement ids stays in one run, because its tests share scenes. The runs get about the same number of
    ids. Invariants are judged in all runs, and selecting them would select nearly every test.
    """
    areas: dict[str, list[str]] = {}
    for identity in sorted({identity for mutant in chosen for identity in (*mutant.caught_by, *mutant.blocks)}):
        areas.setdefault(identity.partition("-")[0], []).append(identity)
    if len(areas) > 1:
        areas.pop(INVARIANT, None)
    shares: list[tuple[int, int, list[str]]] = [(0, number, []) for number in range(min(runs, len(areas)))]
    for area in sorted(areas, key=lambda area: (-len(areas[area]), area)):
        size, number, share = heapq.heappop(shares)
        heapq.heappush(shares, (size + len(areas[area]), number, [*share, area]))
    return [
        Trial(
            "reference",
            f"control-{number + 1}",
            f"{', '.join(sorted(share))}: the reference as it is",
            tuple(identity for area in sorted(share) for identity in areas[area]),
        )
        for _, number, share in sorted(shares, key=lambda entry: entry[1])
    ]


def selection() -> list[str]:
    """Return the mutants that `make test` proves."""
    return list(yaml.safe_load((Path(__file__).parent / "selection.yaml").read_text(encoding="utf-8")))


def longest_first(trials: Iterable[Trial], file: Path = DURATIONS_FILE) -> list[Trial]:
    """Sort trials so that no long trial runs alone at the end. Controls come first, then trials that never ran, then
    the other trials, longest first."""
    last_seconds = _seconds(file)
    return sorted(trials, key=lambda trial: (trial.kind != "reference", -last_seconds.get(_key(trial), float("inf"))))


def remember(durations: Iterable[tuple[Trial, float]], file: Path = DURATIONS_FILE) -> None:
    """Store the durations of trials, which determine the order of the next run."""
    all_seconds = _seconds(file) | {_key(trial): round(seconds, 1) for trial, seconds in durations}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(all_seconds, indent=1, sort_keys=True), encoding="utf-8")


def _key(trial: Trial) -> str:
    return f"{trial.kind} {trial.name}"


def _seconds(file: Path) -> dict[str, float]:
    try:
        return dict(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError):  # missing or incomplete: only the speed depends on the order
        return {}
