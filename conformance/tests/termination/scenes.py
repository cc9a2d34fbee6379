"""A scene with sets of several shapes that lose pods while the only node is cordoned.

The terminationDelay is an hour, so nothing is terminated before the scene shortens it. It is an hour again wherever
terminated replicas recover: an implementation that wrongly starts a countdown while new pods start (TERM-004) would
otherwise recover only on a machine where pods are Ready within the delay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from conformance.grove import pods
from conformance.grove.expected import expected
from conformance.grove.fields import name, terminating, text
from conformance.history.query import Predicate, Unmet, predicate
from conformance.history.view import View
from conformance.testing import disruption, incarnations, predicates
from conformance.testing.disruption import CLIQUES, GROUPS
from conformance.testing.observed import all_of
from conformance.testing.scaled import pods_are, scale
from conformance.testing.scene import Scene, SceneEnvironment

LONG_DELAY, SHORT_DELAY, DELAY_SECONDS, PAIR_REPLICAS = "1h0m0s", "1s", 6, 2
LOOSE_SIZES: Mapping[str, object] = {
    "aloneMinAvailable": 1,
    "groupsMinAvailable": 1,
    "membersMinAvailable": 1,
    "delay": LONG_DELAY,
}
ONE_REPLICA: Mapping[str, object] = {
    "groups": 1,
    "groupsMinAvailable": 1,
    "members": 1,
    "membersMinAvailable": 1,
    "delay": LONG_DELAY,
}
SHAPES: Mapping[str, Mapping[str, object]] = {
    "pair": {"replicas": PAIR_REPLICAS, **ONE_REPLICA},
    "strict": {"delay": LONG_DELAY},
    "loose": LOOSE_SIZES,
    "torn": LOOSE_SIZES,
    "grown": ONE_REPLICA,
    "never": {"delay": SHORT_DELAY},
}
LAST_PODS = tuple(f"{group}-{clique}" for group in ("torn-0-g-2", "grown-0-g-1") for clique in "bc")
"""Cliques of replicas that never run, because they are created while the node is cordoned."""
PAIR_LOST = tuple(f"pair-1-{rest}" for rest in ("a", "g-0-b", "g-0-c"))
STRICT_LOST = ("strict-0-a", *(f"strict-0-g-{j}-{clique}" for j in range(3) for clique in "bc"))
TORN_LOST = ("torn-0-a", *(f"torn-0-g-{j}-{clique}" for j in range(3) for clique in "bc"))
LOOSE_LOST = tuple(f"loose-0-g-0-{clique}" for clique in "bc")
"""The cliques of each set that are recreated."""
GROWN_LOST = tuple(f"grown-0-{rest}" for rest in ("a", "g-0-b", "g-0-c"))
"""The cliques that are recreated last, because of a pod that is running but not Ready."""
TERMINATED_GROUP, BREACHED_GROUPS = "pair-1-g", ("strict-0-g", "torn-0-g")
"""The scaling group in the set replica that is terminated because of its standalone clique, and the scaling groups that
are themselves breached."""
TERMINATED_SETS = ("pair", "strict", "loose", "torn")
"""The sets that have terminated replicas when the node is uncordoned."""
BREACHED_REPLICAS = tuple(
    f"{group}-{j}" for group, lost in (("strict-0-g", (0, 2)), ("torn-0-g", (0, 1))) for j in lost
)
"""The breached replicas of BREACHED_GROUPS."""
RECREATED: Mapping[str, int] = {
    **{name: {"a": 2, "b": 1, "c": 2}[name[-1]] for name in (*STRICT_LOST, *TORN_LOST, *LOOSE_LOST)},
    **dict(zip(PAIR_LOST, (2, 1, 1), strict=True)),
}
"""Recreated clique → number of pods according to its template. One of the cliques, strict-0-g-1-b, was scaled manually
before."""


class LostGangs(Scene):
    """One node, which is cordoned when all sets are available. Then pods are deleted. In `pair`, one of two set
    replicas falls below its minimum. In `strict`, the only set replica falls below its minimum. In `loose`, only one
    replica of a scaling group falls below its minimum. In `torn`, first one and then all replicas of a scaling group
    fall below their minimums. `grown` loses no pod, and gets a replica of its group that never runs. `never` is created
    while the node is cordoned. Later the node is uncordoned, and more pods crash or are no longer reported by their
    kubelet."""

    def play(self, env: SceneEnvironment) -> None:
        nodes = env.nodes("tiny", 1)
        shapes = {set_name: env.workload("kept", setName=set_name, **values) for set_name, values in SHAPES.items()}
        never = shapes.pop("never")
        cliques = [clique for workload in shapes.values() for clique in expected(workload).cliques.values()]
        self.cliques = [clique.name for clique in cliques]
        self.clique_names = [*self.cliques, *(name for name in (*STRICT_LOST, *LAST_PODS) if name not in self.cliques)]
        self.never_ran = [*expected(never).cliques, *(name for name in LAST_PODS if name.startswith("grown-"))]
        self.clique_names += expected(never).cliques
        for workload in shapes.values():
            env.create(workload)
        env.wait_for("sets available", are_available(shapes))
        env.wait_for("pods Ready", pods_are(predicates.sizes(cliques), ready=True))
        scale(env, GROUPS, "strict-0-g", 3)
        scale(env, CLIQUES, "strict-0-g-1-b", 2)
        sizes = {"strict-0-g-1-b": 2, "strict-0-g-2-b": 1, "strict-0-g-2-c": 2}
        env.wait_for("scaled group and clique have their pods", pods_are(sizes, ready=True))
        # Delete a pod of a scaled gang while it can still be replaced.
        lost = disruption.pods_by_index(env, "loose-0-g-1-c")[0]
        env.delete("pods", text(lost, "metadata", "name"))
        replaced = pods_are({"loose-0-g-1-c": 2}, ready=True, excluded_uid=text(lost, "metadata", "uid"))
        env.wait_for("deleted pod replaced", replaced)
        env.mark("no room for pods")
        disruption.cordon(env, nodes)
        env.create(never)
        self.began_at = env.history.now()
        self._lose_pods(env)
        env.mark("delay shortened")
        self._terminate(env, shapes)

        disruption.set_termination_delay(env, TERMINATED_SETS, LONG_DELAY)
        disruption.cordon(env, nodes, undo=True)
        env.wait_for("sets available again", are_available(shapes))
        env.wait_for("set that never ran available", are_available(["never"]))
        groups = _groups_of_sets(env, [*shapes, "never"])
        env.settle("terminations no longer in progress", disruption.are_not_terminating(groups), 60)
        env.settle("recreated cliques have their pods", pods_are(RECREATED), 60)
        env.quiet(1)
        env.mark("recovered")
        self._breach_again(env, nodes)
        self._lose_more_pods(env)

    def _lose_pods(self, env: SceneEnvironment) -> None:
        """Delete pods, and wait until the cliques and groups report the loss."""
        scale(env, GROUPS, "torn-0-g", 3)
        scale(env, GROUPS, "grown-0-g", 2)
        disruption.delete_pods(env, "pair-1-a", 1)
        disruption.delete_pods(env, "strict-0-g-0-c", 1)
        disruption.delete_pods(env, "strict-0-g-2-c", 1)
        disruption.delete_pods(env, "loose-0-a", 1)
        disruption.delete_pods(env, "loose-0-g-0-c", 2)
        disruption.delete_pods(env, "torn-0-g-1-c", 2)
        cliques = ["pair-1-a", "strict-0-g-0-c", "strict-0-g-2-c", "loose-0-g-0-c", "torn-0-g-1-c", *LAST_PODS]
        env.wait_for("cliques breached", disruption.are_breached(CLIQUES, cliques))
        env.wait_for("group that lost two of three replicas breached", disruption.are_breached(GROUPS, ["strict-0-g"]))
        not_breached = disruption.are_breached(GROUPS, ["pair-1-g", "loose-0-g", "torn-0-g"], "False")
        env.wait_for("groups with enough other replicas not breached", not_breached)
        env.settle("clique at its minimum not breached", disruption.are_breached(CLIQUES, ["loose-0-a"], "False"), 60)
        # Wait two seconds, so that the countdowns of the replica and of its group do not run in parallel.
        env.quiet(2, real=True)
        disruption.delete_pods(env, "torn-0-g-0-c", 2)
        env.wait_for("group without replicas breached", disruption.are_breached(GROUPS, ["torn-0-g"]))

    def _terminate(self, env: SceneEnvironment, shapes: Iterable[str]) -> None:
        """Shorten the delay, and shorten it again after the terminations. No further termination may happen while the
        node is cordoned."""
        before = incarnations.uids(env.history.view(), CLIQUES)
        disruption.set_termination_delay(env, shapes, f"{DELAY_SECONDS}s")
        recreated = {
            "set replica of a breached clique recreated": PAIR_LOST,
            "breached replicas of breached groups recreated": [f"{r}-{c}" for r in BREACHED_REPLICAS for c in "bc"],
            "replica of a group recreated": LOOSE_LOST,
            "set replicas of breached groups recreated": [*STRICT_LOST, *TORN_LOST],
        }
        for step, names in recreated.items():
            env.settle(step, incarnations.are_recreated(CLIQUES, names, before), 120)
        env.settle("termination in progress", disruption.are_terminating([TERMINATED_GROUP]), 60)
        env.settle("terminations of breached groups in progress", disruption.are_terminating(BREACHED_GROUPS), 60)
        disruption.set_termination_delay(env, shapes, SHORT_DELAY)
        env.quiet(6, real=True)
        env.mark("nothing moves")

    def _breach_again(self, env: SceneEnvironment, nodes: Iterable[str]) -> None:
        """Delete one more pod of a replica that has recovered, and uncordon the node when the replica has been
        recreated."""
        env.settle("no pod waits for a node", _are_all_bound, 60)
        before = incarnations.uids(env.history.view(), CLIQUES)
        disruption.cordon(env, nodes)
        disruption.set_termination_delay(env, ["pair"], SHORT_DELAY)
        disruption.delete_pods(env, "pair-1-a", 1)
        env.settle("recovered replica recreated", incarnations.are_recreated(CLIQUES, PAIR_LOST, before), 120)
        disruption.set_termination_delay(env, ["pair"], LONG_DELAY)
        disruption.cordon(env, nodes, undo=True)

    def _lose_more_pods(self, env: SceneEnvironment) -> None:
        """Lose pods in three more ways, and change pods in three ways that do not count as a loss."""
        had = disruption.incarnation_counts(env.history, self.clique_names)
        # These states are set one after the other. With a short delay, an operator that counts starting pods as lost
        # could terminate the replica in between.
        disruption.set_pod_states(env, "loose-0-a", disruption.STARTING, 2)
        disruption.set_pod_states(env, "loose-0-g-0-c", disruption.STARTING, 2)
        disruption.set_termination_delay(env, ("strict", "loose", "torn"), SHORT_DELAY)
        disruption.set_pod_states(env, "grown-0-a", disruption.STALLED, 1)
        disruption.set_pod_states(env, "never-0-a", disruption.CRASHED, 1)
        disruption.set_pod_states(env, "strict-0-a", disruption.UNREACHABLE, 1)
        disruption.set_pod_states(env, "torn-0-a", disruption.RECOVERED, 2)
        unready = {name: had[name] + 1 for name in GROWN_LOST}
        silent = {name: had[name] + 1 for name in STRICT_LOST}
        crashed = {name: had[name] + 1 for name in self.clique_names if name.startswith("never-")}
        env.settle("replica with an unready pod recreated", _have_had_incarnations(env, unready), 120)
        env.settle("replica with a silent pod recreated", _have_had_incarnations(env, silent), 120)
        env.settle("replica with a crashed pod recreated", _have_had_incarnations(env, crashed), 120)
        # The pods of the other sets stay as they are.
        states = {"grown": "an unready", "strict": "a silent", "never": "a crashed"}
        steps = {set_name: f"replica with {state} pod recreated" for set_name, state in states.items()}
        recreated = ["pair", *(set_name for set_name, step in steps.items() if not env.steps[step].unmet)]
        env.quiet(3, real=True)
        disruption.set_termination_delay(env, recreated, LONG_DELAY)
        env.wait_for("sets available once more", are_available(recreated))
        groups = _groups_of_sets(env, recreated)
        env.settle("later terminations no longer in progress", disruption.are_not_terminating(groups), 60)


def are_available(sets: Iterable[str]) -> Predicate:
    """Each of these sets is available."""
    return all_of(*(predicates.is_available(set_name, PAIR_REPLICAS if set_name == "pair" else 1) for set_name in sets))


def _groups_of_sets(env: SceneEnvironment, sets: Iterable[str]) -> list[str]:
    """Return the scaling groups of these sets."""
    prefixes = tuple(f"{set_name}-" for set_name in sets)
    return [group for group in env.history.view().names(GROUPS) if group.startswith(prefixes)]


def _are_all_bound(view: View) -> bool | Unmet:
    """No pod waits for a node."""
    waiting = [name(pod) for pod in view.list("pods") if not (pods.is_bound(pod) or terminating(pod))]
    return not waiting or Unmet(f"not bound: {', '.join(waiting)}")


@predicate
def _have_had_incarnations(view: View, env: SceneEnvironment, counts: Mapping[str, int]) -> bool:
    """Each name has had at least this number of cliques. TERM-004 judges whether a clique is terminated again."""
    had = disruption.incarnation_counts(env.history, counts)
    return all(had[clique] >= count for clique, count in counts.items())
