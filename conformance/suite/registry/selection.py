"""The selection of a run: the requested profiles and ids, without what the implementation does not claim. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from conformance import documents, invariants
from conformance.errors import UsageError
from conformance.grove import lines
from conformance.suite.registry.requirement import Registry, Requirement

INVARIANT = "INV-"
"""The prefix of ids that nothing but invariants judges."""
RULES = frozenset(rule.id for rule in invariants.rules())
"""All ids that invariants judge: of some requirements that have tests of their own, too."""


@dataclass(frozen=True)
class Scope:
    """The selection. `profiles` are those of the report. Of their requirements the `judged` are run; `unclaimed` (id →
    reason) and those that were not selected are not. `foreign` are all that do not hold for the claimed features.
    `named` are the ids that were selected."""

    profiles: tuple[str, ...]
    judged: frozenset[str]
    unclaimed: dict[str, str]
    foreign: frozenset[str]
    named: frozenset[str] = frozenset()

    def takes(self, declared: Iterable[str]) -> bool:
        """Return whether a test that declares these ids runs. Invariants alone do not select tests that declare others
        as well, unless they were selected by id: any test judges them. A test of features that are not claimed never
        runs: it may need what the implementation cannot do."""
        ids = frozenset(declared)
        own = {id for id in ids if not id.startswith(INVARIANT)}
        selecting = (own | (ids & self.named)) if own else ids
        return not self.judged.isdisjoint(selecting) and not (own and own <= self.foreign)

    def with_violated(self, registry: Registry, failed: Iterable[str]) -> Scope:
        """Return the selection with the invariants among the ids that failed: a violated invariant fails the test, so
        it counts, whatever was selected."""
        violated = RULES.intersection(failed, registry.requirements) - {*self.unclaimed}
        profiles = {registry.requirements[id].profile for id in violated}
        return replace(self, profiles=tuple(sorted({*self.profiles, *profiles})), judged=self.judged | violated)


def scope(
    registry: Registry,
    profiles: Iterable[str],
    ids: Iterable[str],
    roles: Iterable[str],
    features: Iterable[str],
    kubernetes: str = "",
    release: str = "",
) -> Scope:
    """Return the selection. Profiles default to those of the ids, else to all that need no cluster of their own.
    `kubernetes` is the version of the cluster and `release` that of Grove's contract, if they are known. Raises
    UsageError for an unknown profile or id."""
    asked, wanted = sorted(set(profiles)), sorted(set(ids))
    for profile in asked:
        if profile not in registry.profiles:
            listed = ", ".join(sorted(registry.profiles))
            near = documents.suggestion(profile, registry.profiles)
            hint = near if near.startswith("known") else f"{near} profiles: {listed}"
            raise UsageError(f"unknown profile {profile!r}", hint=hint)
    for id in wanted:
        entry = registry.get(id)
        if asked and entry.profile not in asked:
            raise UsageError(f"{id} is of profile {entry.profile}", hint=f"add --profile {entry.profile}, or drop it")
    chosen = asked or sorted({registry.get(id).profile for id in wanted})
    chosen = chosen or sorted(set(registry.profiles) - set(registry.clusters))
    judged: set[str] = set()
    unclaimed: dict[str, str] = {}
    for entry in registry.requirements.values():
        if entry.profile not in chosen:
            continue
        why = not_claimed(entry, roles, features, kubernetes, release)
        if why:
            unclaimed[entry.id] = why
        elif not wanted or entry.id in wanted:
            judged.add(entry.id)
    claimed = set(features)
    foreign = frozenset(
        id
        for id, entry in registry.requirements.items()
        if (entry.feature and entry.feature not in claimed)
        or not claimed.isdisjoint(entry.unless)
        or not lines.holds(entry.since, entry.until, release)
    )
    return Scope(tuple(chosen), frozenset(judged), unclaimed, foreign, frozenset(wanted))


def not_claimed(
    entry: Requirement, roles: Iterable[str], features: Iterable[str], kubernetes: str = "", release: str = ""
) -> str:
    """Return why the implementation is not judged by a requirement; empty if it is."""
    played = set(roles)
    if played.isdisjoint(entry.roles):
        return f"doesn't play the role {' or '.join(entry.roles)}"
    if entry.feature and entry.feature not in set(features):
        return f"doesn't claim the feature {entry.feature}"
    if foreign := sorted(set(entry.unless).intersection(features)):
        return f"doesn't hold where the feature {foreign[0]} is claimed"
    if not lines.holds(entry.since, "", release):
        return f"holds from {entry.since} of Grove"
    if not lines.holds("", entry.until, release):
        return f"holds up to {entry.until} of Grove"
    if entry.kubernetes and kubernetes and _minor(kubernetes) < _minor(entry.kubernetes):
        return f"holds from Kubernetes {entry.kubernetes}"
    return ""


def _minor(version: str) -> tuple[int, int]:
    """Return major and minor of a version such as `1.37`, `1.37.2` or `v1.37.2`; zeros if it is none."""
    found = re.match(r"v?(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)
