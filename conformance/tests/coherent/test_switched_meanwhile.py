"""Tests of switching the strategy from or to Coherent in the middle of an update."""

from __future__ import annotations

from conformance.grove import pods, updates
from conformance.grove.fields import items, name, text
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.suite.scenes.api import Object
from conformance.testing import replay
from conformance.testing.observed import all_of
from conformance.testing.predicates import pods_of
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement
from conformance.tests.coherent import sets
from conformance.tests.coherent.sets import CLIQUES, COHERENT, GROUPS, ON_DELETE, ROLLING, SETS, TIMEOUT_SECONDS

SIZES: tuple[sets.Sizes, sets.Sizes] = ({"f": (2, 1)}, {"d": (2, 1)})
OWN_SIZES: dict[str, tuple[sets.Sizes, sets.Sizes]] = {
    "half": ({"f": (4, 1)}, {"d": (3, 2, 2)}),
    "leaves": ({"f": (3, 2)}, {"d": (2, 1)}),
}
SWITCHES = {
    "joins": (ROLLING, COHERENT),
    "half": (ROLLING, COHERENT),
    "leaves": (COHERENT, ROLLING),
    "freezes": (COHERENT, ON_DELETE),
}
"""Set → its strategy when an update starts, and the strategy to which it is switched."""
COMPLETED_SETS = ("joins", "half", "leaves")
UNFROZEN_SET = "thaws"
"""A set that is switched from OnDelete to Coherent."""


class SwitchedMeanwhile(Scene):
    """Sets with a clique and a scaling group. All sets are changed, and their new pods are held, so that they do not
    become Ready. Each set is switched to another strategy when its first new pods exist. Then the pods become Ready.

    In `joins`, the scaling group is scaled before the switch, and the pod of the added replica becomes Ready. In
    `half`, only pods of the clique are held, so the scaling group may be updated before the switch. In `leaves`, the
    first sub-step leaves fewer pods of the clique in their old PodGang than its minAvailable. In `thaws`, one pod of
    the old template was deleted, and its replacement is Ready.
    """

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        strategies = {
            **{set_name: old_generations for set_name, (old_generations, _) in SWITCHES.items()},
            UNFROZEN_SET: ON_DELETE,
        }
        workloads = {
            set_name: sets.set_manifest(env, set_name, *OWN_SIZES.get(set_name, SIZES), strategy=strategy)
            for set_name, strategy in strategies.items()
        }
        for workload in workloads.values():
            env.create(workload)
        env.wait_for("deployed", all_of(*map(sets.is_deployed, workloads)), TIMEOUT_SECONDS)
        env.quiet(0.7)
        self._replace_one(env, workloads[UNFROZEN_SET])
        old_generations = {
            set_name: sets.change_images(
                env, workloads[set_name], "f", "dm", tag="2", hold=["f"] if set_name == "half" else True
            )
            for set_name in SWITCHES
        }
        env.wait_for("new pods", all_of(*map(sets.has_held_pod, SWITCHES)), TIMEOUT_SECONDS)
        env.settle("half: scaling group updated", _is_group_updated("half"), 30)
        self._add_replica(env, "joins")
        env.quiet(0.7)
        env.mark("switch")
        for set_name, (_, after) in SWITCHES.items():
            sets.switch_strategy(env, set_name, after)
        sets.switch_strategy(env, UNFROZEN_SET, COHERENT)
        env.settle("freezes: end reported", _has_closed_update("freezes", old_generations["freezes"]), 60)
        env.mark("freezes: closed")
        sets.release_all(env, {set_name: old_generations[set_name] for set_name in COMPLETED_SETS})
        env.quiet(5.5, real=True)
        env.mark("end")

    def _add_replica(self, env: SceneEnvironment, set_name: str) -> None:
        """Scale out the scaling group of a set, and let the pod of the added replica become Ready. An operator may
        reject scaling during an update, in which case the group keeps its size."""
        clique, patch = f"{set_name}-0-d-2-dm", {"spec": {"replicas": 3}}
        [reply] = env.dry_run.all([env.dry_run.patch(GROUPS, f"{set_name}-0-d", patch)])
        if not reply.accepted:
            return
        env.patch(GROUPS, f"{set_name}-0-d", patch)
        env.settle(f"{set_name}: pod added", _has_bound_pods(clique), 30)
        sets.release(env, set_name, [name(pod) for pod in pods_of(env.history.view(), clique)])
        env.settle(f"{set_name}: added pod is Ready", _has_bound_pods(clique, ready=True), 30)

    def _replace_one(self, env: SceneEnvironment, workload: Object) -> None:
        """Change the set, and delete one of its pods."""
        before = sets.change_images(env, workload, "f", "dm", tag="2")
        env.wait_for("thaws: end reported", _has_closed_update(UNFROZEN_SET, before), 60)
        # The end may be reported before the PodCliques have the new template. In that case the deleted pod would be
        # replaced by a pod of the old template.
        env.wait_for("thaws: template in place", _has_template(f"{UNFROZEN_SET}-0-f", "2"), 60)
        env.delete("pods", name(sets.pods_of_templates(env.history.view(), UNFROZEN_SET, "f")[0]))
        env.wait_for(
            "thaws: pod replaced",
            all_of(_has_replaced_pod(UNFROZEN_SET), sets.is_deployed(UNFROZEN_SET)),
            TIMEOUT_SECONDS,
        )
        env.quiet(0.7)
        self.mixed_pods = sets.clique_by_uid(sets.pods_of_set(env.history.view(), UNFROZEN_SET))


@requirement("COHR-110", reaches=tuple(f"{set_name}: ended" for set_name in COMPLETED_SETS))
def test_an_update_ends_under_the_next_strategy(run: Recorded[SwitchedMeanwhile]) -> None:
    """Switches from RollingRecreate to Coherent, and from Coherent to RollingRecreate, are judged. In the end all pods
    become Ready."""
    run.given("deployed", "new pods")
    for set_name in COMPLETED_SETS:
        run.expect(f"{set_name}: images", {"dm": ["2"], "f": ["2"]}, sets.image_tags(run.at("end"), set_name))


@requirement("COHR-111", reaches="freezes: end reported")
def test_a_switch_from_coherent_to_on_delete_ends_the_update(run: Recorded[SwitchedMeanwhile]) -> None:
    """The strategy is switched during the first sub-step."""
    run.given("deployed", "new pods")
    span = run.between("freezes: closed", "end")
    deleted = [record.name for record in replay.deletions(span) if record.name.startswith("freezes-")]
    run.expect("pods that were deleted afterwards", [], deleted)


@requirement("COHR-090")
def test_a_switch_from_on_delete_deletes_nothing(run: Recorded[SwitchedMeanwhile]) -> None:
    """When the set is switched to Coherent, one pod has the new template, and all other pods have the old template."""
    run.given("deployed", "thaws: pod replaced")
    view = run.at("end")
    run.same("pods", run.scene.mixed_pods, sets.clique_by_uid(sets.pods_of_set(view, UNFROZEN_SET)))
    run.expect("an update runs", False, updates.is_running(view.get(SETS, UNFROZEN_SET)))


test_invariants = invariants(SwitchedMeanwhile, "INV-018", "INV-020", "INV-021", "INV-022")


@predicate
def _has_closed_update(view: View, set_name: str, before: str) -> bool | Unmet:
    """An update has started and is reported to have ended."""
    pcs = view.get(SETS, set_name)
    if updates.generation_hash(pcs) in ("", before):
        return Unmet(f"{set_name} still has the generation of before")
    return updates.has_ended(pcs) or Unmet(f"the update of {set_name} has not ended: {dict(updates.progress(pcs))}")


@predicate
def _has_template(view: View, clique: str, tag: str) -> bool | Unmet:
    """The template of a PodClique has an image with this tag."""
    containers = items(view.get(CLIQUES, clique), "spec", "podSpec", "containers")
    images = [text(container, "image") for container in containers]
    return any(image.endswith(f":{tag}") for image in images) or Unmet(f"images of {clique}: {images}")


@predicate
def _has_replaced_pod(view: View, set_name: str) -> bool | Unmet:
    """The clique f has pods of both templates."""
    images = sets.image_tags(view, set_name).get("f")
    return images == ["1", "2"] or Unmet(f"images of f: {images}")


@predicate
def _is_group_updated(view: View, set_name: str) -> bool | Unmet:
    """All pods of the scaling group have the new template and are Ready."""
    members, images = sets.pods_of_templates(view, set_name, "dm"), sets.image_tags(view, set_name).get("dm")
    return (images == ["2"] and all(map(pods.is_ready, members))) or Unmet(f"images of dm: {images}")


@predicate
def _has_bound_pods(view: View, clique: str, *, ready: bool = False) -> bool | Unmet:
    """A pod of a PodClique is bound and, with `ready`, is also Ready."""
    members = pods_of(view, clique)
    fulfilled = any(pods.is_ready(pod) if ready else pods.is_bound(pod) for pod in members)
    return fulfilled or Unmet(f"{clique} has {len(members)} pods, none of them is {'Ready' if ready else 'bound'}")
