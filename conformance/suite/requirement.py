"""The registry of requirements (`requirements.yaml`) and the decorator by which a test declares what it checks.

An id is never reused, renamed or silently removed: a retired one stays listed with the reason (anchors M-01).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

import pytest

from conformance import documents
from conformance.errors import UsageError

FILE = Path(__file__).parent / "requirements.yaml"
SCHEMA = Path(__file__).parent / "requirements.schema.json"
MARK = "requirements"

Test = TypeVar("Test", bound=Callable[..., object])


class Level(StrEnum):
    """RFC 2119. Only a MUST decides the verdict; a SHOULD that fails is shown, a MAY is only told."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"


@dataclass(frozen=True)
class Requirement:
    """One normative sentence. `roles` are the roles it judges, `feature` is empty for what everybody must do."""

    id: str
    profile: str
    level: Level
    text: str
    source: tuple[str, ...]
    since: str
    roles: tuple[str, ...]
    feature: str = ""
    reproduce: tuple[str, ...] = ()


@dataclass(frozen=True)
class Retired:
    """An id that is no longer judged and never given again."""

    id: str
    text: str
    reason: str


@dataclass(frozen=True)
class Registry:
    """All requirements by id, in the order of their ids; profiles with what they mean."""

    profiles: Mapping[str, str]
    requirements: Mapping[str, Requirement]
    retired: Mapping[str, Retired]

    def get(self, id: str) -> Requirement:
        """The requirement of an id; UsageError with a suggestion where there is none."""
        if id in self.retired:
            raise UsageError(f"requirement {id} is retired: {self.retired[id].reason}", mend="choose another id")
        if id not in self.requirements:
            raise UsageError(f"unknown requirement {id!r}", mend=documents.suggestion(id.upper(), self.requirements))
        return self.requirements[id]

    @property
    def features(self) -> frozenset[str]:
        return frozenset(r.feature for r in self.requirements.values() if r.feature)


@functools.cache
def load(path: Path = FILE) -> Registry:
    """Reads a registry, once a process. Raises UsageError (file, line, field) for a broken one."""
    document = documents.read(path, SCHEMA)
    profiles: dict[str, str] = document.value["profiles"]
    found: dict[str, Requirement] = {}
    retired: dict[str, Retired] = {}
    for number, entry in enumerate(document.value["requirements"]):
        at = ("requirements", number)
        if entry["id"] in found:
            where = document.where(*at, "id")
            raise UsageError(f"{entry['id']} stands here twice", where=where, mend="give the second a new number")
        if entry["profile"] not in profiles:
            mend = documents.suggestion(entry["profile"], profiles)
            raise UsageError(f"unknown profile {entry['profile']!r}", where=document.where(*at, "profile"), mend=mend)
        found[entry["id"]] = Requirement(
            id=entry["id"],
            profile=entry["profile"],
            level=Level(entry["level"]),
            text=" ".join(entry["text"].split()),
            source=tuple(entry["source"]),
            since=entry["since"],
            roles=tuple(entry["roles"]),
            feature=entry.get("feature", ""),
            reproduce=tuple(entry.get("reproduce", ())),
        )
    for number, entry in enumerate(document.value.get("retired", ())):
        if entry["id"] in found or entry["id"] in retired:
            where = document.where("retired", number, "id")
            raise UsageError(f"{entry['id']} is retired and in use", where=where, mend="ids are never given again")
        retired[entry["id"]] = Retired(entry["id"], " ".join(entry["text"].split()), entry["reason"])
    return Registry(profiles, dict(sorted(found.items())), dict(sorted(retired.items())))


def requirements(*ids: str) -> pytest.MarkDecorator:
    """Declares the requirements that a test judges. Every one of them must get an outcome when the test ends."""
    if not ids or len(set(ids)) != len(ids):
        raise TypeError(f"@requirements needs one or more different ids, got {ids!r}")
    mark: pytest.MarkDecorator = getattr(pytest.mark, MARK)(*ids)
    return mark


def declared(item: pytest.Item) -> tuple[str, ...]:
    """The ids that a collected test declares, sorted; empty for a test without the decorator."""
    ids: set[str] = set()
    for mark in item.iter_markers(MARK):
        ids.update(str(a) for a in mark.args)
    return tuple(sorted(ids))


def problems(registry: Registry, tests: Mapping[str, Iterable[str]]) -> list[str]:
    """What is wrong between the registry and the collected tests (node id → declared ids), one sentence each."""
    found: list[str] = []
    for test, ids in sorted(tests.items()):
        listed = list(ids)
        if not listed:
            found.append(f"{test}: has no @requirements(…): a conformance test says what it judges")
        for id in listed:
            if id in registry.retired:
                found.append(f"{test}: declares {id}, which is retired ({registry.retired[id].reason})")
            elif id not in registry.requirements:
                found.append(f"{test}: declares {id}, unknown ({documents.suggestion(id, registry.requirements)})")
    return found


def unjudged(registry: Registry, tests: Mapping[str, Iterable[str]]) -> list[str]:
    """The requirements that no collected test declares."""
    judged = {id for ids in tests.values() for id in ids}
    return [id for id in registry.requirements if id not in judged]
