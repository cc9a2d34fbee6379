"""The registry of requirements (`requirements/`, one file per profile), and the decorators with which tests declare
their requirements.

An id is never reused, renamed or silently removed: a retired id stays listed, with the reason.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from conformance import documents
from conformance.errors import UsageError
from conformance.suite.registry import basis as bases
from conformance.suite.registry.basis import Basis

if TYPE_CHECKING:
    import pytest

FOLDER = Path(__file__).parent / "requirements"
SCHEMA = Path(__file__).parent / "requirements.schema.json"
MARK = "requirements"
PLAYED_FEATURES = frozenset({"consolidation"})
"""Features that no requirement names, because they change how scenarios are run, not what is judged."""

Test = TypeVar("Test", bound=Callable[..., object])


class Level(StrEnum):
    """RFC 2119 levels. Only a MUST decides the verdict; a failed SHOULD or MAY is reported. COMPAT is for behavior that
    only upstream's code has; it is counted separately, as compatibility with upstream. MUSTs of seeds are also counted
    separately."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"
    COMPAT = "COMPAT"


@dataclass(frozen=True)
class Limit:
    """A limit that the specification accepts: its row, and a human-readable reason."""

    row: str
    reason: str

    def __str__(self) -> str:
        return f"{self.row}: {self.reason}"


@dataclass(frozen=True)
class Requirement:
    """One normative sentence. `roles` are the roles that it judges; `feature` is empty for requirements on all
    implementations; `unless` are the features that exempt an implementation; `seed` names the proposal that the
    requirement rests on if upstream's contract does not contain it. `violation` is a title for its failure.
    `kubernetes` is the minimum minor version, if the requirement follows from a promise of Kubernetes. `limit`: the
    specification accepts that the requirement does not hold; a violation is shown, but does not count as a failure."""

    id: str
    profile: str
    level: Level
    text: str
    source: tuple[str, ...]
    since: str
    roles: tuple[str, ...]
    feature: str = ""
    unless: tuple[str, ...] = ()
    reproduce: tuple[str, ...] = ()
    violation: str = ""
    seed: str = ""
    kubernetes: str = ""
    limit: Limit | None = None
    until: str = ""
    """The last release of Grove for which the requirement holds; empty if it still holds."""
    successors: tuple[str, ...] = ()
    """The requirements that replace it for later releases."""
    basis: Basis = bases.NO_BASIS
    demands: str = ""
    """What its check demands beyond the sentence."""

    @property
    def decides(self) -> bool:
        """Return whether its failure decides the verdict: it is a MUST of upstream's contract, not of a seed."""
        return self.level is Level.MUST and not self.seed


@dataclass(frozen=True)
class Retired:
    """An id that is no longer judged and never reused."""

    id: str
    text: str
    reason: str


@dataclass(frozen=True)
class ClusterNeeds:
    """The minor version of Kubernetes and the sets of features that a profile needs."""

    kubernetes: str
    features: tuple[str, ...]


@dataclass(frozen=True)
class Registry:
    """All requirements by id, in the order of their ids, and profiles with their descriptions. `clusters` maps profiles
    that the default cluster cannot serve to the cluster that they need; such profiles are judged only if they are
    selected."""

    profiles: Mapping[str, str]
    requirements: Mapping[str, Requirement]
    retired: Mapping[str, Retired]
    clusters: Mapping[str, ClusterNeeds] = field(default_factory=dict)

    def get(self, id: str) -> Requirement:
        """Return the requirement of an id. Raises UsageError with a suggestion if there is none."""
        if id in self.retired:
            raise UsageError(f"requirement {id} is retired: {self.retired[id].reason}", hint="choose another id")
        if id not in self.requirements:
            raise UsageError(f"unknown requirement {id!r}", hint=documents.suggestion(id.upper(), self.requirements))
        return self.requirements[id]

    @property
    def features(self) -> frozenset[str]:
        """Return all features that an implementation may claim."""
        named = ((r.feature, *r.unless) for r in self.requirements.values())
        return frozenset(feature for names in named for feature in names if feature) | PLAYED_FEATURES


def load(folder: Path = FOLDER) -> Registry:
    """Read the registry from the YAML files of a folder, once per process. Raises UsageError with file, line and field
    if a file is invalid."""
    return _load(folder)


@functools.cache
def _load(folder: Path) -> Registry:
    profiles: dict[str, str] = {}
    requirements: dict[str, Requirement] = {}
    retired: dict[str, Retired] = {}
    used_ids: dict[str, tuple[documents.Document, documents.Field]] = {}
    clusters: dict[str, ClusterNeeds] = {}
    for path in sorted(folder.glob("*.yaml")):
        document = documents.read(path, SCHEMA)
        bases.check(document)
        profile = document.value["profile"]
        if profile in profiles:
            hint = "put the entries into the other one"
            raise UsageError(f"profile {profile} has two files", where=document.location("profile"), hint=hint)
        profiles[profile] = " ".join(document.value["text"].split())
        if needs := document.value.get("cluster"):
            clusters[profile] = ClusterNeeds(needs["kubernetes"], tuple(needs["features"]))
        for part in ("requirements", "retired"):
            for number, entry in enumerate(document.value.get(part, ())):
                field = (part, number, "id")
                if entry["id"] in used_ids:
                    other_document, earlier_field = used_ids[entry["id"]]
                    problem = f"{entry['id']} is already used in {other_document.location(*earlier_field)}"
                    place = document.location(*field)
                    raise UsageError(problem, where=place, hint="give it a new number: ids are never reused")
                used_ids[entry["id"]] = document, field
        requirements |= {entry["id"]: _requirement(profile, entry) for entry in document.value["requirements"]}
        retired |= {
            entry["id"]: Retired(entry["id"], " ".join(entry["text"].split()), entry["reason"])
            for entry in document.value.get("retired", ())
        }
    if not profiles:
        raise UsageError(
            "has no requirements", where=documents.display_path(folder), hint="name a folder of YAML files"
        )
    return Registry(profiles, dict(sorted(requirements.items())), dict(sorted(retired.items())), clusters)


def _requirement(profile: str, entry: Mapping[str, Any]) -> Requirement:
    unless = entry.get("unless", ())
    return Requirement(
        id=entry["id"],
        profile=profile,
        level=Level(entry["level"]),
        text=" ".join(entry["text"].split()),
        source=tuple(entry["source"]),
        since=entry["since"],
        roles=tuple(entry["roles"]),
        feature=entry.get("feature", ""),
        unless=(unless,) if isinstance(unless, str) else tuple(unless),
        reproduce=tuple(entry.get("reproduce", ())),
        violation=entry.get("violation", ""),
        seed=entry.get("seed", ""),
        kubernetes=entry.get("kubernetes", ""),
        limit=Limit(**entry["limit"]) if "limit" in entry else None,
        until=entry.get("until", ""),
        successors=tuple(entry.get("successors", ())),
        basis=bases.read(entry),
        demands=" ".join(entry.get("demands", "").split()),
    )


def requirements(*ids: str) -> pytest.MarkDecorator:
    """Declare the requirements that a test judges. Each must have an outcome when the test ends."""
    if not ids or len(set(ids)) != len(ids):
        raise TypeError(f"@requirements needs one or more different ids, got {ids!r}")
    return _mark(*ids)


def requirement(id: str, *, reaches: str | Iterable[str] = ()) -> pytest.MarkDecorator:
    """Declare the one requirement that a test judges. `reaches` are the steps of its scene that the requirement is
    about: the test also judges that these steps are reached. `{name}` stands for a parameter of the test."""
    steps = (reaches,) if isinstance(reaches, str) else tuple(reaches)
    return _mark(id, reaches=steps)


def _mark(*ids: str, **options: object) -> pytest.MarkDecorator:
    import pytest  # already imported in tests; other users of the registry do not need it

    mark: pytest.MarkDecorator = getattr(pytest.mark, MARK)(*ids, **options)
    return mark


def declared(item: pytest.Item) -> tuple[str, ...]:
    """Return the sorted ids that a collected test declares; empty for a test without the decorator."""
    ids: set[str] = set()
    for mark in item.iter_markers(MARK):
        ids.update(str(a) for a in mark.args)
    return tuple(sorted(ids))


def reaches(item: pytest.Item) -> tuple[str, ...]:
    """Return the steps of its scene that the requirement of a collected test is about."""
    params: Mapping[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    steps = [step for mark in item.iter_markers(MARK) for step in mark.kwargs.get("reaches", ())]
    return tuple(step.format_map(params) for step in steps)


def problems(registry: Registry, tests: Mapping[str, Iterable[str]]) -> list[str]:
    """Return a message for each inconsistency between the registry and the collected tests (node id → declared ids)."""
    result: list[str] = []
    for test, ids in sorted(tests.items()):
        listed = list(ids)
        if not listed:
            result.append(f"{test}: has no @requirements(…): a conformance test says what it judges")
        for id in listed:
            if id in registry.retired:
                result.append(f"{test}: declares {id}, which is retired ({registry.retired[id].reason})")
            elif id not in registry.requirements:
                result.append(f"{test}: declares {id}, unknown ({documents.suggestion(id, registry.requirements)})")
    return result


def unjudged(registry: Registry, tests: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the requirements that no collected test declares."""
    judged = {id for ids in tests.values() for id in ids}
    return [id for id in registry.requirements if id not in judged]
