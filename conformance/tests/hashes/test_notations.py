"""Tests that nothing is restarted if the quantities of a set are rewritten in another notation of the same amounts."""

from __future__ import annotations

from conformance.grove import template_pairs
from conformance.grove.admission.defaults import with_defaults
from conformance.history.query import Predicate
from conformance.suite.scenes.api import Object
from conformance.testing import incarnations, sets
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement

PLAIN_PAIRS = ("usual", "complete", "chance-0", "chance-1", "chance-2")
"""Sets whose quantities are rewritten between notations that Kubernetes serializes identically."""
DEFAULTED_FIELDS = ("cliqueStartupType", "headlessServiceConfig", "podCliqueScalingGroups", "terminationDelay")


class QuantitiesInAnotherNotation(Scene):
    """Room for all pods. The quantities of several sets are rewritten. The quantities of `foreign` change between
    notations that Kubernetes distinguishes, and the quantities of the other sets between notations that Kubernetes
    serializes identically. An operator may parse quantities only if the set lacks a field that has a default
    (HASH-087). `usual` and `foreign` lack such fields, the randomly generated sets may lack them, and `complete` does
    not. Together with the rewriting, each set gets a second replica."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 4)
        usual_pairs, foreign_pairs = (
            {name: _manifest_pair(env, name) for name in PLAIN_PAIRS},
            {"foreign": _manifest_pair(env, "foreign")},
        )
        _create_sets(env, usual_pairs)
        env.wait_for("usual sets have their pods, with hashes", _have_pods(usual_pairs))
        _create_sets(env, foreign_pairs)
        env.wait_for("foreign has its pods, with hashes", _have_pods(foreign_pairs))
        env.quiet(1)
        env.mark("quantities rewritten")
        for _, after in {**usual_pairs, **foreign_pairs}.values():
            sets.update_spec(env, after)
        # The second replica shows that the operator has reconciled the new spec.
        env.wait_for("usual sets have their second replica", sets.have_second_replica(usual_pairs))
        env.wait_for("foreign has its second replica", sets.have_second_replica(foreign_pairs))
        env.quiet(1.5)
        env.mark("nothing moves")


@requirement("TMPL-013")
def test_another_usual_notation_restarts_nothing(run: Recorded[QuantitiesInAnotherNotation]) -> None:
    """One set has every field and other sets lack fields, because an operator may treat them differently."""
    run.given("usual sets have their pods, with hashes", "usual sets have their second replica")
    for name in PLAIN_PAIRS:
        _expect_no_restart(run, name)


@requirement("TMPL-014")
def test_another_foreign_notation_restarts_nothing(run: Recorded[QuantitiesInAnotherNotation]) -> None:
    """The set relies on defaults for all other fields."""
    run.given("foreign has its pods, with hashes", "foreign has its second replica")
    _expect_no_restart(run, "foreign")


def _expect_no_restart(run: Recorded[QuantitiesInAnotherNotation], name: str) -> None:
    """Expect that a set has the same pods as before and reports no update."""
    before = incarnations.uids(run.at("quantities rewritten"), "pods")
    view = run.at("nothing moves")
    now = incarnations.uids(view, "pods")
    set_pods = {pod: uid for pod, uid in before.items() if pod.startswith(f"{name}-")}
    run.same(f"uids of the pods of {name}", set_pods, {pod: now.get(pod, "") for pod in set_pods})
    run.expect(f"updateProgress of {name}", None, sets.update_progress(view, name))


def _manifest_pair(env: SceneEnvironment, name: str) -> tuple[Object, Object]:
    """Return the manifest with which a set is created, and the manifest to which it is changed."""
    examples = template_pairs.read()
    pairs = examples.foreign_notations if name == "foreign" else examples.notations
    if name.startswith("chance"):
        pairs = [template_pairs.random_notations(env.random, examples.base, clique) for clique in "abc"]
    is_plain = name in ("usual", "foreign")
    groups = None if is_plain else {"g": [pair.name for pair in pairs[:2]]}
    before = sets.manifest(env, name, [pair.before for pair in pairs], groups=groups)
    after = sets.manifest(env, name, [pair.after for pair in pairs], groups=groups, replicas=2)
    if is_plain:
        return before, after
    missing = [field for field in DEFAULTED_FIELDS if name != "complete" and env.random.random() < 0.25]
    return _without(with_defaults(before), missing), _without(with_defaults(after), missing)


def _without(workload: Object, fields: list[str]) -> Object:
    for field in fields:
        del workload["spec"]["template"][field]
    return workload


def _create_sets(env: SceneEnvironment, pairs: dict[str, tuple[Object, Object]]) -> None:
    for before, _ in pairs.values():
        env.create(before)


def _have_pods(pairs: dict[str, tuple[Object, Object]]) -> Predicate:
    return sets.have_pods({name: sets.pods_per_replica(before) for name, (before, _) in pairs.items()})
