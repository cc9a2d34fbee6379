"""Tests that each change with an effect changes the hash of its clique and no other hash, and that reverting the change
restores the hash."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from conformance.grove import template_pairs
from conformance.grove.fields import items, text
from conformance.grove.template_pairs import TemplatePair, template
from conformance.history.query import Predicate, Unmet
from conformance.history.view import View
from conformance.testing import sets
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement

UNCHANGED_CLIQUES = ("untouched", "left-alone")
PLAIN_POD_SPEC = {"restartPolicy": "Always", "containers": [{"name": "main", "image": "registry.example/engine:1"}]}
CLIQUES_WITH_PRIORITY_CLASS = tuple(f"p-0-{name}" for name in UNCHANGED_CLIQUES)
"""The cliques of the set that gets another priority class."""


class ManyRealChanges(Scene):
    """A set with one clique for each change, and a set that gets another priority class. Later the spec of the first
    set is reverted. There are no nodes, and no pod is replaced (OnDelete), so all changes are judged at once."""

    def play(self, env: SceneEnvironment) -> None:
        pairs = template_pairs.read()
        self.ordered_pairs, self.changed_pairs, self.outside_pod_spec = (
            pairs.ordered,
            pairs.changed,
            pairs.outside_pod_spec,
        )
        all_pairs = [*self.ordered_pairs, *self.changed_pairs, *self.outside_pod_spec, *pairs.open]
        unchanged_templates = [template(name, PLAIN_POD_SPEC) for name in UNCHANGED_CLIQUES]
        initial_templates = [unchanged_templates[0], *(pair.before for pair in all_pairs), unchanged_templates[1]]
        changed_templates = [unchanged_templates[0], *(pair.after for pair in all_pairs), unchanged_templates[1]]
        strategy_spec: dict[str, Any] = {"updateStrategy": {"type": "OnDelete"}}
        self.all_cliques = [f"s-0-{clique['name']}" for clique in initial_templates]
        self.changed_cliques = [f"s-0-{pair.name}" for pair in all_pairs]
        initial_set = sets.manifest(env, "s", initial_templates, **strategy_spec)
        env.create(initial_set)
        env.create(sets.manifest(env, "p", unchanged_templates, **strategy_spec))
        env.wait_for("every clique has a hash", _have_hashes([*self.all_cliques, *CLIQUES_WITH_PRIORITY_CLASS]))
        env.wait_for("every set has a hash", lambda view: all(sets.generation_hash(view, name) for name in "sp"))
        initial_hashes = _hashes_by_clique(env.quiet(1), [*self.all_cliques, *CLIQUES_WITH_PRIORITY_CLASS])
        generations = {name: sets.generation_hash(env.history.view(), name) for name in "sp"}
        env.mark("before the changes")

        sets.update_spec(env, sets.manifest(env, "s", changed_templates, **strategy_spec))
        env.patch(sets.SETS, "p", {"spec": {"template": {"priorityClassName": "system-cluster-critical"}}})
        specs = [f"s-0-{pair.name}" for pair in (*self.ordered_pairs, *self.changed_pairs)]
        env.settle("hashes of cliques changed", _have_changed(specs, initial_hashes))
        env.settle("generation hash changed", lambda view: sets.generation_hash(view, "s") != generations["s"])
        other_changed_cliques = [*CLIQUES_WITH_PRIORITY_CLASS, *(f"s-0-{pair.name}" for pair in self.outside_pod_spec)]
        env.settle(
            "hashes of cliques changed with what is beside the pod spec",
            _have_changed(other_changed_cliques, initial_hashes),
            10,
        )
        env.quiet(1)
        env.mark("after the changes")

        sets.update_spec(env, initial_set)
        old_hashes = {name: initial_hashes[name] for name in self.all_cliques}
        env.settle("hashes of cliques as before", lambda view: _hashes_by_clique(view, self.all_cliques) == old_hashes)
        env.settle("generation hash as before", lambda view: sets.generation_hash(view, "s") == generations["s"])
        env.quiet(1)
        env.mark("after the way back")


@requirement("TMPL-005")
def test_a_meaningful_order_is_part_of_the_hash(run: Recorded[ManyRealChanges]) -> None:
    """For each list whose order matters, there is a clique in which the list is reversed."""
    run.expect(
        "changes that have not changed the hash of their clique", [], _unnoticed_changes(run, run.scene.ordered_pairs)
    )


@requirement("TMPL-006")
def test_a_changed_template_changes_the_hashes(run: Recorded[ManyRealChanges]) -> None:
    """There is a clique for each kind of change. The generation hash is compared after all changes have been made."""
    run.given("every clique has a hash", "every set has a hash")
    run.expect(
        "changes that have not changed the hash of their clique", [], _unnoticed_changes(run, run.scene.changed_pairs)
    )
    before, after = (
        sets.generation_hash(run.at("before the changes"), "s"),
        sets.generation_hash(run.at("after the changes"), "s"),
    )
    run.expect("the generation hash has changed with the cliques", True, before != after or after)


@requirement("TMPL-016")
def test_what_is_beside_the_pod_spec_changes_the_hashes(run: Recorded[ManyRealChanges]) -> None:
    """The priority class of another set is changed. The cliques of that set do not change in any other way."""
    run.given("every clique has a hash", "every set has a hash")
    run.expect(
        "changes that have not changed the hash of their clique",
        [],
        _unnoticed_changes(run, run.scene.outside_pod_spec),
    )
    before, after = run.at("before the changes"), run.at("after the changes")
    old, new = (
        _hashes_by_clique(before, CLIQUES_WITH_PRIORITY_CLASS),
        _hashes_by_clique(after, CLIQUES_WITH_PRIORITY_CLASS),
    )
    cliques_with_old_hash = [name for name in CLIQUES_WITH_PRIORITY_CLASS if new[name] == old[name]]
    run.expect("cliques whose hash a new priority class of the set has not changed", [], cliques_with_old_hash)
    generation = sets.generation_hash(after, "p")
    run.expect("the generation hash has changed", True, sets.generation_hash(before, "p") != generation or generation)


@requirement("TMPL-007")
def test_other_cliques_keep_their_hashes(run: Recorded[ManyRealChanges]) -> None:
    """The first and the last clique of the set do not change."""
    unchanged_cliques = [name for name in run.scene.all_cliques if name not in run.scene.changed_cliques]
    before, after = (
        _hashes_by_clique(run.at("before the changes"), unchanged_cliques),
        _hashes_by_clique(run.at("after the changes"), unchanged_cliques),
    )
    run.same("hashes of the other cliques", before, after)


@requirement("TMPL-008")
def test_an_earlier_template_has_its_earlier_hash(run: Recorded[ManyRealChanges]) -> None:
    """All changes are reverted at the same time."""
    before, after = run.at("before the changes"), run.at("after the way back")
    every = run.scene.all_cliques
    run.same(
        "hashes of templates that are as before", _hashes_by_clique(before, every), _hashes_by_clique(after, every)
    )
    run.expect("generation hash", sets.generation_hash(before, "s"), sets.generation_hash(after, "s"))


@requirement("TMPL-010")
def test_hashes_are_those_of_the_canonical_form(run: Recorded[ManyRealChanges]) -> None:
    """The hashes of the changed sets are compared with the hashes that the suite computes."""
    violations = sets.non_canonical_hashes(run.at("after the changes"), "sp")
    run.expect("hashes that are not those of the canonical form", [], violations)


def _unnoticed_changes(run: Recorded[ManyRealChanges], pairs: Sequence[TemplatePair]) -> list[str]:
    """Return the changes that have not changed the hash of their clique. Changes to fields that the CRDs lack are left
    out, because such fields are not stored."""
    before, after = run.at("before the changes"), run.at("after the changes")
    stored = _clique_templates(after)
    cliques = {
        name: f"s-0-{name}" for pair in pairs if _clique_templates(before).get(name := pair.name) != stored.get(name)
    }
    old, new = _hashes_by_clique(before, cliques.values()), _hashes_by_clique(after, cliques.values())
    return [name for name, clique in cliques.items() if new[clique] in ("", old[clique])]


def _clique_templates(view: View) -> dict[str, object]:
    """Return the stored clique templates of the set, by name."""
    return {text(clique, "name"): clique for clique in items(view.get(sets.SETS, "s"), "spec", "template", "cliques")}


def _hashes_by_clique(view: View, cliques: Iterable[str]) -> dict[str, str]:
    return {clique: sets.clique_template_hash(view, clique) for clique in cliques}


def _have_hashes(cliques: Iterable[str]) -> Predicate:
    names = list(cliques)

    def check(view: View) -> bool | Unmet:
        lacking = [clique for clique, hash in _hashes_by_clique(view, names).items() if not hash]
        return not lacking or Unmet(f"no hash yet: {', '.join(lacking)}")

    return check


def _have_changed(cliques: Iterable[str], old: Mapping[str, str]) -> Predicate:
    names = list(cliques)

    def check(view: View) -> bool | Unmet:
        unchanged = [clique for clique, hash in _hashes_by_clique(view, names).items() if hash in ("", old[clique])]
        return not unchanged or Unmet(f"the same hash as before: {', '.join(unchanged)}")

    return check
