"""Tests of which pods are deleted when a clique is scaled in."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from msgspec import structs

from conformance.grove import health, labels
from conformance.grove.fields import label, name, uid
from conformance.grove.health import ContainerHealth, PodHealth
from conformance.history.view import View
from conformance.suite.scenes.api import Object
from conformance.testing import disruption, predicates
from conformance.testing.disruption import CLIQUES, SERVING
from conformance.testing.scaled import pods_are, scale
from conformance.testing.scene import Exclusive, Recorded, Scene, SceneEnvironment, invariants, requirement

NAMES = ("assigned", "aged", "outdated", "phased", "leaving")
"""One clique for each property of pods that decides which excess pods are deleted."""
CLIQUE_OF = {role: f"v-0-{role}" for role in NAMES}
UNREADY_STATE = PodHealth(phase="Running", containers=ContainerHealth(started=True))
STATES_BY_ROLE: Mapping[str, list[PodHealth]] = {
    "assigned": [UNREADY_STATE, SERVING, SERVING],
    "phased": [UNREADY_STATE, structs.replace(SERVING, phase="Unknown"), structs.replace(SERVING, phase="Pending")],
}
"""The states of the pods 0, 1 and 2 of the cliques in which not all pods serve."""


class CliquesWithExcessPods(Scene):
    """One node, and five cliques with three pods each. All cliques are scaled to two pods while no operator is running.
    One clique has a fourth pod, which has no node. In one clique, a pod was replaced recently. In one clique, a pod has
    another template. In one clique, all pods are in different phases. In one clique, a pod is already terminating."""

    exclusive = Exclusive.ROLES

    def play(self, env: SceneEnvironment) -> None:
        nodes = env.nodes("tiny", 1)
        env.create(_workload(env))
        env.wait_for("all pods bound", disruption.have_bound_pods(dict.fromkeys(CLIQUE_OF.values(), 3)))
        for role, clique in CLIQUE_OF.items():
            _set_states(env, clique, STATES_BY_ROLE.get(role, [SERVING] * 3))
        first = {role: disruption.pods_by_index(env, clique)[0] for role, clique in CLIQUE_OF.items()}
        self._replace_oldest_pod(env, first["aged"])
        env.patch("pods", name(first["outdated"]), {"metadata": {"labels": {labels.TEMPLATE_HASH: "another"}}})
        disruption.cordon(env, nodes)
        scale(env, CLIQUES, CLIQUE_OF["assigned"], 4)
        env.wait_for("a fourth pod without a node", pods_are({CLIQUE_OF["assigned"]: 4}))
        env.quiet(1)
        env.mark("before the scale-in")
        self._scale_in(env, name(first["leaving"]))

        disruption.cordon(env, nodes, undo=True)
        scale(env, CLIQUES, CLIQUE_OF["aged"], 3)
        env.settle("scaled once more", pods_are({CLIQUE_OF["aged"]: 3}), timeout=60)

    def _replace_oldest_pod(self, env: SceneEnvironment, pod: Mapping[str, Any]) -> None:
        """Replace the pod with the lowest index, so that the youngest pod of its clique has that index."""
        env.quiet(1.2, real=True)
        env.delete("pods", name(pod))
        env.wait_for("deleted pod replaced", pods_are({CLIQUE_OF["aged"]: 3}, excluded_uid=uid(pod)))
        env.wait_for("its successor bound", disruption.have_bound_pods({CLIQUE_OF["aged"]: 3}))
        disruption.set_pod_states(env, CLIQUE_OF["aged"], SERVING, 1)

    def _scale_in(self, env: SceneEnvironment, terminating_pod: str) -> None:
        """Scale in while the operator is stopped. When it starts, it finds the new sizes and a terminating pod."""
        env.roles.kill("operator")
        env.patch("pods", terminating_pod, {"metadata": {"annotations": {health.HOLD_DELETION: "yes"}}})
        env.delete("pods", terminating_pod)
        for clique in CLIQUE_OF.values():
            scale(env, CLIQUES, clique, 2)
        env.roles.restart("operator")
        env.wait_for("two pods in each clique", pods_are(dict.fromkeys(CLIQUE_OF.values(), 2)))
        env.quiet(1)
        env.mark("scaled in")
        env.patch("pods", terminating_pod, {"metadata": {"annotations": {health.HOLD_DELETION: None}}})


@requirement("SCALE-010")
def test_an_outdated_pod_is_deleted_first(run: Recorded[CliquesWithExcessPods]) -> None:
    """All three pods are in the same state. The outdated pod has the lowest index."""
    run.given("all pods bound", "two pods in each clique")
    before, now = (_uids_by_index(run.at(step), "outdated") for step in ("before the scale-in", "scaled in"))
    run.same("pods that stay", {index: before.get(index) for index in "12"}, now)


@requirement("SCALE-015")
def test_pods_that_serve_least_are_deleted_first(run: Recorded[CliquesWithExcessPods]) -> None:
    """The indices of the pods that stay differ between the cliques, so an operator that chooses pods by index fails.

    In the clique with pods in several phases, the pod in phase Running must stay. The rank of the phase Unknown is not
    specified.
    """
    run.given("all pods bound", "deleted pod replaced", "its successor bound", "a fourth pod without a node")
    run.given("two pods in each clique")
    before, now = (run.at(step) for step in ("before the scale-in", "scaled in"))
    staying = {"assigned": "12", "aged": "12"}
    expected = {
        role: {index: _uids_by_index(before, role).get(index) for index in indices} for role, indices in staying.items()
    }
    run.same("pods that stay", expected, {role: _uids_by_index(now, role) for role in staying})
    phased = {"number": 2, "0": _uids_by_index(before, "phased").get("0")}
    remaining = _uids_by_index(now, "phased")
    run.same("the pod in phase Running stays", phased, {"number": len(remaining), "0": remaining.get("0")})


@requirement("SCALE-011")
def test_terminating_pods_are_not_counted(run: Recorded[CliquesWithExcessPods]) -> None:
    """The operator finds the new size and the deletion at the same time, when it starts."""
    before = _uids_by_index(run.at("before the scale-in"), "leaving")
    stay = {index: before.get(index) for index in "12"}
    run.expect("pods beside the one that was terminating", stay, _uids_by_index(run.at("scaled in"), "leaving"))


@requirement("SCALE-012")
def test_the_lowest_free_index_is_used(run: Recorded[CliquesWithExcessPods]) -> None:
    """The scale-in has deleted the pod with the lowest index, because it was the youngest pod."""
    run.given("scaled once more")
    run.expect("indices after one more", ["0", "1", "2"], sorted(_uids_by_index(run.at("scaled once more"), "aged")))


test_invariants = invariants(CliquesWithExcessPods, "INV-001", "INV-004", "INV-005")


def _workload(env: SceneEnvironment) -> Object:
    """Return a set with all these cliques. Its update strategy does not replace pods of an outdated template."""
    workload = env.workload("waiting", setName="v", pods=3)
    workload["spec"]["updateStrategy"] = {"type": "OnDelete"}
    cliques = workload["spec"]["template"]["cliques"]
    [pattern] = cliques
    cliques.clear()
    for role in NAMES:
        clique = copy.deepcopy(pattern)
        clique["name"] = clique["spec"]["roleName"] = role
        cliques.append(clique)
    return workload


def _set_states(env: SceneEnvironment, clique: str, states: list[PodHealth]) -> None:
    """Write these states into the statuses of a clique's pods, ordered by index."""
    for pod, state in zip(disruption.pods_by_index(env, clique), states, strict=False):
        env.patch("pods", name(pod), health.status(pod, state), subresource="status")


def _uids_by_index(view: View, role: str) -> dict[str, str]:
    """Return index → UID for the pods of a clique."""
    return {label(pod, labels.POD_INDEX): uid(pod) for pod in predicates.pods_of(view, CLIQUE_OF[role])}
