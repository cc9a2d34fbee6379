"""Tests of which conformance tests run, depending on the selection and on the claims of the implementation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from conformance.errors import UsageError
from conformance.suite.registry import requirement
from conformance.suite.registry.selection import Selection, scope

BOTH = ("operator", "gang-scheduler")
REGISTRY = requirement.load()


def chosen(*features: str, profiles: tuple[str, ...] = (), ids: tuple[str, ...] = ()) -> Selection:
    return scope(REGISTRY, profiles, ids, BOTH, features)


@pytest.mark.parametrize("profiles", [(), ("operations",)])
def test_tests_of_a_feature_run_if_it_is_claimed(profiles: tuple[str, ...]) -> None:
    """The same holds if only the profile of the feature is selected."""
    declared = ("OPS-003", "OPS-004", "INV-004")
    assert REGISTRY.requirements["OPS-003"].feature == "leader-election"
    assert chosen("leader-election", profiles=profiles).takes(declared)
    assert not chosen(profiles=profiles).takes(declared)


def test_tests_of_a_feature_and_other_requirements_run() -> None:
    assert chosen().takes(("OPS-003", "CORE-001", "INV-004"))


def test_tests_that_judge_only_invariants_run() -> None:
    assert chosen().takes(("INV-004",))


def test_unselected_tests_do_not_run() -> None:
    assert not chosen(ids=("CORE-002",)).takes(("CORE-001", "INV-004"))
    assert chosen(ids=("INV-004",)).takes(("CORE-001", "INV-004"))
    assert not chosen(profiles=("gang",)).takes(("CORE-001",))


def test_invariants_select_no_test_of_another_profile() -> None:
    """Otherwise, a short run would mostly consist of tests that have nothing to do with the selection."""
    declared = ("UPD-001", "INV-004")
    assert not chosen(profiles=("core",)).takes(declared)
    assert chosen(profiles=("core",)).takes(("CORE-001", "INV-004"))
    assert chosen(profiles=("core",), ids=("INV-004",)).takes(declared)


SCENES = {"own": "a", "own too": "a", "far": "b", "farther": "c", "lonely": "d"}
DECLARED = {
    "own": ("CORE-001",),
    "own too": ("INV-004",),
    "far": ("UPD-001",),
    "farther": ("INV-004",),
    "lonely": ("INV-007",),
}


def selected(**options: Any) -> tuple[set[str], dict[str, int]]:
    """Return the tests that run and, for each invariant, the number of other tests that could judge it."""
    tests = scope(REGISTRY, options.pop("profiles", ("core",)), options.pop("ids", ()), BOTH, (), **options).tests(
        DECLARED, SCENES
    )
    return set(tests.selected), dict(tests.elsewhere)


def test_a_profile_plays_its_own_scenes_and_judges_its_invariants_there() -> None:
    """Otherwise, most of a run would be scenes of other profiles that judge the same invariant again."""
    tests, elsewhere = selected()
    assert tests >= {"own", "own too"} and not tests & {"far", "farther"}
    assert elsewhere == {"INV-004": 1}, "the report says where it could be judged as well"


def test_an_invariant_that_no_scene_of_its_profile_shows_selects_scenes() -> None:
    """Otherwise, the invariant would not be judged at all, and the profile would have no verdict."""
    assert "lonely" in selected()[0]


def test_all_scenes_are_played_for_the_invariants_of_a_profile_if_that_is_asked_for() -> None:
    assert selected(everywhere=True) == ({"own", "own too", "farther", "lonely"}, {})


def test_invariants_that_are_asked_for_by_id_are_judged_everywhere() -> None:
    assert selected(ids=("INV-004",)) == ({"own too", "farther"}, {})


def test_a_run_of_everything_plays_everything() -> None:
    assert selected(profiles=()) == (set(SCENES), {})


def test_skipped_requirements_are_not_judged_and_select_no_test() -> None:
    assert "own" not in selected(skip=("CORE-001",))[0]
    assert "CORE-001" not in scope(REGISTRY, (), (), BOTH, (), skip=("CORE-001",)).judged
    with pytest.raises(UsageError, match="unknown requirement 'CORE-00'"):
        selected(skip=("CORE-00",))


def test_requirements_that_exclude_a_feature_are_not_judged_where_it_is_claimed() -> None:
    entry = structs.replace(REGISTRY.requirements["CORE-001"], unless=("other-names",))
    registry = replace(REGISTRY, requirements={**REGISTRY.requirements, "CORE-001": entry})
    assert "other-names" in registry.features
    without_claim, with_claim = scope(registry, (), (), BOTH, ()), scope(registry, (), (), BOTH, ("other-names",))
    assert "CORE-001" in without_claim.judged and without_claim.takes(("CORE-001",))
    assert with_claim.unclaimed["CORE-001"] == "doesn't hold where the feature other-names is claimed"
    assert not with_claim.takes(("CORE-001",))


def test_a_violated_rule_counts_whatever_was_selected() -> None:
    """Every test judges the rules, so a test of another requirement may reveal a violation."""
    widened = chosen(profiles=("startup",)).with_violated(REGISTRY, ["GANG-024", "INV-004", "CORE-001"])
    assert widened.judged >= {"GANG-024", "INV-004"}
    assert "CORE-001" not in widened.judged
    assert widened.profiles == ("startup",)


def test_a_profile_that_needs_another_cluster_runs_only_if_it_is_selected() -> None:
    assert "workload-api" in REGISTRY.clusters
    assert "workload-api" not in chosen("workload-api").profiles
    assert "WAPI-001" in chosen("workload-api", profiles=("workload-api",)).judged
    assert chosen("workload-api", ids=("WAPI-001",)).profiles == ("workload-api",)


@pytest.mark.parametrize(("version", "judged"), [("1.36.3", False), ("v1.37.2", True), ("1.100.0", True), ("", True)])
def test_a_promise_is_judged_from_its_first_version(version: str, judged: bool) -> None:
    entry = REGISTRY.requirements["WAPI-050"]
    assert entry.kubernetes == "1.37"
    of_version = scope(REGISTRY, (), ("WAPI-001", entry.id), BOTH, ("workload-api",), version)
    assert "WAPI-001" in of_version.judged and (entry.id in of_version.judged) is judged
    assert judged or of_version.unclaimed[entry.id] == "holds from Kubernetes 1.37"


def test_requirements_of_other_releases_are_not_judged() -> None:
    entry = REGISTRY.requirements["CORE-001"]
    ended = structs.replace(entry, until="v0.1.0-alpha.12-rc1", successors=("CORE-002",))
    later = structs.replace(entry, id="CORE-002", since="v0.1.0-alpha.13")
    registry = replace(REGISTRY, requirements={**REGISTRY.requirements, "CORE-001": ended, "CORE-002": later})
    chosen = scope(registry, ("core",), (), BOTH, (), release="v0.1.0-alpha.12")
    assert chosen.unclaimed["CORE-001"] == "holds up to v0.1.0-alpha.12-rc1 of Grove"
    assert chosen.unclaimed["CORE-002"] == "holds from v0.1.0-alpha.13 of Grove"
    assert not chosen.takes(("CORE-001",))
    assert {"CORE-001", "CORE-002"} <= scope(registry, ("core",), (), BOTH, ()).judged
