"""The registry of requirements (`requirements/`, one file per profile), and the decorators with which tests declare
their requirements.

An id is never reused, renamed or silently removed: a retired id stays listed, with the reason.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from msgspec import Meta, structs

from conformance import documents, formats
from conformance.errors import UsageError
from conformance.formats import Format, Text
from conformance.suite.registry import basis as bases
from conformance.suite.registry.basis import Basis

if TYPE_CHECKING:
    import pytest

FOLDER = Path(__file__).parent / "requirements"
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


ENDED = {"until": ["successors"], "successors": ["until"]}
"""Fields of an entry that need each other."""
Minor = Annotated[str, Meta(pattern=r"^1\.[0-9]+$")]
Id = Annotated[str, Meta(pattern="^[A-Z]{2,10}-[0-9]{3}$", description="an id is AREA-NNN, for example GANG-004")]


class Limit(Format, frozen=True):
    """A limit that the specification accepts: where it does not hold, that is nobody's failure."""

    row: Annotated[Text, Meta(description="the id of the accepted limit")]
    reason: Annotated[str, Meta(min_length=10, description="why it does not hold, for people")]

    def __str__(self) -> str:
        return f"{self.row}: {self.reason}"


class RequirementEntry(Basis, frozen=True, kw_only=True):
    """One normative sentence, as an entry of a file. `feature` is empty for requirements on all implementations;
    `seed` is empty for requirements of upstream's contract."""

    id: Id
    violation: Annotated[
        str,
        Meta(
            min_length=10,
            max_length=110,
            pattern="^[A-Za-z].*[^.]$",
            description="what is wrong where it does not hold, as the title of a failure",
        ),
    ] = ""
    level: Annotated[Level, Meta(description="of RFC 2119; COMPAT if only upstream's code does so")]
    text: Annotated[str, Meta(min_length=10, description="one normative sentence")]
    source: Annotated[tuple[Text, ...], Meta(min_length=1, description="ids of the facts in the specification")]
    since: Annotated[Text, Meta(description="the first Grove version that it applies to")]
    kubernetes: Annotated[Minor, Meta(description="the first minor version of Kubernetes that it holds from")] = ""
    limit: Limit | None = None
    roles: Annotated[
        tuple[Literal["operator", "gang-scheduler"], ...],
        Meta(min_length=1, description="the roles that it judges", extra_json_schema={"uniqueItems": True}),
    ]
    feature: Annotated[Text, Meta(description="the feature that an implementation must claim")] = ""
    until: Annotated[Text, Meta(description="the last Grove version that it applies to")] = ""
    successors: Annotated[
        tuple[Id, ...],
        Meta(
            min_length=1,
            description="the requirements that say the same of later versions",
            extra_json_schema={"uniqueItems": True},
        ),
    ] = ()
    unless: Annotated[
        tuple[Text, ...], Meta(min_length=1, description="features of implementations that it does not hold for")
    ] = ()
    demands: Annotated[
        str, Meta(min_length=5, description="what its check demands beyond the sentence, time limits above all")
    ] = ""
    seed: Annotated[
        Text, Meta(description="the proposal that it rests on, if no release of upstream has what it says")
    ] = ""
    reproduce: Annotated[tuple[str, ...], Meta(description="kubectl commands that reproduce it by hand")] = ()


class Requirement(RequirementEntry, frozen=True, kw_only=True):
    """A requirement of a profile."""

    profile: str

    @property
    def decides(self) -> bool:
        """Return whether its failure decides the verdict: it is a MUST of upstream's contract, not of a seed."""
        return self.level is Level.MUST and not self.seed


class Retired(Format, frozen=True):
    """An id that is no longer judged and never reused."""

    id: Id
    text: Text
    reason: Annotated[Text, Meta(description="why it is no longer judged")]


class ClusterNeeds(Format, frozen=True):
    """The minor version of Kubernetes and the sets of features (fixtures/features/) that a profile needs."""

    kubernetes: Annotated[Minor, Meta(description="a pinned minor version")]
    features: tuple[Text, ...]


class RequirementList(Format, frozen=True, kw_only=True):
    """The format of a file of requirements."""

    api_version: Literal["conformance.grove.io/v1alpha1"]
    kind: Literal["Requirements"]
    profile: Annotated[str, Meta(pattern="^[a-z][a-z-]*$")]
    text: Annotated[Text, Meta(description="one sentence that says what the profile covers")]
    cluster: ClusterNeeds | None = None
    requirements: list[Annotated[RequirementEntry, Meta(extra_json_schema={"dependentRequired": ENDED})]]
    retired: tuple[Retired, ...] = ()


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
    used_ids: dict[str, str] = {}
    clusters: dict[str, ClusterNeeds] = {}
    for path in sorted(folder.glob("*.yaml")):
        document, file = formats.read(path, RequirementList)
        bases.check(document, file.requirements)
        if file.profile in profiles:
            hint = "put the entries into the other one"
            raise UsageError(f"profile {file.profile} has two files", where=document.location("profile"), hint=hint)
        profiles[file.profile] = file.text
        if file.cluster:
            clusters[file.profile] = file.cluster
        parts: dict[str, Sequence[RequirementEntry | Retired]] = {
            "requirements": file.requirements,
            "retired": file.retired,
        }
        for part, entries in parts.items():
            for number, entry in enumerate(entries):
                place = document.location(part, number, "id")
                if entry.id in used_ids:
                    problem = f"{entry.id} is already used in {used_ids[entry.id]}"
                    raise UsageError(problem, where=place, hint="give it a new number: ids are never reused")
                used_ids[entry.id] = place
        requirements |= {
            entry.id: Requirement(profile=file.profile, **structs.asdict(entry)) for entry in file.requirements
        }
        retired |= {entry.id: entry for entry in file.retired}
    if not profiles:
        raise UsageError(
            "has no requirements", where=documents.display_path(folder), hint="name a folder of YAML files"
        )
    return Registry(profiles, dict(sorted(requirements.items())), dict(sorted(retired.items())), clusters)


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
