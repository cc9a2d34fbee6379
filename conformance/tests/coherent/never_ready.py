"""The scene of a version that never becomes Ready, and of what is tried meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.grove import labels, updates
from conformance.grove.coherent import shapes
from conformance.grove.fields import label, name, uid
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.suite.scenes.dry_run import Request
from conformance.testing import predicates
from conformance.testing.observed import all_of
from conformance.testing.scene import Scene, SceneEnvironment
from conformance.tests.coherent import sets
from conformance.tests.coherent.sets import CLIQUES, GROUPS, SECONDS, SETS

SCALED = {
    "scaling group of the replica that is updated": (GROUPS, "s-{updated}-p", 5),
    "scaling group of another replica": (GROUPS, "s-{other}-p", 5),
    "standalone clique of the replica that is updated": (CLIQUES, "s-{updated}-f", 5),
    "standalone clique of another replica": (CLIQUES, "s-{other}-f", 5),
    "scaling group out of scope": (GROUPS, "s-{updated}-d", 3),
    "the set": (SETS, "s", 3),
}
"""Changes of replicas during the update: resource, name, replicas. Either replica of the set may be updated first."""


class NeverReady(Scene):
    """A set with two replicas, f4/2 p4/2 d2/1. Pods of the new version of f and p never become Ready. Meanwhile one
    tries to scale, and pods are lost: one of the old version, one of a new gang, one of d. Then a third version is
    fine, and the set is scaled. Beside it `tight` with f3/2 and terminationDelay 2s, two of whose pods are replaced by
    such that are never Ready: the update runs on, and one Ready pod is less than the minimum."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        groups = {"p": (4, 2), "d": (2, 1)}
        self.workload = sets.coherent(env, "s", {"f": (4, 2)}, groups, replicas=2)
        tight = sets.coherent(env, "tight", {"f": (3, 2)}, delay="2s")
        env.create(self.workload)
        env.create(tight)
        env.wait_for("deployed", all_of(sets.deployed("s", 2), sets.deployed("tight")), SECONDS)
        env.quiet(1)
        self.first = sets.uids(sets.of_set(env.history.view(), "s"))
        self.harmless_at_rest = env.dry_run.all(_harmless(env))
        env.mark("change")
        before = sets.change(env, self.workload, "f", "pl", "pw", tag="2", hold=True)
        sets.change(env, tight, "f", tag="2", hold=True)
        # Two pods of f, and two replicas of p with two pods each: the least of the first anchor.
        env.wait_for("first sub-step", all_of(sets.held("s", 6, "2"), sets.held("tight", 2, "2")), SECONDS)
        new = [pod for pod in sets.of_set(env.history.view(), "s") if sets.tag(pod) == "2"]
        [self.turn, *_] = sorted({int(clique.split("-")[1]) for clique in sets.uids(new).values()})
        self.front, self.out_of_scope = f"s-{self.turn}-f", f"s-{self.turn}-d-0-dm"
        env.settle("reason reported", _reason, 30)
        env.quiet(4, real=True)
        env.mark("stuck")
        self._try(env)
        self._lose(env)
        env.mark("fix")
        self.middle = updates.generation(env.history.view().get(SETS, "s"))
        sets.change(env, self.workload, "f", "pl", "pw", tag="3")
        env.wait_for("fixed", sets.updated("s", self.middle), SECONDS)
        self.before = before
        env.quiet(1)
        env.mark("at rest")
        [self.allowed] = env.dry_run.all([env.dry_run.patch(GROUPS, "s-0-p", {"spec": {"replicas": 5}})])
        if self.allowed.accepted:
            env.patch(GROUPS, "s-0-p", {"spec": {"replicas": 5}})
            env.settle("scaled", sets.followed("s", "p", 5), 60)
        else:
            env.mark("scaled", str(self.allowed))
        env.quiet(5.5, real=True)
        env.mark("end")

    def _try(self, env: SceneEnvironment) -> None:
        """Asks for changes of replicas, and for others, without making them."""

        def scale(each: str, subresource: str | None = None) -> Request:
            resource, pattern, size = SCALED[each]
            target = pattern.format(updated=self.turn, other=1 - self.turn)
            return env.dry_run.patch(resource, target, {"spec": {"replicas": size}}, subresource)

        asked = [*map(scale, SCALED), *(scale(each, "scale") for each in SCALED)]
        replies = env.dry_run.all([*asked, *_harmless(env)])
        count = len(SCALED)
        self.refused = dict(zip(SCALED, replies[:count], strict=True))
        self.refused_scale = dict(zip(SCALED, replies[count : 2 * count], strict=True))
        self.harmless = replies[2 * count :]

    def _lose(self, env: SceneEnvironment) -> None:
        """Deletes a pod of an old gang, one of the new gang, and one of a component that does not change."""
        env.wait_for("pods of both versions", lambda view: all(_by_tag(view, self.front).values()), 30)
        view = env.history.view()
        self.old, self.new = (found[0] for found in _by_tag(view, self.front).values())
        [self.other] = predicates.pods_of(view, self.out_of_scope)
        for pod in (self.old, self.new, self.other):
            env.delete("pods", name(pod))
        env.settle("lost pod of a new gang recreated", _again(self.new, self.front, 2), 30)
        env.settle("lost pod of another component recreated", _again(self.other, self.out_of_scope, 1), 30)
        env.quiet(2)
        env.mark("pods lost")


def _harmless(env: SceneEnvironment) -> list[Request]:
    """Return changes that leave replicas as they are: an annotation, and another terminationDelay."""
    note = {"metadata": {"annotations": {"example.com/look": "1"}}}
    delay = {"spec": {"template": {"terminationDelay": "3s"}}}
    return [env.dry_run.patch(SETS, "s", patch) for patch in (note, delay)]


def _by_tag(view: View, clique: str) -> dict[str, list[Mapping[str, Any]]]:
    """The pods of a clique of the first and the second version."""
    return {each: [pod for pod in predicates.pods_of(view, clique) if sets.tag(pod) == each] for each in ("1", "2")}


def _reason(view: View) -> bool | Unmet:
    return bool(shapes.stalls(view.get(SETS, "s"))) or Unmet("the progress of the set gives no reason")


@predicate
def _again(view: View, lost: object, clique: str, size: int) -> bool | Unmet:
    """The clique has so many pods of the lost one's gang and image, without that one."""
    found = predicates.pods_of(view, clique)
    same = [pod for pod in found if label(pod, labels.GANG) == label(lost, labels.GANG)]
    done = len(same) == size and uid(lost) not in {uid(pod) for pod in found}
    return done or Unmet(f"{len(same)} of {size} pods of {clique} are of gang {label(lost, labels.GANG)}")
