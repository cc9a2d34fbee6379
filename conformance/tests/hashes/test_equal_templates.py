"""Tests that sets with equal templates have equal hashes even if they differ in other fields. The order of cliques
counts only if the cliques start in order."""

from __future__ import annotations

import re
from collections.abc import Iterable

from conformance.grove import template_pairs
from conformance.grove.template_pairs import template
from conformance.history.query import Predicate, Unmet
from conformance.history.view import View
from conformance.testing import sets
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.testing.sets import Object

ANY_ORDER, EXPLICIT, IN_ORDER = (f"CliqueStartupType{kind}" for kind in ("AnyOrder", "Explicit", "InOrder"))
UNORDERED_SETS = ("plain", "plain-swapped", "any", "any-swapped", "explicit", "explicit-swapped", "grouped")
"""Sets with the same cliques. No set starts its cliques in order."""


class SetsOfTheSameCliques(Scene):
    """Sets with the same two cliques, in different orders and with different names, replicas, update strategies,
    scaling groups and startup types. There are no nodes."""

    def play(self, env: SceneEnvironment) -> None:
        specs = [template_pairs.random_pod_spec(env.random) for _ in range(2)]
        clique_a, clique_b = (template(name, spec) for name, spec in zip("ab", specs, strict=True))
        after = {**clique_b, "spec": {**clique_b["spec"], "startsAfter": ["a"]}}
        twin_templates = [template(name, specs[0]) for name in "ab"]
        for clique in twin_templates:
            clique["labels"] = {"example.com/clique": "twin"}
        workloads: dict[str, Object] = {
            "plain": sets.manifest(env, "plain", [clique_a, clique_b]),
            "plain-swapped": sets.manifest(env, "plain-swapped", [clique_b, clique_a], replicas=2),
            "any": sets.manifest(
                env, "any", [clique_a, clique_b], startup=ANY_ORDER, updateStrategy={"type": "OnDelete"}
            ),
            "any-swapped": sets.manifest(env, "any-swapped", [clique_b, clique_a], startup=ANY_ORDER),
            "explicit": sets.manifest(env, "explicit", [clique_a, after], startup=EXPLICIT),
            "explicit-swapped": sets.manifest(env, "explicit-swapped", [after, clique_a], startup=EXPLICIT),
            "ordered": sets.manifest(env, "ordered", [clique_a, clique_b], startup=IN_ORDER),
            "ordered-again": sets.manifest(env, "ordered-again", [clique_a, clique_b], startup=IN_ORDER, replicas=2),
            "ordered-swapped": sets.manifest(env, "ordered-swapped", [clique_b, clique_a], startup=IN_ORDER),
            "twins": sets.manifest(env, "twins", twin_templates, startup=IN_ORDER),
            "twins-swapped": sets.manifest(env, "twins-swapped", twin_templates[::-1], startup=IN_ORDER),
            "grouped": sets.manifest(env, "grouped", [clique_a, clique_b], groups={"g": ["b"]}),
        }
        self.set_names = list(workloads)
        for workload in workloads.values():
            env.create(workload)
        env.wait_for("every set has a generation hash", _have_generation_hashes(self.set_names))
        env.wait_for(
            "every clique has a hash", lambda view: all(_hash_of_first(view, name, "a") for name in self.set_names)
        )


@requirement("TMPL-004")
def test_the_order_of_cliques_counts_where_they_start_in_order(run: Recorded[SetsOfTheSameCliques]) -> None:
    """The two cliques differ in more than their names."""
    _expect_different(run, ("ordered", "ordered-swapped"))


@requirement("TMPL-015")
def test_names_and_startup_types_count_where_cliques_start_in_order(run: Recorded[SetsOfTheSameCliques]) -> None:
    """The twins differ only in their names. The generation hash of each set is compared with that of another set."""
    _expect_different(run, ("twins", "twins-swapped"), ("ordered", "any"))


@requirement("TMPL-009")
def test_equal_templates_have_equal_hashes(run: Recorded[SetsOfTheSameCliques]) -> None:
    """The generation hashes of the sets are compared, and also the hashes of each set's clique `a`."""
    run.given("every set has a generation hash")
    view = run.at("every set has a generation hash")
    generations = {name: sets.generation_hash(view, name) for name in run.scene.set_names}
    different_hashes = {name: generations[name] for name in UNORDERED_SETS if generations[name] != generations["plain"]}
    run.expect("sets with another hash than the plain one", {}, different_hashes)
    run.expect("hash of equal sets that start in order", generations["ordered"], generations["ordered-again"])
    run.given("every clique has a hash")
    of_a = _hashes_of_clique_a(run.at("every clique has a hash"))
    violations = {name: hash for name, hash in of_a.items() if hash != of_a["plain"]}
    run.expect("sets whose clique a has another hash than that of the plain one", {}, violations)


@requirement("TMPL-010")
def test_hashes_are_those_of_the_canonical_form(run: Recorded[SetsOfTheSameCliques]) -> None:
    """The hashes of equal sets are compared with the hashes that the suite computes."""
    violations = sets.non_canonical_hashes(run.at("every clique has a hash"), run.scene.set_names)
    run.expect("hashes that are not those of the canonical form", [], violations)


@requirement("TMPL-011")
def test_hashes_are_valid_label_values(run: Recorded[SetsOfTheSameCliques]) -> None:
    """Generation hashes are judged only if there are PodGangMaps, because only then do PodGangs have a label with the
    generation hash."""
    view = run.at("every clique has a hash")
    hashes = set(_hashes_of_clique_a(view).values())
    if view.list("podgangmaps"):
        hashes |= {sets.generation_hash(view, name) for name in run.scene.set_names}
    run.expect("hashes that are no value of a label", [], sorted(hash for hash in hashes if not _is_label_value(hash)))


def _expect_different(run: Recorded[SetsOfTheSameCliques], *pairs: tuple[str, str]) -> None:
    """Expect that the sets of each pair have different generation hashes."""
    view = run.at("every set has a generation hash")
    for first, second in pairs:
        first_hash, second_hash = sets.generation_hash(view, first), sets.generation_hash(view, second)
        run.expect(f"{first} and {second} have different hashes", True, first_hash != second_hash or first_hash)


def _hashes_of_clique_a(view: View) -> dict[str, str]:
    """Return set → hash of its clique `a`, for the sets whose clique `a` equals the clique `a` of the plain set."""
    return {name: _hash_of_first(view, name, "a") for name in (*UNORDERED_SETS, "ordered", "ordered-swapped")}


def _hash_of_first(view: View, set_name: str, clique: str) -> str:
    return sets.clique_template_hash(view, f"{set_name}-0-{clique}")


def _is_label_value(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", text) is not None


def _have_generation_hashes(names: Iterable[str]) -> Predicate:
    set_names = list(names)

    def check(view: View) -> bool | Unmet:
        sets_without_hash = [name for name in set_names if not sets.generation_hash(view, name)]
        return not sets_without_hash or Unmet(f"no generation hash: {', '.join(sets_without_hash)}")

    return check
