"""A node is cordoned, drained of one set, lost with the others, and comes back.

Nothing is terminated before its delay, an hour, is shortened: so nothing here depends on how fast the machine is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from conformance.grove import labels, pods
from conformance.grove.fields import label, name, number, terminating, uid
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.api import Object
from conformance.testing import disruption, incarnations, predicates
from conformance.testing.disruption import CLIQUES
from conformance.testing.observed import all_of
from conformance.testing.scaled import pods_are
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, Span, invariants, requirement

Pods = Mapping[str, Mapping[str, Any]]
"""The pods of a set, by index."""

PODS = 2
SETS = ("moves", "stuck", "lasts", "returns", "drained")
CLIQUE = {each: f"{each}-0-web" for each in SETS}
LOST = ("moves", "stuck", "lasts", "returns")
EVICTED = ("moves", "stuck")
"""Their pods are evicted soon after their node is lost."""
HOSTNAME = "kubernetes.io/hostname"
NEVER: Object = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
"""Without it Kubernetes evicts after 300 s, which waits for an implementation that does nothing can add up to."""
SOON: Object = {**NEVER, "tolerationSeconds": 1}


class NodeThatIsLostAndComesBack(Scene):
    """Two nodes, and five sets of two pods on the first one, which is cordoned, drained of `drained`, and lost with all
    others. Pods of `moves` are evicted and fit on the second node; those of `stuck` are evicted and fit nowhere else;
    `lasts` is terminated when its delay is shortened; `returns` waits until the node comes back."""

    def play(self, env: SceneEnvironment) -> None:
        here, there = env.nodes("tiny", 2)
        disruption.cordon(env, [there])
        for each in SETS:
            env.create(_workload(env, each, here))
        all_available = all_of(*(predicates.available(each, 1) for each in SETS))
        env.wait_for("all sets available", all_available)
        self.first = first = {each: _by_index(env.history.view(), each) for each in SETS}

        env.quiet(1.2, real=True)
        env.mark("before the cordon")
        disruption.cordon(env, [here])
        env.quiet(1.5, real=True)
        env.mark("after the cordon")

        disruption.cordon(env, [there], off=True)
        self.refused = [answer for pod in first["drained"].values() if (answer := env.evict(name(pod)))]
        env.settle("drained pods replaced on another node", _moved("drained", first["drained"], there), 60)

        env.fail_node(here)
        before = incarnations.uids(env.history.view(), CLIQUES)
        breached = disruption.breached(CLIQUES, [CLIQUE[each] for each in LOST])
        env.settle("cliques on the lost node breached", breached, 60)
        disruption.delay(env, ["lasts"], "1s")
        env.settle("terminated clique recreated", incarnations.renewed(CLIQUES, [CLIQUE["lasts"]], before), 60)
        env.settle("recreated clique ready on another node", _moved("lasts", first["lasts"], there), 60)
        evicted = [name(pod) for each in EVICTED for pod in first[each].values()]
        env.settled("Kubernetes evicts the pods of the lost node", _terminating(evicted), 40, real=True)  # at its pace
        env.settle("evicted pods replaced on another node", _moved("moves", first["moves"], there), 60)
        env.settle("evicted pods without room replaced", _waiting(CLIQUE["stuck"]), 60)
        env.mark("before the node comes back")

        env.recover_node(here)
        sound = disruption.breached(CLIQUES, [CLIQUE["returns"]], "False")
        env.settle("clique on the returned node not breached", sound, 60)
        disruption.cordon(env, [here], off=True)
        env.wait_for("set available once there is room", predicates.available("stuck", 1))
        env.wait_for("all sets available again", all_available)
        disruption.delay(env, SETS, "1s")  # a countdown that was not ended is over now
        env.quiet(2.5, real=True)
        env.mark("all countdowns over")


@requirement("NODE-001", reaches="evicted pods replaced on another node")
def test_evicted_pods_are_replaced_on_another_node(run: Recorded[NodeThatIsLostAndComesBack]) -> None:
    """The operator MUST replace a Pod that is evicted from a failed node at once, with its index, on another node."""
    _expect_held(run, "moves")
    _expect_incarnations(run, ["moves"])


@requirement("NODE-002", reaches="evicted pods without room replaced")
def test_pods_that_cannot_terminate_are_not_counted(run: Recorded[NodeThatIsLostAndComesBack]) -> None:
    """A terminating Pod on a failed node MUST NOT count as a replica, as scheduled or as ready."""
    _expect_held(run, "stuck")
    run.given("set available once there is room")
    _expect_incarnations(run, ["stuck"])


@requirement(
    "NODE-003",
    reaches=(
        "cliques on the lost node breached",
        "terminated clique recreated",
        "recreated clique ready on another node",
    ),
)
def test_a_clique_on_a_lost_node_is_terminated_after_its_delay(run: Recorded[NodeThatIsLostAndComesBack]) -> None:
    """A PodClique below minAvailable by a node failure MUST report it, and MUST be recreated after terminationDelay.

    On another node, although its former Pods cannot terminate.
    """
    _expect_held(run, "lasts")
    _expect_incarnations(run, ["lasts"], count=2)


@requirement("NODE-004", reaches="clique on the returned node not breached")
def test_pods_of_a_returned_node_are_kept(run: Recorded[NodeThatIsLostAndComesBack]) -> None:
    """When a failed node comes back before the terminationDelay has passed, the operator MUST keep its Pods."""
    run.given("all sets available again")
    now = _by_index(run.at("all countdowns over"), "returns")
    kept = {index: uid(pod) for index, pod in run.scene.first["returns"].items()}
    run.same("pods of the returned node", kept, {index: uid(pod) for index, pod in now.items()})
    _expect_incarnations(run, ["returns"])


@requirement("NODE-005")
def test_a_cordon_has_no_effect_on_pods(run: Recorded[NodeThatIsLostAndComesBack]) -> None:
    """A cordoned node MUST keep its Pods, and cordoning MUST NOT have any other effect on them."""
    run.given("all sets available")
    span = run.between("before the cordon", "after the cordon")
    run.expect("changes of pods after their node was cordoned", [], [str(record) for record in span.records("pods")])
    _same_incarnations(run, run.until("after the cordon"), SETS, 1)


@requirement("NODE-006", reaches="drained pods replaced on another node")
def test_a_node_can_be_drained(run: Recorded[NodeThatIsLostAndComesBack]) -> None:
    """Pods MUST be evictable; the operator MUST replace evicted Pods elsewhere and MUST NOT terminate their gang."""
    run.at("drained pods replaced on another node")
    run.expect("evictions that were refused", [], run.scene.refused)
    _expect_incarnations(run, ["drained"])


@invariants("INV-001", "INV-003", "INV-004", "INV-005")
def test_invariants(run: Recorded[NodeThatIsLostAndComesBack], invariant: str) -> None:
    """What MUST hold at every moment of any history."""
    run.invariant()


def _expect_held(run: Recorded[NodeThatIsLostAndComesBack], each: str) -> None:
    """Expects that the former pods of a set are still terminating on the lost node: else nothing was judged."""
    view = run.at("before the node comes back")
    former = sorted(name(pod) for pod in run.scene.first[each].values())
    held = [pod for pod in former if terminating(view.get("pods", pod) or {})]
    run.expect(f"{each}: pods that still are on the lost node", former, held)


def _expect_incarnations(run: Recorded[NodeThatIsLostAndComesBack], sets: Iterable[str], *, count: int = 1) -> None:
    """Expects how many PodCliques each name has had in the end: one where none was recreated."""
    _same_incarnations(run, run.until("all countdowns over"), sets, count)


def _same_incarnations(run: Recorded[NodeThatIsLostAndComesBack], span: Span, sets: Iterable[str], count: int) -> None:
    found, cliques = incarnations.counts(span, CLIQUES), [CLIQUE[each] for each in sets]
    right = dict.fromkeys(cliques, count)
    run.same("cliques that each name has had", right, {clique: found.get(clique, 0) for clique in cliques})


def _workload(env: SceneEnvironment, each: str, here: str) -> Object:
    workload = env.workload("frontend", setName=each, pods=PODS)
    workload["spec"]["template"]["terminationDelay"] = "1h"
    [clique] = workload["spec"]["template"]["cliques"]
    spec = clique["spec"]["podSpec"]
    spec["tolerations"] = [*spec.get("tolerations", []), SOON if each in EVICTED else NEVER]
    if each == "stuck":
        spec["nodeSelector"] = {**spec.get("nodeSelector", {}), HOSTNAME: here}
    return workload


def _by_index(view: View, each: str) -> dict[str, Mapping[str, Any]]:
    return {label(pod, labels.POD_INDEX): pod for pod in predicates.pods_of(view, CLIQUE[each])}


def _moved(each: str, first: Pods, node: str) -> predicates.Predicate:
    """A set has other pods than at first, with the same indices, all Ready on this node."""
    clique, wanted = CLIQUE[each], sorted(first)
    former = {uid(pod) for pod in first.values()}

    def seen(view: View) -> bool | Unmet:
        own = predicates.pods_of(view, clique)
        if any(uid(pod) in former for pod in own):
            return Unmet(f"{clique} still has its former pods")
        indices = sorted(label(pod, labels.POD_INDEX) for pod in own)
        if indices != wanted:
            return Unmet(f"{clique} has pods with the indices {indices}, not {wanted}")
        late = [name(pod) for pod in own if pods.node(pod) != node or not pods.ready(pod)]
        return not late or Unmet(f"not Ready on {node}: {', '.join(late)}")

    return seen


def _terminating(names: Iterable[str]) -> predicates.Predicate:
    """These pods are being deleted."""
    wanted = list(names)

    def seen(view: View) -> bool:
        return all(terminating(view.get("pods", each) or {}) for each in wanted)

    return seen


def _waiting(clique: str) -> predicates.Predicate:
    """The clique reports pods that wait for room, and none of those that cannot terminate."""
    wanted = {"replicas": PODS, "scheduledReplicas": 0, "readyReplicas": 0}

    def seen(view: View) -> bool | Unmet:
        reported = {field: number(view.get(CLIQUES, clique), "status", field) or 0 for field in wanted}
        if reported != wanted:
            return Unmet(f"status of {clique}: {reported}")
        return pods_are({clique: PODS})(view)

    return seen
