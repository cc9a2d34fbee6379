"""A scene in which updates are interrupted by other changes, by the loss of pods, and by the loss of a PodGangMap."""

from __future__ import annotations

from conformance.grove import pods, updates
from conformance.grove.coherent.model import shape
from conformance.grove.fields import name, uid
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.testing import predicates
from conformance.testing.observed import all_of
from conformance.testing.scene import Scene, SceneEnvironment
from conformance.tests.coherent import sets
from conformance.tests.coherent.sets import MAPS, SETS, TIMEOUT_SECONDS

SIZES: dict[str, tuple[sets.Sizes, sets.Sizes]] = {
    "partly": ({"f": (1, 1)}, {"g": (3, 1), "d": (2, 1)}),
    "wider": ({"f": (1, 1)}, {"g": (4, 1)}),
    "thrice": ({"f": (2, 1)}, {}),
    "mapless": ({"f": (2, 1)}, {"d": (2, 1)}),
    "weak": ({"f": (6, 2)}, {}),
}
"""Set → its standalone cliques and scaling groups, with replicas and minAvailable."""
NAMES = tuple(SIZES)
WEAK_CLIQUE = "weak-0-f"


class Interrupted(Scene):
    """Five sets (see SIZES), whose new pods do not become Ready until the scene releases them.

    In `partly`, f and g are changed; when f is complete and g is not, g and d are changed. In `wider`, maxUnavailable
    of g is raised to 2 after the first sub-step. `thrice` has three replicas and is changed again while the second one
    is being updated. In `mapless`, the PodGangMap is deleted after the first sub-step, unless admission protects it.
    After its second sub-step, `weak` loses one pod of the old version and all pods of the first new gang, which are
    recreated but not Ready at first. Three of its six pods are then Ready, although at least four must be.
    """

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 2)
        workloads = {
            set_name: sets.set_manifest(env, set_name, *sizes, replicas=3 if set_name == "thrice" else 1)
            for set_name, sizes in SIZES.items()
        }
        for workload in workloads.values():
            env.create(workload)
        deployed = (sets.is_deployed(set_name, 3 if set_name == "thrice" else 1) for set_name in NAMES)
        env.wait_for("deployed", all_of(*deployed), TIMEOUT_SECONDS)
        env.quiet(0.7)
        env.mark("change")
        old_generations = {
            "partly": sets.change_images(env, workloads["partly"], "f", "gm", tag="2", hold=("gm",)),
            "wider": sets.change_images(env, workloads["wider"], "f", "gm", tag="2", hold=True),
            "mapless": sets.change_images(env, workloads["mapless"], "f", "dm", tag="2", hold=True),
            "weak": sets.change_images(env, workloads["weak"], "f", tag="2", hold=True),
        }
        sets.change_images(env, workloads["thrice"], "f", tag="2", hold=True)
        self._start_second_replica(env)
        old_generations["thrice"] = updates.generation_hash(env.history.view().get(SETS, "thrice"))
        sets.change_images(env, workloads["thrice"], "f", tag="3")
        sets.release(env, "thrice")  # an operator may wait for the gangs of the second version
        counts = {"partly": 1, "wider": 2, "mapless": 2, "weak": 2}
        unready_conditions = (sets.has_unready_pods(set_name, count, "2") for set_name, count in counts.items())
        env.wait_for("first sub-steps", all_of(*unready_conditions), TIMEOUT_SECONDS)
        self._raise_budget(env, workloads["wider"]["spec"]["template"]["podCliqueScalingGroups"])
        self._delete_map(env)
        for set_name in ("partly", "weak"):
            sets.release(env, set_name)
        env.wait_for(
            "second sub-steps", all_of(has_rolled_pods("partly", 2, 1), has_rolled_pods("weak", 4, 2)), TIMEOUT_SECONDS
        )
        self.completed_pods = sets.clique_by_uid(sets.pods_of_templates(env.history.view(), "partly", "f"))
        env.mark("partly: changed again")
        second_generation = sets.change_images(env, workloads["partly"], "gm", "dm", tag="3")
        self._delete_pods(env)
        env.settle("partly: ended", sets.is_updated("partly", second_generation), TIMEOUT_SECONDS)
        env.quiet(1)
        env.mark("weak: below the minimum")
        sets.release_all(env, {set_name: old_generations[set_name] for set_name in ("weak", "wider", "mapless")})
        env.settle("thrice: ended", sets.is_updated("thrice", old_generations["thrice"]), TIMEOUT_SECONDS)
        env.quiet(0.7)
        env.mark("end")

    def _start_second_replica(self, env: SceneEnvironment) -> None:
        for _ in range(sets.MAX_SUB_STEPS):
            view = env.settled("thrice: pods wait to become Ready", sets.has_held_pod("thrice"))
            if (
                1 in updates.updating_replicas(view.get(SETS, "thrice"))
                or sets.has_held_pod("thrice")(view) is not True
            ):
                break
            sets.release(env, "thrice")
        env.wait_for(
            "thrice: second replica", all_of(is_updating_replica("thrice", 1), sets.has_unready_pods("thrice", 1, "2"))
        )

    def _raise_budget(self, env: SceneEnvironment, groups: list[dict[str, object]]) -> None:
        groups[0]["rollingUpdate"] = {"maxUnavailable": 2}
        env.patch(SETS, "wider", {"spec": {"template": {"podCliqueScalingGroups": groups}}})
        env.mark("wider: budget raised")

    def _delete_map(self, env: SceneEnvironment) -> None:
        view = env.history.view()
        self.layout = shape(sets.layout(view, "mapless"))
        self.mapless_pods = sets.clique_by_uid(sets.pods_of_set(view, "mapless"))
        if (gang_map := sets.map_of(view, "mapless")) is not None:
            [reply] = env.dry_run.all([env.dry_run.delete(MAPS, name(gang_map))])
            if reply.accepted:
                env.delete(MAPS, name(gang_map))
        env.settle("mapless: map restored", self._is_map_restored)
        env.quiet(1)
        env.mark("mapless: at rest")

    def _is_map_restored(self, view: View) -> bool | Unmet:
        current = shape(sets.layout(view, "mapless"))
        return current == self.layout or Unmet(f"entries: {current}")

    def _delete_pods(self, env: SceneEnvironment) -> None:
        """Delete the new pods that are Ready, and one pod of the old version. Let the pods of the second sub-step
        become Ready."""
        clique_pods = predicates.pods_of(env.history.view(), WEAK_CLIQUE)
        ready_pods = [pod for pod in clique_pods if sets.image_tag(pod) == "2" and pods.is_ready(pod)]
        second_sub_step = {name(pod) for pod in clique_pods if sets.image_tag(pod) == "2"} - {
            name(pod) for pod in ready_pods
        }
        old_pod, *remaining = (pod for pod in clique_pods if sets.image_tag(pod) == "1")
        self.old_pods = {uid(pod) for pod in remaining}
        for pod in (old_pod, *ready_pods):
            env.delete("pods", name(pod))
        env.wait_for(
            "weak: pods lost",
            all_of(sets.has_unready_pods("weak", 4, "2"), has_old_pods(len(remaining))),
            TIMEOUT_SECONDS,
        )
        sets.release(env, "weak", second_sub_step)


@predicate
def is_updating_replica(view: View, set_name: str, replica: int) -> bool | Unmet:
    """This replica is being updated."""
    replicas = updates.updating_replicas(view.get(SETS, set_name))
    return replica in replicas or Unmet(f"replicas of {set_name} that are being updated: {replicas}")


@predicate
def has_rolled_pods(view: View, set_name: str, count: int, waiting: int) -> bool | Unmet:
    """Exactly `count` pods of the changed component have the second version, and `waiting` of these pods are not
    Ready."""
    cliques = ("gm",) if set_name == "partly" else ("f",)
    updated = sum(sets.image_tag(pod) == "2" for pod in sets.pods_of_templates(view, set_name, *cliques))
    if updated != count:
        return Unmet(f"{updated} of {count} pods of {set_name} are of the second version")
    return sets.has_unready_pods(set_name, waiting, "2")(view)


@predicate
def has_old_pods(view: View, count: int) -> bool | Unmet:
    """Exactly `count` pods of the set `weak` have its first version."""
    old_pods = sum(sets.image_tag(pod) == "1" for pod in predicates.pods_of(view, WEAK_CLIQUE))
    return old_pods == count or Unmet(f"{old_pods} pods of {WEAK_CLIQUE} are of the first version, not {count}")
