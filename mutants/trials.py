"""Trials: which runs of the suite prove what, and in which order they start."""

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
"""Waits for what a broken implementation never does are cut short."""

INVARIANT = "INV"
"""The area of requirements that every test judges."""

SECONDS = Path(__file__).parent.parent / "reports" / "mutants.json"
"""The duration of the last run of each trial."""


@dataclass(frozen=True)
class Bench:
    """An implementation that trials run on, and the options of its cluster."""

    implementation: str
    cluster: tuple[str, ...] = ()


USUAL = Bench("reference")
WORKLOAD_API = Bench("reference-workload-api", ("--kubernetes", "1.37", "--features", "workload-api"))
"""For requirements that are judged on kube-scheduler (docs/workload-api.md)."""


NAMES = Bench("reference-names")
"""For requirements of the earlier line of Grove's contract, which the reference as it is does not follow."""
OF_NAMES = frozenset({"CORE-032", "CORE-033", "RES-051"})
KAI = Bench("reference-kai")
"""For requirements about the topology resources of schedulers, which need the back-end of one."""
OF_KAI = frozenset({"TOPO-052", "TOPO-053"})
BENCHES = (USUAL, NAMES, KAI, WORKLOAD_API)


def bench(ids: Iterable[str]) -> Bench:
    """Return the bench that trials of these requirements run on."""
    requested = set(ids)
    if any(identity.startswith("WAPI-") for identity in requested):
        return WORKLOAD_API
    if not requested.isdisjoint(OF_KAI):
        return KAI
    return USUAL if requested.isdisjoint(OF_NAMES) else NAMES


@dataclass(frozen=True)
class Trial:
    """A run of the suite: against what, on which requirements, and which outcome each of them must have."""

    kind: Literal["mutant", "variant", "reference"]
    name: str
    text: str
    ids: tuple[str, ...]
    time_scale: str = TIME_SCALE
    blocked: tuple[str, ...] = ()
    """The ids that a test which ends early must leave without a verdict."""
    profiles: tuple[str, ...] = ()
    """Profiles that are run as a whole; none of their requirements may be open, either."""
    exempt: tuple[str, ...] = ()
    """Requirements whose outcome does not matter."""
    armed: tuple[str, ...] = ()
    """The switches that are armed, if not just the one that it is named after."""
    whole: bool = False
    """Whether all requirements are judged, on clusters of the run's own."""

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
        of_variant = cls("variant", variant.name, variant.text, variant.passes, scale)
        return replace(of_variant, profiles=variant.profiles, exempt=variant.exempt)


def together(variants: Iterable[Variant], *, whole: bool = False) -> list[Trial]:
    """Return a trial for each bench in which all variants are armed at once that can be: on what each names first, or,
    if `whole`, on everything."""
    listed = [variant for variant in variants if not variant.conflict]
    casts = [(target, [variant for variant in listed if bench(variant.passes) is target]) for target in BENCHES]
    return [_at_once(cast, target, whole) for target, cast in casts if cast]


def _at_once(cast: Sequence[Variant], on: Bench, whole: bool) -> Trial:
    """Return the trial of variants that are armed together. What one of them is exempt from, no other one can pass."""
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
    """Return at most `runs` trials without a mutant, with all requirements that the chosen ones claim.

    An area of requirement ids stays in one run, since tests are shared within it; the runs get about as many ids each.
    Invariants are judged in all of them, and would select nearly every test by themselves.
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


def longest_first(trials: Iterable[Trial], file: Path = SECONDS) -> list[Trial]:
    """Sort trials so that no long one runs alone at the end: controls, then what never ran, then by the last time."""
    last_seconds = _seconds(file)
    return sorted(trials, key=lambda trial: (trial.kind != "reference", -last_seconds.get(_key(trial), float("inf"))))


def remember(took: Iterable[tuple[Trial, float]], file: Path = SECONDS) -> None:
    """Keep how long trials took, for the order of the next call."""
    all_seconds = _seconds(file) | {_key(trial): round(seconds, 1) for trial, seconds in took}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(all_seconds, indent=1, sort_keys=True), encoding="utf-8")


def _key(trial: Trial) -> str:
    return f"{trial.kind} {trial.name}"


def _seconds(file: Path) -> dict[str, float]:
    try:
        return dict(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError):  # never written, or half of it: the order is a matter of speed alone
        return {}
