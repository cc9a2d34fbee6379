"""The selection of a run: the requested profiles and ids, without requirements that the implementation does not claim.
Pure."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from conformance import documents
from conformance.errors import UsageError
from conformance.grove import lines
from conformance.suite.registry.requirement import Registry, Requirement

INVARIANT = "INV-"
"""The prefix of ids that only invariants judge."""


@functools.cache
def _rules() -> frozenset[str]:
    """Return all ids that invariants judge, including requirements that also have their own tests."""
    from conformance import invariants  # the import takes half a second, and only a verdict needs it

    return frozenset(rule.id for rule in invariants.rules())


@dataclass(frozen=True)
class Selection:
    """The requirements that a run judges. `profiles`: the profiles that the report shows. `judged`: ids that get a
    verdict. `unclaimed`: id → why the implementation does not claim it, for ids in `profiles`. `inapplicable_ids`:
    ids that do not apply to the claimed features or the release. `named`: ids that the user selected by id. `skipped`:
    ids that the user excluded. `everywhere`: whether invariants select every scene in which they can be judged."""

    profiles: tuple[str, ...]
    judged: frozenset[str]
    unclaimed: dict[str, str]
    inapplicable_ids: frozenset[str]
    named: frozenset[str] = frozenset()
    skipped: frozenset[str] = frozenset()
    everywhere: bool = True

    def tests(self, declared: Mapping[str, Iterable[str]], scenes: Mapping[str, str]) -> Tests:
        """Return the tests to run. `declared` maps each test to the requirement ids it declares, and `scenes` maps it
        to the scene it judges."""
        selected = {test: frozenset(ids) for test, ids in declared.items() if self.takes(ids)}
        if self.everywhere:
            return Tests(frozenset(selected), {})
        played_scenes = {scenes[test] for test, ids in selected.items() if any(map(self._selects, ids & self.judged))}
        judged_ids = {id for test, ids in selected.items() if scenes[test] in played_scenes for id in ids}
        # A selected invariant that none of these scenes judges selects the scenes that do.
        played_scenes |= {scenes[test] for test, ids in selected.items() if ids & self.judged - judged_ids}
        other_tests = Counter(
            id for test, ids in selected.items() if scenes[test] not in played_scenes for id in ids & self.judged
        )
        return Tests(
            frozenset(test for test in selected if scenes[test] in played_scenes), dict(sorted(other_tests.items()))
        )

    def _selects(self, id: str) -> bool:
        """Return whether a judged requirement causes the scenes of its tests to be selected."""
        return not id.startswith(INVARIANT) or id in self.named

    def takes(self, declared: Iterable[str]) -> bool:
        """Return whether a test that declares these ids runs. Invariants alone do not select a test that also declares
        other requirements, unless they were selected by id, because every test judges invariants. A test of features
        that are not claimed never runs, because it may need capabilities that the implementation lacks."""
        ids = frozenset(declared)
        other_ids = {id for id in ids if not id.startswith(INVARIANT)}
        selecting = (other_ids | (ids & self.named)) if other_ids else ids
        return not self.judged.isdisjoint(selecting) and not (other_ids and other_ids <= self.inapplicable_ids)

    def with_violated(self, registry: Registry, failed: Iterable[str]) -> Selection:
        """Return the selection extended by the invariants among the ids that failed. A violated invariant fails its
        test, so it counts even if it was not selected. Its profile does not become part of the selection."""
        violated = _rules().intersection(failed, registry.requirements) - {*self.unclaimed}
        return replace(self, judged=self.judged | violated)


@dataclass(frozen=True)
class Tests:
    """The tests of a run. `elsewhere`: invariant → the number of additional tests that would judge it, in scenes that
    nothing else in the selection needs."""

    __test__ = False
    selected: frozenset[str]
    elsewhere: Mapping[str, int]


def scope(
    registry: Registry,
    profiles: Iterable[str],
    ids: Iterable[str],
    roles: Iterable[str],
    features: Iterable[str],
    kubernetes: str = "",
    release: str = "",
    *,
    skip: Iterable[str] = (),
    everywhere: bool = False,
) -> Selection:
    """Return the selection. Profiles default to the profiles of the ids or, without ids, to all profiles that do not
    need a special cluster. `kubernetes` is the version of the cluster and `release` the release of Grove's contract, if
    known; `skip` are ids that are not judged. Invariants of selected profiles are judged in the scenes of these
    profiles, or `everywhere`. Raises UsageError for an unknown profile or id."""
    requested_profiles, named_ids = sorted(set(profiles)), sorted(set(ids))
    skipped_ids = {registry.get(id).id for id in skip}
    for profile in requested_profiles:
        if profile not in registry.profiles:
            listed = ", ".join(sorted(registry.profiles))
            near_hint = documents.suggestion(profile, registry.profiles)
            hint = near_hint if near_hint.startswith("known") else f"{near_hint} profiles: {listed}"
            raise UsageError(f"unknown profile {profile!r}", hint=hint)
    for id in named_ids:
        entry = registry.get(id)
        if requested_profiles and entry.profile not in requested_profiles:
            raise UsageError(f"{id} is of profile {entry.profile}", hint=f"add --profile {entry.profile}, or drop it")
    selected_profiles = requested_profiles or sorted({registry.get(id).profile for id in named_ids})
    selected_profiles = selected_profiles or sorted(set(registry.profiles) - set(registry.clusters))
    judged: set[str] = set()
    unclaimed: dict[str, str] = {}
    for entry in registry.requirements.values():
        if entry.profile not in selected_profiles:
            continue
        reason = not_claimed(entry, roles, features, kubernetes, release)
        if reason:
            unclaimed[entry.id] = reason
        elif entry.id not in skipped_ids and (not named_ids or entry.id in named_ids):
            judged.add(entry.id)
    claimed_features = set(features)
    inapplicable_ids = frozenset(
        id
        for id, entry in registry.requirements.items()
        if (entry.feature and entry.feature not in claimed_features)
        or not claimed_features.isdisjoint(entry.unless)
        or not lines.holds(entry.since, entry.until, release)
    )
    named, skipped = frozenset(named_ids), frozenset(skipped_ids)
    return Selection(
        tuple(selected_profiles),
        frozenset(judged),
        unclaimed,
        inapplicable_ids,
        named,
        skipped,
        everywhere or not requested_profiles,
    )


def not_claimed(
    entry: Requirement, roles: Iterable[str], features: Iterable[str], kubernetes: str = "", release: str = ""
) -> str:
    """Return the reason why the implementation is not judged by a requirement; empty if it is judged."""
    implementation_roles = set(roles)
    if implementation_roles.isdisjoint(entry.roles):
        return f"doesn't play the role {' or '.join(entry.roles)}"
    if entry.feature and entry.feature not in set(features):
        return f"doesn't claim the feature {entry.feature}"
    if exempting := sorted(set(entry.unless).intersection(features)):
        return f"doesn't hold where the feature {exempting[0]} is claimed"
    if not lines.holds(entry.since, "", release):
        return f"holds from {entry.since} of Grove"
    if not lines.holds("", entry.until, release):
        return f"holds up to {entry.until} of Grove"
    if entry.kubernetes and kubernetes and _minor_version(kubernetes) < _minor_version(entry.kubernetes):
        return f"holds from Kubernetes {entry.kubernetes}"
    return ""


def _minor_version(version: str) -> tuple[int, int]:
    """Return major and minor of a version such as `1.37`, `1.37.2` or `v1.37.2`; zeros if the text is not a version."""
    match = re.match(r"v?(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else (0, 0)
