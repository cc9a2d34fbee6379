"""A scene with an update to a version that never becomes Ready. During the update, changes are requested and pods are
lost."""

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
from conformance.tests.coherent.sets import CLIQUES, GROUPS, SETS, TIMEOUT_SECONDS

SCALE_TARGETS = {
    "scaling group of the replica that is updated": (GROUPS, "s-{updated}-p", 5),
    "scaling group of another replica": (GROUPS, "s-{other}-p", 5),
    "standalone clique of the replica that is updated": (CLIQUES, "s-{updated}-f", 5),
    "standalone clique of another replica": (CLIQUES, "s-{other}-f", 5),
    "scaling group out of scope": (GROUPS, "s-{updated}-d", 3),
    "the set": (SETS, "s", 3),
}
"""Changes to replicas that are requested during the update: description → resource, name and replicas. Either replica
of the set may be updated first."""


class NeverReady(Scene):
    """A set with two replicas, f4/2 p4/2 d2/1 (replicas/minAvailable). Pods of the new version of f and p never become
    Ready. During the update, changes to replicas are requested, and three pods are lost: one of the old version, one of
    a new gang, and one of d. Then a third version becomes Ready, and the set is scaled. A second set, `tight`, has f3/2
    and terminationDelay 2s. Two of its pods are replaced by pods that never become Ready, so its update does not end,
    and it has one Ready pod fewer than its minimum."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        groups = {"p": (4, 2), "d": (2, 1)}
        self.workload = sets.set_manifest(env, "s", {"f": (4, 2)}, groups, replicas=2)
        tight_set = sets.set_manifest(env, "tight", {"f": (3, 2)}, delay="2s")
        env.create(self.workload)
        env.create(tight_set)
        env.wait_for("deployed", all_of(sets.is_deployed("s", 2), sets.is_deployed("tight")), TIMEOUT_SECONDS)
        env.quiet(1)
        self.initial_pods = sets.clique_by_uid(sets.pods_of_set(env.history.view(), "s"))
        self.harmless_replies_at_rest = env.dry_run.all(_harmless_requests(env))
        env.mark("change")
        first_generation = sets.change_images(env, self.workload, "f", "pl", "pw", tag="2", hold=True)
        sets.change_images(env, tight_set, "f", tag="2", hold=True)
        # Two pods of f, and two replicas of p with two pods each, which are the minimum of the first anchor.
        first_sub_steps = all_of(sets.has_unready_pods("s", 6, "2"), sets.has_unready_pods("tight", 2, "2"))
        env.wait_for("first sub-step", first_sub_steps, TIMEOUT_SECONDS)
        new_pods = [pod for pod in sets.pods_of_set(env.history.view(), "s") if sets.image_tag(pod) == "2"]
        [self.updated_replica, *_] = sorted(
            {int(clique.split("-")[1]) for clique in sets.clique_by_uid(new_pods).values()}
        )
        self.front_clique, self.unchanged_clique = f"s-{self.updated_replica}-f", f"s-{self.updated_replica}-d-0-dm"
        env.settle("reason reported", _has_reason, 30)
        env.quiet(4, real=True)
        env.mark("stuck")
        self._request_changes(env)
        self._delete_pods(env)
        env.mark("fix")
        self.second_generation = updates.generation_hash(env.history.view().get(SETS, "s"))
        sets.change_images(env, self.workload, "f", "pl", "pw", tag="3")
        env.wait_for("fixed", sets.is_updated("s", self.second_generation), TIMEOUT_SECONDS)
        self.first_generation = first_generation
        env.quiet(1)
        env.mark("at rest")
        [self.scale_reply] = env.dry_run.all([env.dry_run.patch(GROUPS, "s-0-p", {"spec": {"replicas": 5}})])
        if self.scale_reply.accepted:
            env.patch(GROUPS, "s-0-p", {"spec": {"replicas": 5}})
            env.settle("scaled", sets.is_followed("s", "p", 5), 60)
        else:
            env.mark("scaled", str(self.scale_reply))
        env.quiet(5.5, real=True)
        env.mark("end")

    def _request_changes(self, env: SceneEnvironment) -> None:
        """Request changes to replicas, and other changes, as dry runs."""

        def scale(description: str, subresource: str | None = None) -> Request:
            resource, pattern, size = SCALE_TARGETS[description]
            target = pattern.format(updated=self.updated_replica, other=1 - self.updated_replica)
            return env.dry_run.patch(resource, target, {"spec": {"replicas": size}}, subresource)

        requests = [*map(scale, SCALE_TARGETS), *(scale(description, "scale") for description in SCALE_TARGETS)]
        replies = env.dry_run.all([*requests, *_harmless_requests(env)])
        count = len(SCALE_TARGETS)
        self.scale_replies = dict(zip(SCALE_TARGETS, replies[:count], strict=True))
        self.subresource_replies = dict(zip(SCALE_TARGETS, replies[count : 2 * count], strict=True))
        self.harmless_replies = replies[2 * count :]

    def _delete_pods(self, env: SceneEnvironment) -> None:
        """Delete a pod of an old gang, a pod of the new gang, and a pod of a component that does not change."""
        env.wait_for("pods of both versions", lambda view: all(_pods_by_tag(view, self.front_clique).values()), 30)
        view = env.history.view()
        self.old_pod, self.new_pod = (members[0] for members in _pods_by_tag(view, self.front_clique).values())
        [self.other_pod] = predicates.pods_of(view, self.unchanged_clique)
        for pod in (self.old_pod, self.new_pod, self.other_pod):
            env.delete("pods", name(pod))
        env.settle("lost pod of a new gang recreated", _is_recreated(self.new_pod, self.front_clique, 2), 30)
        env.settle(
            "lost pod of another component recreated", _is_recreated(self.other_pod, self.unchanged_clique, 1), 30
        )
        env.quiet(2)
        env.mark("pods lost")


def _harmless_requests(env: SceneEnvironment) -> list[Request]:
    """Return requests for changes that do not affect replicas: an annotation, and another terminationDelay."""
    annotation_patch = {"metadata": {"annotations": {"example.com/look": "1"}}}
    delay_patch = {"spec": {"template": {"terminationDelay": "3s"}}}
    return [env.dry_run.patch(SETS, "s", patch) for patch in (annotation_patch, delay_patch)]


def _pods_by_tag(view: View, clique: str) -> dict[str, list[Mapping[str, Any]]]:
    """Return version → pods of a clique, for the first and the second version."""
    members = predicates.pods_of(view, clique)
    return {version: [pod for pod in members if sets.image_tag(pod) == version] for version in ("1", "2")}


def _has_reason(view: View) -> bool | Unmet:
    return bool(shapes.stalls(view.get(SETS, "s"))) or Unmet("the progress of the set gives no reason")


@predicate
def _is_recreated(view: View, lost_pod: object, clique: str, size: int) -> bool | Unmet:
    """The clique has `size` pods in the lost pod's gang, and the lost pod is not one of them."""
    members = predicates.pods_of(view, clique)
    gang_pods = [pod for pod in members if label(pod, labels.GANG) == label(lost_pod, labels.GANG)]
    has_replacement = len(gang_pods) == size and uid(lost_pod) not in {uid(pod) for pod in members}
    return has_replacement or Unmet(
        f"{len(gang_pods)} of {size} pods of {clique} are of gang {label(lost_pod, labels.GANG)}"
    )
