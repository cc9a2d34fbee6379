"""Sets whose quantities are rewritten in another notation of the same amounts: nothing is restarted."""

from __future__ import annotations

from conformance.grove import template_pairs
from conformance.testing import incarnations, sets
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement


class QuantitiesInAnotherNotation(Scene):
    """Room for all pods, and two sets whose quantities are rewritten: of `usual` in notations that Kubernetes writes in
    the same way, of `foreign` in those that it keeps apart. With them each set gets a second replica."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 4)
        pairs = template_pairs.read()
        usual, foreign = pairs.notations, pairs.foreign_notations
        env.create(sets.made(env, "usual", [pair.before for pair in usual]))
        env.wait_for("usual has its pods, with hashes", sets.have_pods({"usual": len(usual)}))
        env.create(sets.made(env, "foreign", [pair.before for pair in foreign]))
        env.wait_for("foreign has its pods, with hashes", sets.have_pods({"foreign": len(foreign)}))
        env.quiet(1)
        env.mark("quantities rewritten")
        for name, notations in (("usual", usual), ("foreign", foreign)):
            sets.become(env, sets.made(env, name, [pair.after for pair in notations], replicas=2))
        # The second replica shows that the operator has reconciled the new spec.
        env.wait_for("usual has its second replica", sets.have_second_replica(["usual"]))
        env.wait_for("foreign has its second replica", sets.have_second_replica(["foreign"]))
        env.quiet(1.5)
        env.mark("nothing moves")


@requirement("TMPL-013")
def test_another_usual_notation_restarts_nothing(run: Recorded[QuantitiesInAnotherNotation]) -> None:
    """A notation of the same amount that Kubernetes writes alike MUST NOT start an update or replace a Pod."""
    run.given("usual has its pods, with hashes", "usual has its second replica")
    _nothing_restarted(run, "usual")


@requirement("TMPL-014")
def test_another_foreign_notation_restarts_nothing(run: Recorded[QuantitiesInAnotherNotation]) -> None:
    """A notation of the same amount that Kubernetes keeps apart SHOULD NOT start an update or replace a Pod."""
    run.given("foreign has its pods, with hashes", "foreign has its second replica")
    _nothing_restarted(run, "foreign")


def _nothing_restarted(run: Recorded[QuantitiesInAnotherNotation], name: str) -> None:
    """A set has the pods that it had, and reports no update."""
    before = incarnations.uids(run.at("quantities rewritten"), "pods")
    view = run.at("nothing moves")
    now = incarnations.uids(view, "pods")
    own = {pod: uid for pod, uid in before.items() if pod.startswith(f"{name}-")}
    run.same(f"uids of the pods of {name}", own, {pod: now.get(pod, "") for pod in own})
    run.expect(f"updateProgress of {name}", None, sets.progress(view, name))
