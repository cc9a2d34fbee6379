"""Tests that real changes to a few templates are rolled out, and that reordered templates are not."""

from __future__ import annotations

from conformance.grove import template_pairs
from conformance.grove.fields import text
from conformance.grove.template_pairs import template
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.testing import incarnations, predicates, sets
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement

STANDALONE, GROUPS = ("a", "b", "c"), {"g": ["d", "e"], "h": ["f"]}
POD_COUNT = len(STANDALONE) + 2 * 2 + 2


class RealChangesAmongOthers(Scene):
    """Room for all pods. All templates of a set are reordered except two templates, which really change: the template
    of one standalone clique, and the template of one member of the group `g`."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 2)
        names = [*STANDALONE, *(name for members in GROUPS.values() for name in members)]
        before = [template(name, template_pairs.random_pod_spec(env.random)) for name in names]
        env.create(sets.manifest(env, "s", before, groups=GROUPS))
        env.wait_for("set has its pods", sets.have_pods({"s": POD_COUNT}))
        env.wait_for("set available", predicates.is_available("s", 1))
        uids = incarnations.uids(env.quiet(1), "pods")

        standalone, member = env.random.choice(STANDALONE), env.random.choice(GROUPS["g"])
        after = []
        for clique in before:
            change = (
                template_pairs.changed_spec if clique["name"] in (standalone, member) else template_pairs.reordered_spec
            )
            after.append(template(clique["name"], change(env.random, clique["spec"]["podSpec"])))
        env.random.shuffle(after)
        self.outdated_pods = {pod: uid for pod, uid in uids.items() if pod.startswith((f"s-0-{standalone}-", "s-0-g-"))}
        self.unchanged_pods = {pod: uid for pod, uid in uids.items() if pod not in self.outdated_pods}
        sets.update_spec(env, sets.manifest(env, "s", after, groups=GROUPS))
        env.wait_for("changed clique and group of the changed member replaced", _are_pods_replaced(self.outdated_pods))
        env.wait_for("set has its pods again", sets.have_pods({"s": POD_COUNT}))
        env.quiet(1)
        env.mark("nothing moves")


@requirement("TMPL-012", reaches="changed clique and group of the changed member replaced")
def test_only_real_changes_are_rolled_out(run: Recorded[RealChangesAmongOthers]) -> None:
    """Pods of reordered templates keep their UIDs to the end. A step waits until all other pods are replaced."""
    run.given("set has its pods", "set available", "set has its pods again")
    unchanged, now = run.scene.unchanged_pods, incarnations.uids(run.at("nothing moves"), "pods")
    run.same("pods of reordered templates", unchanged, {pod: now.get(pod, "") for pod in unchanged})


@predicate
def _are_pods_replaced(view: View, outdated: dict[str, str]) -> bool | Unmet:
    """These pods no longer exist, and the update has ended."""
    remaining = [pod for pod, uid in incarnations.uids(view, "pods").items() if outdated.get(pod) == uid]
    end_time = text(view.get(sets.SETS, "s"), "status", "updateProgress", "updateEndedAt")
    return (not remaining and end_time != "") or Unmet(
        f"still there: {', '.join(remaining)}; ended at {end_time or 'no time'}"
    )
