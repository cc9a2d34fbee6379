"""Tests in which users reapply the manifests of their sets after a take-over. No pod is restarted."""

from __future__ import annotations

from conformance.grove import template_pairs
from conformance.grove.admission.defaults import with_defaults
from conformance.grove.template_hashes import LEGACY
from conformance.history.view import View
from conformance.testing import incarnations, predicates, sets
from conformance.testing.observed import all_of
from conformance.testing.scene import Exclusive, Recorded, Scene, SceneEnvironment, requirement
from conformance.testing.sets import Object
from conformance.tests.upgrade import takeover

NOTATIONS = template_pairs.read().notations
REAPPLIED_SET, WHOLE_SET = "again", "whole"
"""The sets whose manifests are reapplied. The manifest of `whole` sets every field that has a default."""


class AppliedAgain(Scene):
    """Two sets whose manifests have the quantities in another notation than the stored objects."""

    def complete(self, env: SceneEnvironment) -> None:
        """Wait until the sets are complete and at rest."""
        pods = {
            set_name: sets.pods_per_replica(_manifest_as_sent(env, set_name)) for set_name in (REAPPLIED_SET, WHOLE_SET)
        }
        env.wait_for("set has its pods", all_of(*(takeover.has_all_hashes(*entry) for entry in pods.items())))
        env.wait_for("set available", all_of(*(predicates.is_available(set_name, 1) for set_name in pods)))
        env.quiet(1)

    def apply(self, env: SceneEnvironment) -> None:
        """Apply the manifests with a second replica, which shows that the operator has reconciled the new specs."""
        env.mark("before it is applied again")
        for set_name in (REAPPLIED_SET, WHOLE_SET):
            sets.update_spec(env, _manifest_as_sent(env, set_name, replicas=2))
        env.wait_for("set has its second replica", sets.have_second_replica([REAPPLIED_SET, WHOLE_SET]))
        env.quiet(2)
        env.mark("nothing moves")


class AppliedAfterAnUpgrade(AppliedAgain):
    """Room for all pods. The earlier version creates the sets. The judged version takes over, and an equal set is
    created. Then the manifests are reapplied."""

    exclusive = Exclusive.ROLES

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 2)
        env.roles.downgrade(env.roles.upgrades[0])
        env.create(_manifest_as_sent(env, REAPPLIED_SET))
        env.create(_manifest_as_sent(env, WHOLE_SET))
        self.complete(env)
        env.mark("before the take-over")
        env.roles.upgrade()
        env.create(_manifest_as_sent(env, "model"))
        env.settle("hashes rewritten", takeover.has_hashes_of(REAPPLIED_SET, "model"), 60)
        self.apply(env)


class AppliedAfterAGoOperator(AppliedAgain):
    """Room for all pods, and sets as the webhook of a Go operator writes them. While no operator is running, the sets
    get that operator's hashes. The judged operator takes them over, and then the manifests are reapplied."""

    exclusive = Exclusive.ROLES

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 2)
        for set_name in (REAPPLIED_SET, WHOLE_SET):
            env.create(_workload(env, set_name, [pair.before for pair in NOTATIONS]))
        self.complete(env)
        hashes = {
            set_name: takeover.all_hashes(env.history.view(), set_name) for set_name in (REAPPLIED_SET, WHOLE_SET)
        }
        env.roles.stop("operator")
        for set_name in hashes:
            takeover.write_hashes(env, set_name, LEGACY[0])
        env.mark("before the take-over")
        env.roles.restart("operator")
        env.settle("hashes rewritten", all_of(*(takeover.has_hashes(*entry) for entry in hashes.items())), 60)
        self.apply(env)


@requirement("UPG-010")
def test_a_manifest_can_be_applied_again_after_an_upgrade(run: Recorded[AppliedAfterAnUpgrade]) -> None:
    """The manifest has the stored quantities in other notations, and a second replica."""
    _expect_nothing_updated(run)


@requirement("UPG-011")
def test_a_manifest_can_be_applied_again_after_a_go_operator(run: Recorded[AppliedAfterAGoOperator]) -> None:
    """The sets are stored as the webhook of a Go operator writes them."""
    _expect_nothing_updated(run)


def _expect_nothing_updated(run: Recorded[AppliedAgain]) -> None:
    run.given("set has its pods", "set available", "set has its second replica")
    before, now = _uids(run.at("before it is applied again")), _uids(run.at("nothing moves"))
    run.same("uids of pods", before, {pod: now.get(pod, "") for pod in before})
    span = run.between("before the take-over", "nothing moves")
    updates = [record for set_name in (REAPPLIED_SET, WHOLE_SET) for record in takeover.update_records(span, set_name)]
    run.expect("states of the sets with an update", [], updates)


def _uids(view: View) -> dict[str, str]:
    uids = incarnations.uids(view, "pods")
    return {pod: uid for pod, uid in uids.items() if pod.startswith((f"{REAPPLIED_SET}-", f"{WHOLE_SET}-"))}


def _manifest_as_sent(env: SceneEnvironment, name: str, replicas: int = 1) -> Object:
    """Return a set with its quantities in the notation of its user."""
    return _workload(env, name, [pair.after for pair in NOTATIONS], replicas)


def _workload(env: SceneEnvironment, name: str, cliques: list[Object], replicas: int = 1) -> Object:
    if name != WHOLE_SET:
        return sets.manifest(env, name, cliques, replicas=replicas)
    groups = {"g": [clique["name"] for clique in cliques[:2]]}
    return with_defaults(sets.manifest(env, name, cliques, groups=groups, replicas=replicas))
