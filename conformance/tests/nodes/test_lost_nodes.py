"""Tests in which a node is cordoned, drained of the pods of one set, lost, and comes back.

The terminationDelay is an hour, so no clique is terminated before its delay is shortened, and no result depends on the
speed of the machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from conformance.grove import labels, pods
from conformance.grove.fields import label, name, number, terminating, uid
from conformance.history.query import Predicate, Unmet, predicate
from conformance.history.record import DELETED
from conformance.history.view import View
from conformance.suite.scenes.api import Object
from conformance.testing import disruption, incarnations, predicates
from conformance.testing.disruption import CLIQUES
from conformance.testing.observed import all_of
from conformance.testing.scaled import pods_are
from conformance.testing.scene import Exclusive, Recorded, Scene, SceneEnvironment, Span, invariants, requirement

Pods = Mapping[str, Mapping[str, Any]]
"""The pods of a set, by index."""

PODS_PER_SET = 2
SETS = ("moves", "stuck", "lasts", "returns", "drained")
CLIQUE_BY_SET = {set_name: f"{set_name}-0-web" for set_name in SETS}
SETS_ON_LOST_NODE = ("stuck", "lasts", "returns")
"""Sets whose cliques stay breached until their node comes back. The breach of `moves` ends when its pods are
replaced."""
EVICTED_SETS = ("moves", "stuck")
"""Sets whose pods are evicted soon after their node is lost."""
HOSTNAME = "kubernetes.io/hostname"
TOLERATION_WITHOUT_LIMIT: Object = {
    "key": "node.kubernetes.io/unreachable",
    "operator": "Exists",
    "effect": "NoExecute",
}
"""A toleration without a time limit. Without it, Kubernetes evicts a pod after 300 s. For an idle implementation, all
waits together can take longer."""
EVICTION = "Kubernetes evicts the pods of the lost node"
MAX_ATTEMPTS = 10
"""Maximum number of times that a rejected eviction is requested again."""
SHORT_TOLERATION: Object = {**TOLERATION_WITHOUT_LIMIT, "tolerationSeconds": 1}


class NodeThatIsLostAndComesBack(Scene):
    """Two nodes, and five sets of two pods on the first node. The first node is cordoned, drained of the pods of
    `drained`, and then lost with all other pods. The pods of `moves` are evicted and fit on the second node. The pods
    of `stuck` are evicted and do not fit on another node. `lasts` is terminated when its delay is shortened. `returns`
    waits until the node comes back."""

    exclusive = Exclusive.NODES

    def play(self, env: SceneEnvironment) -> None:
        first_node, second_node = env.nodes("tiny", 2)
        disruption.cordon(env, [second_node])
        for set_name in SETS:
            env.create(_workload(env, set_name, first_node))
        all_available = all_of(*(predicates.is_available(set_name, 1) for set_name in SETS))
        env.wait_for("all sets available", all_available)
        self.initial_pods = initial_pods = {set_name: _pods_by_index(env.history.view(), set_name) for set_name in SETS}

        env.quiet(1.2, real=True)
        env.mark("before the cordon")
        disruption.cordon(env, [first_node])
        env.quiet(1.5, real=True)
        env.mark("after the cordon")

        disruption.cordon(env, [second_node], undo=True)
        self.rejected_evictions = _drain(env, [name(pod) for pod in initial_pods["drained"].values()])
        env.settle("drained pods replaced", _are_pods_replaced("drained", initial_pods["drained"]), 60)
        env.mark("after the drain")

        env.fail_node(first_node)
        before = incarnations.uids(env.history.view(), CLIQUES)
        is_breached_on_lost_node = disruption.are_breached(
            CLIQUES, [CLIQUE_BY_SET[set_name] for set_name in SETS_ON_LOST_NODE]
        )
        env.settle("cliques on the lost node breached", is_breached_on_lost_node, 60)
        disruption.set_termination_delay(env, ["lasts"], "1s")
        env.settle("clique on the lost node terminated", _has_breach_ended(CLIQUE_BY_SET["lasts"], before), 60)
        env.settle(
            "terminated clique recreated", incarnations.are_recreated(CLIQUES, [CLIQUE_BY_SET["lasts"]], before), 60
        )
        env.settle(
            "recreated clique ready on another node", _are_pods_moved("lasts", initial_pods["lasts"], second_node), 60
        )
        evicted_pods = [name(pod) for set_name in EVICTED_SETS for pod in initial_pods[set_name].values()]
        env.settle(EVICTION, _are_pods_evicted(evicted_pods), 40, real=True)  # Kubernetes evicts in real time
        env.settle(
            "evicted pods replaced on another node", _are_pods_moved("moves", initial_pods["moves"], second_node), 60
        )
        env.settle("pods that cannot terminate not counted", _has_counted_pods(CLIQUE_BY_SET["stuck"]), 60)
        env.settle("evicted pods without room not scheduled", _has_unscheduled_pods(CLIQUE_BY_SET["stuck"]), 60)
        env.quiet(1)
        env.mark("before the node comes back")

        env.recover_node(first_node)
        is_not_breached = disruption.are_breached(CLIQUES, [CLIQUE_BY_SET["returns"]], "False")
        env.settle("clique on the returned node not breached", is_not_breached, 60)
        disruption.cordon(env, [first_node], undo=True)
        env.settle("evicted pods replaced in the end", _are_pods_replaced("moves", initial_pods["moves"]), 60)
        env.wait_for("set available once there is room", predicates.is_available("stuck", 1))
        env.wait_for("all sets available again", all_available)
        disruption.set_termination_delay(env, SETS, "1s")  # a countdown that was not stopped would be over now
        env.quiet(2.5, real=True)
        env.mark("all countdowns over")


@requirement("NODE-001", reaches="evicted pods replaced in the end")
def test_evicted_pods_are_replaced(run: Recorded[NodeThatIsLostAndComesBack]) -> None:
    """An operator may wait until the former pods disappear, which happens when their node is back."""
    run.given(EVICTION)


@requirement("NODE-002", reaches="pods that cannot terminate not counted")
def test_pods_that_cannot_terminate_are_not_counted(run: Recorded[NodeThatIsLostAndComesBack]) -> None:
    """The status is compared with the clique's other pods when nothing changes any more. The other pods are
    replacements, if there are any."""
    _expect_still_terminating(run, "stuck")
    answer = _has_counted_pods(CLIQUE_BY_SET["stuck"])(run.at("before the node comes back"))
    run.expect("what the clique reports counts them neither as replicas nor as ready", True, answer or str(answer))


@requirement("NODE-008", reaches="evicted pods without room not scheduled")
def test_pods_that_cannot_terminate_are_not_scheduled(run: Recorded[NodeThatIsLostAndComesBack]) -> None:
    """No other pod of the clique can be scheduled, because there is no room."""
    _expect_still_terminating(run, "stuck")


@requirement("NODE-003", reaches="cliques on the lost node breached")
def test_a_clique_on_a_lost_node_is_breached(run: Recorded[NodeThatIsLostAndComesBack]) -> None:
    """The pods of a lost node are not Ready, whether they are evicted or not."""


@requirement("NODE-010", reaches="clique on the lost node terminated")
def test_a_clique_on_a_lost_node_is_terminated_after_its_delay(run: Recorded[NodeThatIsLostAndComesBack]) -> None:
    """A clique counts as terminated if it is being deleted, or if another clique with its name exists."""
    _expect_evicted(run, "lasts")


@requirement(
    "NODE-007",
    reaches=(
        "terminated clique recreated",
        "recreated clique ready on another node",
        "evicted pods replaced on another node",
    ),
)
def test_pods_that_cannot_terminate_delay_nothing(run: Recorded[NodeThatIsLostAndComesBack]) -> None:
    """The former pods of both sets still exist when the new pods are Ready."""
    _expect_still_terminating(run, "moves")
    _expect_still_terminating(run, "lasts")


@requirement("NODE-004", reaches="clique on the returned node not breached")
def test_pods_of_a_returned_node_are_kept(run: Recorded[NodeThatIsLostAndComesBack]) -> None:
    """The delays are shortened at the end, so a countdown that was not stopped would be over."""
    run.given("all sets available again")
    now = _pods_by_index(run.at("all countdowns over"), "returns")
    former = {index: uid(pod) for index, pod in run.scene.initial_pods["returns"].items()}
    run.same("pods of the returned node", former, {index: uid(pod) for index, pod in now.items()})
    _expect_incarnations(run, ["returns"])


@requirement("NODE-005")
def test_a_cordon_has_no_effect_on_pods(run: Recorded[NodeThatIsLostAndComesBack]) -> None:
    """Changes to pods other than deletions are allowed."""
    run.given("all sets available")
    records = run.between("before the cordon", "after the cordon").records("pods")
    deletion = [str(record) for record in records if record.kind == DELETED or terminating(record.object)]
    run.expect("pods that were deleted after their node was cordoned", [], deletion)
    _compare_incarnations(run, run.until("after the cordon"), SETS, 1)


@requirement("NODE-006", reaches="drained pods replaced")
def test_drained_pods_are_replaced(run: Recorded[NodeThatIsLostAndComesBack]) -> None:
    """The clique of the evicted pods is not recreated before the end of the scene."""
    _expect_incarnations(run, ["drained"])


@requirement("NODE-009")
def test_a_node_can_be_drained(run: Recorded[NodeThatIsLostAndComesBack]) -> None:
    """A rejected eviction is requested again for a while, as `kubectl drain` does."""
    view = run.at("after the drain")
    run.expect("evictions that were refused to the end", [], run.scene.rejected_evictions)
    run.expect(
        "indices of the pods", sorted(run.scene.initial_pods["drained"]), sorted(_pods_by_index(view, "drained"))
    )


test_invariants = invariants(NodeThatIsLostAndComesBack, "INV-001", "INV-003", "INV-004", "INV-005")


def _expect_evicted(run: Recorded[NodeThatIsLostAndComesBack], set_name: str) -> None:
    """Expect that the former pods of a set are terminating on the lost node, or were deleted by force."""
    view = run.at("before the node comes back")
    former = [view.get("pods", name(pod)) for pod in run.scene.initial_pods[set_name].values()]
    not_terminating = sorted(name(pod) for pod in former if pod is not None and not terminating(pod))
    run.expect(f"{set_name}: former pods that are not terminating", [], not_terminating)


def _expect_still_terminating(run: Recorded[NodeThatIsLostAndComesBack], set_name: str) -> None:
    """Expect that the former pods of a set are still terminating on the lost node. If they are not, the test proves
    nothing."""
    view = run.at("before the node comes back")
    former = sorted(name(pod) for pod in run.scene.initial_pods[set_name].values())
    terminating_pods = [pod for pod in former if terminating(view.get("pods", pod) or {})]
    run.expect(f"{set_name}: pods that still are on the lost node", former, terminating_pods)


def _expect_incarnations(run: Recorded[NodeThatIsLostAndComesBack], sets: Iterable[str], *, count: int = 1) -> None:
    """Expect that there was this number of PodCliques for each name until the end of the scene. One means that the
    clique was not recreated."""
    _compare_incarnations(run, run.until("all countdowns over"), sets, count)


def _compare_incarnations(
    run: Recorded[NodeThatIsLostAndComesBack], span: Span, sets: Iterable[str], count: int
) -> None:
    counts, cliques = incarnations.counts(span, CLIQUES), [CLIQUE_BY_SET[set_name] for set_name in sets]
    expected = dict.fromkeys(cliques, count)
    run.same("cliques that each name has had", expected, {clique: counts.get(clique, 0) for clique in cliques})


def _workload(env: SceneEnvironment, set_name: str, node: str) -> Object:
    workload = env.workload("frontend", setName=set_name, pods=PODS_PER_SET)
    workload["spec"]["template"]["terminationDelay"] = "1h"
    [clique] = workload["spec"]["template"]["cliques"]
    spec = clique["spec"]["podSpec"]
    spec["tolerations"] = [
        *spec.get("tolerations", []),
        SHORT_TOLERATION if set_name in EVICTED_SETS else TOLERATION_WITHOUT_LIMIT,
    ]
    if set_name == "stuck":
        spec["nodeSelector"] = {**spec.get("nodeSelector", {}), HOSTNAME: node}
    return workload


def _pods_by_index(view: View, set_name: str) -> dict[str, Mapping[str, Any]]:
    return {label(pod, labels.POD_INDEX): pod for pod in predicates.pods_of(view, CLIQUE_BY_SET[set_name])}


def _drain(env: SceneEnvironment, pod_names: Iterable[str]) -> list[str]:
    """Evict pods one after the other, and repeat rejected evictions. Return the last rejections. A pod that cannot be
    evicted (NODE-009) is deleted, so that the scene can go on."""
    rejected_pods = []
    for pod in pod_names:
        answer = env.evict(pod)
        for _ in range(MAX_ATTEMPTS):
            if answer:
                env.quiet(1, 2, real=True)
                answer = env.evict(pod)
        if answer:
            rejected_pods.append(answer)
            env.delete("pods", pod)
    return rejected_pods


def _are_pods_replaced(set_name: str, first: Pods) -> Predicate:
    """A set has as many pods as at first, all of them are Ready, and its former pods are gone."""
    clique = CLIQUE_BY_SET[set_name]
    former = {uid(pod) for pod in first.values()}

    def check(view: View) -> bool | Unmet:
        if any(uid(pod) in former for pod in predicates.pods_of(view, clique)):
            return Unmet(f"{clique} still has its former pods")
        return pods_are({clique: len(first)}, ready=True)(view)

    return check


def _are_pods_moved(set_name: str, first: Pods, node: str) -> Predicate:
    """A set has new pods with the indices of the first pods, all of them Ready on this node."""
    clique, expected_indices = CLIQUE_BY_SET[set_name], sorted(first)
    former = {uid(pod) for pod in first.values()}

    def check(view: View) -> bool | Unmet:
        clique_pods = predicates.pods_of(view, clique)
        if any(uid(pod) in former for pod in clique_pods):
            return Unmet(f"{clique} still has its former pods")
        indices = sorted(label(pod, labels.POD_INDEX) for pod in clique_pods)
        if indices != expected_indices:
            return Unmet(f"{clique} has pods with the indices {indices}, not {expected_indices}")
        unready_pods = [name(pod) for pod in clique_pods if pods.node(pod) != node or not pods.is_ready(pod)]
        return not unready_pods or Unmet(f"not Ready on {node}: {', '.join(unready_pods)}")

    return check


def _are_pods_evicted(names: Iterable[str]) -> Predicate:
    """These pods are being deleted, or were deleted by force."""
    pod_names = list(names)

    def check(view: View) -> bool | Unmet:
        pods_by_name = [view.get("pods", pod_name) for pod_name in pod_names]
        remaining = [name(pod) for pod in pods_by_name if pod is not None and not terminating(pod)]
        return not remaining or Unmet(f"not evicted: {', '.join(remaining)}")

    return check


@predicate
def _has_breach_ended(view: View, clique: str, before: Mapping[str, str]) -> bool | Unmet:
    """The clique is being deleted or no longer exists. Another clique with its name may exist."""
    current = view.get(CLIQUES, clique) or {}
    return terminating(current) or uid(current) != before[clique] or Unmet(f"{clique} is still there")


@predicate
def _has_counted_pods(view: View, clique: str) -> bool | Unmet:
    """The clique's status counts only pods that are not terminating as replicas, and no pod as ready."""
    counts = {"replicas": len(predicates.pods_of(view, clique)), "readyReplicas": 0}
    return _has_counts(view, clique, counts)


@predicate
def _has_unscheduled_pods(view: View, clique: str) -> bool | Unmet:
    """The clique reports no scheduled pods."""
    return _has_counts(view, clique, {"scheduledReplicas": 0})


def _has_counts(view: View, clique: str, counts: Mapping[str, int]) -> bool | Unmet:
    reported = {field: number(view.get(CLIQUES, clique), "status", field) or 0 for field in counts}
    return reported == counts or Unmet(f"status of {clique}: {reported}, wanted: {dict(counts)}")
