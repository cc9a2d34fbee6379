"""After a take-over, users apply again the manifests that their sets were created from: nothing is restarted."""

from __future__ import annotations

from conformance.grove import template_pairs
from conformance.grove.template_hashes import LEGACY
from conformance.history.view import View
from conformance.testing import incarnations, predicates, sets
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.testing.sets import Object
from conformance.tests.upgrade import takeover

NOTATIONS = template_pairs.read().notations
PODS = len(NOTATIONS)
AGAIN = "again"
"""The set whose manifest is applied again."""


class AppliedAgain(Scene):
    """A set whose quantities the manifest has in other notations than those that are stored."""

    def complete(self, env: SceneEnvironment) -> None:
        """Waits until the set is complete and at rest."""
        env.wait_for("set has its pods", takeover.has_all_hashes(AGAIN, PODS))
        env.wait_for("set available", predicates.available(AGAIN, 1))
        env.quiet(1)

    def apply(self, env: SceneEnvironment) -> None:
        """Applies the manifest, with a second replica. That one shows that the operator has reconciled the new spec."""
        env.mark("before it is applied again")
        sets.become(env, _sent(env, AGAIN, replicas=2))
        env.wait_for("set has its second replica", sets.have_second_replica([AGAIN]))
        env.quiet(2)
        env.mark("nothing moves")


class AppliedAfterAnUpgrade(AppliedAgain):
    """Room for all pods. The earlier version creates a set; the judged one takes over and is given an equal set. Then
    the manifest is applied again."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 2)
        env.roles.downgrade(env.roles.upgrades[0])
        env.create(_sent(env, AGAIN))
        self.complete(env)
        env.mark("before the take-over")
        env.roles.upgrade()
        env.create(_sent(env, "model"))
        env.settle("hashes rewritten", takeover.has_hashes_of(AGAIN, "model"), 60)
        self.apply(env)


class AppliedAfterAGoOperator(AppliedAgain):
    """Room for all pods, and a set as the webhook of a Go operator writes it. While no operator runs, it gets that
    operator's hashes. The judged operator takes it over; then the manifest is applied again."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 2)
        env.create(sets.made(env, AGAIN, [pair.before for pair in NOTATIONS]))
        self.complete(env)
        own = takeover.everything(env.history.view(), AGAIN)
        env.roles.stop("operator")
        takeover.write_hashes(env, AGAIN, LEGACY[0])
        env.mark("before the take-over")
        env.roles.restart("operator")
        env.settle("hashes rewritten", takeover.has_hashes(AGAIN, own), 60)
        self.apply(env)


@requirement("UPG-010")
def test_a_manifest_can_be_applied_again_after_an_upgrade(run: Recorded[AppliedAfterAnUpgrade]) -> None:
    """After an upgrade, applying the manifest of a set again MUST NOT start an update or replace a Pod."""
    _judge(run)


@requirement("UPG-011")
def test_a_manifest_can_be_applied_again_after_a_go_operator(run: Recorded[AppliedAfterAGoOperator]) -> None:
    """After taking over from a Go operator, applying the manifest of a set again MUST NOT update or replace anything.

    Its webhook has written the quantities as Kubernetes does.
    """
    _judge(run)


def _judge(run: Recorded[AppliedAgain]) -> None:
    run.given("set has its pods", "set available", "hashes rewritten", "set has its second replica")
    before, now = _uids(run.at("before it is applied again")), _uids(run.at("nothing moves"))
    run.same("uids of pods", before, {pod: now.get(pod, "") for pod in before})
    span = run.between("before the take-over", "nothing moves")
    run.expect("states of the set with an update", [], takeover.updates(span, AGAIN))


def _uids(view: View) -> dict[str, str]:
    found = incarnations.uids(view, "pods")
    return {pod: uid for pod, uid in found.items() if pod.startswith(f"{AGAIN}-")}


def _sent(env: SceneEnvironment, name: str, replicas: int = 1) -> Object:
    """A set with quantities as its user writes them."""
    return sets.made(env, name, [pair.after for pair in NOTATIONS], replicas=replicas)
