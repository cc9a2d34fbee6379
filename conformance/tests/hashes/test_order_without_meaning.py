"""Tests with many sets whose lists are reordered while their replicas change. Nothing is restarted."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping

from conformance.grove import template_pairs
from conformance.grove.template_pairs import TemplatePair, template
from conformance.testing import sets
from conformance.testing.scaled import scale
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.testing.sets import Object

RANDOM_SETS = 3
ANY_ORDER, EXPLICIT, IN_ORDER = (f"CliqueStartupType{kind}" for kind in ("AnyOrder", "Explicit", "InOrder"))
STARTUP_TYPES = {"in-order": IN_ORDER, "explicit": EXPLICIT, "grouped": ANY_ORDER, "listed-grouped": ANY_ORDER}
REORDERED_LIST_SETS = (
    "lists",
    "grouped",
    "in-order",
    "explicit",
    *(f"chance-{number}" for number in range(RANDOM_SETS)),
)
"""Sets with reordered lists in their pod specs."""
RAPID_SET, SCALED_SET = "rapid", "by-scale"
"""A set that is changed back and forth, and a set that is scaled through its scale subresource, as an autoscaler
does."""
REORDERED_SETS, RESIZED_SETS = ("listed", "listed-grouped", RAPID_SET, SCALED_SET), ("sizes",)
"""Sets whose cliques are listed in another order, and sets in which the replicas of a clique change."""
BURST_CHANGES = 10
"""The number of changes to the set RAPID_SET before its last change, without a pause."""
NAMES = (*REORDERED_LIST_SETS, *REORDERED_SETS, *RESIZED_SETS)
"""All sets. Apart from its replicas, each set changes in one way."""


class SetsReordered(Scene):
    """Room for all pods. Each set is changed in one way that has no effect, and gets a second replica at the same time.
    One set gets it with the last of many changes, and one set gets it through its scale subresource."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 4)
        pairs = {name: _manifest_pair(env, name) for name in NAMES}
        for before, _ in pairs.values():
            env.create(before)
        counts = {name: sets.pods_per_replica(before) for name, (before, _) in pairs.items()}
        env.wait_for("every set has its pods, with hashes", sets.have_pods(counts))
        env.quiet(1)
        env.mark("sets changed")
        for number in range(BURST_CHANGES):
            changed = pairs[RAPID_SET][(number + 1) % 2]
            sets.update_spec(env, {**changed, "spec": {**changed["spec"], "replicas": 1}})
        scale(env, sets.SETS, SCALED_SET, 2)
        for _, after in pairs.values():
            sets.update_spec(env, after)
        # The second replica of each set shows that the operator has reconciled its new spec.
        env.wait_for("every set has its second replica", sets.have_second_replica(NAMES))
        env.quiet(1.5)
        env.mark("nothing moves")


@requirement("TMPL-001")
def test_reordered_lists_restart_nothing(run: Recorded[SetsReordered]) -> None:
    """One set has a clique for each kind of list. In the other sets, all lists of generated pod specs are reordered at
    once."""
    run.given("every set has its pods, with hashes")
    _expect_no_restart(run, REORDERED_LIST_SETS)


@requirement("TMPL-002")
def test_reordered_cliques_restart_nothing(run: Recorded[SetsReordered]) -> None:
    """In one set, the cliques are members of a scaling group. One set is changed many times in a row."""
    run.given("every set has its pods, with hashes")
    _expect_no_restart(run, REORDERED_SETS)


@requirement("TMPL-003")
def test_other_replicas_restart_nothing(run: Recorded[SetsReordered]) -> None:
    """The replicas of a clique in the template change, which affects only new replicas of the set."""
    run.given("every set has its pods, with hashes", "every set has its second replica")
    _expect_no_restart(run, RESIZED_SETS)


@requirement("TMPL-010")
def test_hashes_are_those_of_the_canonical_form(run: Recorded[SetsReordered]) -> None:
    """The hashes of the reordered sets are compared with the hashes that the suite computes."""
    violations = sets.non_canonical_hashes(run.at("nothing moves"), NAMES)
    run.expect("hashes that are not those of the canonical form", [], violations)


def _expect_no_restart(run: Recorded[SetsReordered], names: Iterable[str]) -> None:
    """Expect that sets have the same hashes and pods as before, and report no new update."""
    before, after = run.at("sets changed"), run.at("nothing moves")
    pods, now = sets.template_hashes_by_pod(before), sets.template_hashes_by_pod(after)
    for name in names:
        stored_hashes = _without_current_hashes(sets.stored_hashes(before, name))
        current_hashes = _without_current_hashes(sets.stored_hashes(after, name))
        run.same(
            f"stored hashes of {name}",
            stored_hashes,
            {location: current_hashes[location] for location in stored_hashes if location in current_hashes},
        )
        run.expect(f"updateProgress of {name}", sets.update_progress(before, name), sets.update_progress(after, name))
        set_pods = {pod: hash for pod, hash in pods.items() if pod.startswith(f"{name}-0-")}
        run.same(f"pods of {name}, with uid and hash", set_pods, {pod: now.get(pod, "gone") for pod in set_pods})


def _manifest_pair(env: SceneEnvironment, name: str) -> tuple[Object, Object]:
    """Return the manifest with which a set is created, and the manifest to which it is changed."""
    specs = [template_pairs.random_pod_spec(env.random) for _ in range(3 if "grouped" in name else 2)]
    before = [template(clique, spec) for clique, spec in zip("cab", specs, strict=False)]
    after = copy.deepcopy(before)
    if name == "lists":
        keyed_pairs = _accepted_pairs(env, template_pairs.read().keyed)
        before, after = [pair.before for pair in keyed_pairs], [pair.after for pair in keyed_pairs]
    elif name in REORDERED_LIST_SETS:
        for clique in after:
            clique["spec"]["podSpec"] = template_pairs.reordered_spec(env.random, clique["spec"]["podSpec"])
    elif name in REORDERED_SETS:
        after = after[::-1]
    else:
        after[0]["spec"]["replicas"] = 2  # affects only new replicas of the set
    return _set_manifest(env, name, before, replicas=1), _set_manifest(env, name, after, replicas=2)


def _accepted_pairs(env: SceneEnvironment, pairs: list[TemplatePair]) -> list[TemplatePair]:
    """Return the pairs without scheduling gates. Also return the pairs with gates if admission accepts them, which is
    not specified."""
    gated_pairs = [pair for pair in pairs if "schedulingGates" in pair.before["spec"]["podSpec"]]
    probe_set = _set_manifest(env, "gated", [pair.before for pair in gated_pairs], replicas=1)
    [reply] = env.dry_run.all([env.dry_run.create(probe_set)])
    return [pair for pair in pairs if reply.accepted or pair not in gated_pairs]


def _set_manifest(env: SceneEnvironment, name: str, cliques: list[Object], *, replicas: int) -> Object:
    if name == "explicit":
        cliques[1]["spec"]["startsAfter"] = [cliques[0]["name"]]
    groups = {"g": ["a", "b"]} if "grouped" in name else None
    return sets.manifest(env, name, cliques, startup=STARTUP_TYPES.get(name, ""), groups=groups, replicas=replicas)


def _without_current_hashes(stored_hashes: Mapping[str, str]) -> dict[str, str]:
    """Return the hashes that do not depend on whether pods are Ready."""
    return {location: hash for location, hash in stored_hashes.items() if "current" not in location}
