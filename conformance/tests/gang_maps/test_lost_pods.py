"""Tests that lost pods, and pods that have lost their label, stay in their PodGang."""

from __future__ import annotations

from conformance.grove import labels
from conformance.grove.fields import label, name, uid
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.testing import following, predicates
from conformance.testing.disruption import pods_by_index
from conformance.testing.scaled import pods_are
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement

CLIQUES_LOSING_PODS = ("s-0-a", "s-0-g-0-b", "s-0-g-2-c")
"""The PodCliques that lose a pod: a standalone PodClique, a PodClique in a group replica of the Anchor, and a PodClique
in a group replica of the Tail."""
PODS_REPLACED, LABEL_RESTORED = "lost pods replaced", "label is back"


class LostPods(Scene):
    """One node with room for all pods. One pod each of a standalone clique and of two replicas of a scaling group is
    deleted. Then another client removes the label that names the gang from a pod of the standalone clique."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        set_sizes = {"alone": 2, "aloneMinAvailable": 1, "members": 2, "membersMinAvailable": 1}
        env.create(env.workload("kept", setName="s", groups=3, groupsMinAvailable=1, **set_sizes))
        env.wait_for("set available", predicates.is_available("s", 1))
        env.settled("maps followed", following.are_maps_followed("s"))
        env.quiet(1)
        env.mark("at rest")
        lost_pods = [pods_by_index(env, clique)[0] for clique in CLIQUES_LOSING_PODS]
        for pod in lost_pods:
            env.delete("pods", name(pod))
        sizes = {"s-0-a": 2, "s-0-g-0-b": 1, "s-0-g-2-c": 2}
        env.settle(PODS_REPLACED, _has_replaced_pods({uid(pod) for pod in lost_pods}, sizes), 60)
        env.settled("replacements are in their gangs", following.are_maps_followed("s"))
        env.quiet(1)
        env.mark("replaced")
        self.relabeled_pod = name(pods_by_index(env, "s-0-a")[1])
        env.patch("pods", self.relabeled_pod, {"metadata": {"labels": {labels.GANG: None}}})
        env.settle(LABEL_RESTORED, _has_gang_label(self.relabeled_pod), 30)
        env.settled("pods are in their gangs again", following.are_maps_followed("s"))
        env.quiet(1)
        env.mark("end")


@predicate
def _has_replaced_pods(view: View, lost_pods: set[str], sizes: dict[str, int]) -> bool | Unmet:
    """The cliques have all their pods, all pods are Ready, and the lost pods are gone."""
    if any(uid(pod) in lost_pods for clique in sizes for pod in predicates.pods_of(view, clique)):
        return Unmet("a deleted pod is still there")
    return pods_are(sizes, ready=True)(view)


@predicate
def _has_gang_label(view: View, pod_name: str) -> bool | Unmet:
    """The pod names a gang, or no longer exists."""
    pod = view.get("pods", pod_name)
    return pod is None or label(pod, labels.GANG) != "" or Unmet(f"{pod_name} names no gang")


def _gangs_by_clique(view: View) -> dict[str, list[str]]:
    """Return PodClique → the gangs that its pods name."""
    return {
        clique: sorted(label(pod, labels.GANG) for pod in predicates.pods_of(view, clique))
        for clique in following.cliques_of_set(view, "s")
    }


@requirement("MAP-030", reaches=PODS_REPLACED)
def test_a_replacement_joins_the_same_gang(run: Recorded[LostPods]) -> None:
    """The gangs that each clique's pods name are compared before and after the loss."""
    run.same("gangs of pods by PodClique", _gangs_by_clique(run.at("at rest")), _gangs_by_clique(run.at("replaced")))


@requirement("MAP-031", reaches=LABEL_RESTORED)
def test_a_pod_without_its_label_gets_it_back_or_is_replaced(run: Recorded[LostPods]) -> None:
    """At the end the clique has as many pods as before, and each pod names a gang that exists."""
    view = run.at("end")
    clique_pods, gangs = predicates.pods_of(view, "s-0-a"), following.gangs_of(view, "s")
    run.expect("number of pods", {"s-0-a": 2}, {"s-0-a": len(clique_pods)})
    stray_pods = [
        f"{name(pod)}: {label(pod, labels.GANG)}" for pod in clique_pods if label(pod, labels.GANG) not in gangs
    ]
    run.expect("pods whose gang does not exist", [], stray_pods)


@requirement("MAP-047")
def test_a_pod_without_its_label_is_not_replaced(run: Recorded[LostPods]) -> None:
    """The pod belongs to a standalone clique, and there is one Anchor."""
    run.given(LABEL_RESTORED)
    pod = run.scene.relabeled_pod
    before, after = (run.at(step).get("pods", pod) for step in ("replaced", "end"))
    run.expect(f"uid and gang of {pod}", [uid(before), label(before, labels.GANG)],
               [uid(after), label(after, labels.GANG)])  # fmt: skip


test_invariants = invariants(LostPods, "INV-001", "INV-002", "INV-004", "INV-005")
