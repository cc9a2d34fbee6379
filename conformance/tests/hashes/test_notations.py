"""Tests that nothing is restarted if the quantities of a set are rewritten in another notation of the same amounts."""

from __future__ import annotations

from conformance.grove import template_pairs
from conformance.grove.admission.defaults import with_defaults
from conformance.history.query import Predicate
from conformance.suite.scenes.api import Object
from conformance.testing import incarnations, sets
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement

USUAL = ("usual", "complete", "chance-0", "chance-1", "chance-2")
"""Sets whose quantities are rewritten between notations that Kubernetes serializes identically."""
DEFAULTED = ("cliqueStartupType", "headlessServiceConfig", "podCliqueScalingGroups", "terminationDelay")


class QuantitiesInAnotherNotation(Scene):
    """Room for all pods. The quantities of several sets are rewritten. The quantities of `foreign` change between
    notations that Kubernetes distinguishes, and the quantities of the other sets between notations that Kubernetes
    serializes identically. An operator may parse quantities only if the set lacks a field that has a default
    (HASH-087). `usual` and `foreign` lack such fields, the randomly generated sets may lack them, and `complete` does
    not. Together with the rewriting, each set gets a second replica."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 4)
        usual, foreign = {name: _pair(env, name) for name in USUAL}, {"foreign": _pair(env, "foreign")}
        _create(env, usual)
        env.wait_for("usual sets have their pods, with hashes", _have_pods(usual))
        _create(env, foreign)
        env.wait_for("foreign has its pods, with hashes", _have_pods(foreign))
        env.quiet(1)
        env.mark("quantities rewritten")
        for _, after in {**usual, **foreign}.values():
            sets.update_spec(env, after)
        # The second replica shows that the operator has reconciled the new spec.
        env.wait_for("usual sets have their second replica", sets.have_second_replica(usual))
        env.wait_for("foreign has its second replica", sets.have_second_replica(foreign))
        env.quiet(1.5)
        env.mark("nothing moves")


@requirement("TMPL-013")
def test_another_usual_notation_restarts_nothing(run: Recorded[QuantitiesInAnotherNotation]) -> None:
    """One set has every field and other sets lack fields, because an operator may treat them differently."""
    run.given("usual sets have their pods, with hashes", "usual sets have their second replica")
    for name in USUAL:
        _nothing_restarted(run, name)


@requirement("TMPL-014")
def test_another_foreign_notation_restarts_nothing(run: Recorded[QuantitiesInAnotherNotation]) -> None:
    """The set relies on defaults for all other fields."""
    run.given("foreign has its pods, with hashes", "foreign has its second replica")
    _nothing_restarted(run, "foreign")


def _nothing_restarted(run: Recorded[QuantitiesInAnotherNotation], name: str) -> None:
    """Expect that a set has the same pods as before and reports no update."""
    before = incarnations.uids(run.at("quantities rewritten"), "pods")
    view = run.at("nothing moves")
    now = incarnations.uids(view, "pods")
    set_pods = {pod: uid for pod, uid in before.items() if pod.startswith(f"{name}-")}
    run.same(f"uids of the pods of {name}", set_pods, {pod: now.get(pod, "") for pod in set_pods})
    run.expect(f"updateProgress of {name}", None, sets.update_progress(view, name))


def _pair(env: SceneEnvironment, name: str) -> tuple[Object, Object]:
    """Return the manifest with which a set is created, and the manifest to which it is changed."""
    examples = template_pairs.read()
    pairs = examples.foreign_notations if name == "foreign" else examples.notations
    if name.startswith("chance"):
        pairs = [template_pairs.random_notations(env.random, examples.base, clique) for clique in "abc"]
    plain = name in ("usual", "foreign")
    groups = None if plain else {"g": [pair.name for pair in pairs[:2]]}
    before = sets.manifest(env, name, [pair.before for pair in pairs], groups=groups)
    after = sets.manifest(env, name, [pair.after for pair in pairs], groups=groups, replicas=2)
    if plain:
        return before, after
    missing = [field for field in DEFAULTED if name != "complete" and env.random.random() < 0.25]
    return _without(with_defaults(before), missing), _without(with_defaults(after), missing)


def _without(workload: Object, fields: list[str]) -> Object:
    for field in fields:
        del workload["spec"]["template"][field]
    return workload


def _create(env: SceneEnvironment, pairs: dict[str, tuple[Object, Object]]) -> None:
    for before, _ in pairs.values():
        env.create(before)


def _have_pods(pairs: dict[str, tuple[Object, Object]]) -> Predicate:
    return sets.have_pods({name: sets.pods_per_replica(before) for name, (before, _) in pairs.items()})
