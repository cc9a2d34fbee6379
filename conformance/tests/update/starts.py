"""A scene about the start of updates: changes that start an update, changes that do not, and OnDelete."""

from __future__ import annotations

from conformance.grove import updates
from conformance.grove.fields import number, text, uid
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.suite.scenes.api import Object
from conformance.testing import disruption, predicates
from conformance.testing.observed import all_of
from conformance.testing.scaled import pods_are
from conformance.testing.scene import Scene, SceneEnvironment
from conformance.tests.update import changes
from conformance.tests.update.changes import CLIQUES, GROUPS, SETS

STARTING = ("labels", "annotations", "priority", "image")
"""The names of sets. Each set is named after the part of its template that is changed."""
WAITING = ("o", "p")
"""The names of the sets with OnDelete. The first set has two replicas."""
MEMBERS = ("a", "q", "g-0-b", "g-0-c", "h-0-d")
CLIQUES_OF_O = [f"o-{index}-{member}" for index in (0, 1) for member in MEMBERS]
PARTS_OF_O = [
    *((CLIQUES, f"o-{index}-{clique}") for index in (0, 1) for clique in "aq"),
    *((GROUPS, f"o-{index}-{group}") for index in (0, 1) for group in "gh"),
]
"""Resource and name of each standalone clique and scaling group of the set with two replicas."""
CHANGED_PARTS_OF_O = [(resource, part) for resource, part in PARTS_OF_O if part.endswith(("-a", "-g"))]
"""The standalone cliques and groups that the change under OnDelete affects. The statuses of the other cliques and
groups are covered by UPD-056."""


class ChangesOfAllKinds(Scene):
    """Several sets with ample capacity, each with a different kind of change. Two of the sets have the strategy
    OnDelete. After the change, the scene deletes pods of one of these two sets. Then both sets are switched to
    RollingRecreate and changed again."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        starting = {set_name: env.workload("frontend", setName=set_name, pods=1) for set_name in STARTING}
        other = env.workload("kept", setName="other", aloneMinAvailable=1, groupsMinAvailable=1)
        waiting = {set_name: _on_delete(env, set_name) for set_name in WAITING}
        for workload in (*starting.values(), other, *waiting.values()):
            env.create(workload)
        replicas = {set_name: 2 if set_name == "o" else 1 for set_name in (*STARTING, "other", *waiting)}
        env.wait_for("sets available", all_of(*(predicates.is_available(e, n) for e, n in replicas.items())), 150)
        env.wait_for("OnDelete: all pods Ready", pods_are({"o-0-a": 3, "o-1-a": 3}, ready=True))
        env.quiet(0.7)
        env.mark("changes")
        before = {set_name: updates.generation_hash(env.history.view().get(SETS, set_name)) for set_name in replicas}
        _change(env, starting)
        _change_what_pods_do_not_depend_on(env, other)
        for workload in waiting.values():
            changes.set_image(workload, "a", "c", tag="2")
            changes.apply(env, workload)
        for set_name in STARTING:
            env.settle(f"{set_name}: update ended", changes.has_ended(set_name, before[set_name]), 60)
        ended = changes.have_parts_ended("o", CHANGED_PARTS_OF_O)
        env.settle("OnDelete: end reported", all_of(changes.has_started("o", before["o"]), ended), 60)
        env.settle("OnDelete: templates in place", lambda view: not misplaced(view))
        env.quiet(1.5, real=True)
        env.mark("changes at rest")
        self._delete_pods(env)
        self._back_to_rolling(env, waiting)

    def _delete_pods(self, env: SceneEnvironment) -> None:
        """Delete a pod of a standalone clique and a pod of a member, and then all other old pods of the clique. Finally
        delete all pods of another member."""
        complete = pods_are({"o-0-a": 3, "o-1-g-0-c": 2, "o-0-g-0-c": 2}, ready=True)
        env.wait_for("OnDelete: cliques have their pods", complete)
        [lost, *remaining] = disruption.pods_by_index(env, "o-0-a")
        member = disruption.pods_by_index(env, "o-1-g-0-c")[0]
        self.lost = {uid(lost), uid(member)}
        for pod in (lost, member):
            env.delete("pods", pod["metadata"]["name"])
        deletions = all_of(changes.are_deleted("o-0-a", [uid(lost)]), changes.are_deleted("o-1-g-0-c", [uid(member)]))
        sizes = {"o-0-a": 3, "o-1-g-0-c": 2}
        env.wait_for("OnDelete: deleted pods replaced", all_of(deletions, pods_are(sizes, ready=True)))
        env.wait_for("OnDelete: replacements counted as Ready", changes.report_ready(sizes))
        env.settle("OnDelete: one pod counted as updated", _updated_pods("o-0-a", 1), 60)
        env.quiet(1, real=True)
        env.mark("OnDelete: one pod replaced")
        for pod in remaining:
            env.delete("pods", pod["metadata"]["name"])
        for pod in disruption.pods_by_index(env, "o-0-g-0-c"):
            env.delete("pods", pod["metadata"]["name"])
        tags = {"o-0-a": ["2"] * 3, "o-0-g-0-c": ["2"] * 2}
        env.wait_for("OnDelete: all pods of the clique replaced", _tags(tags))
        env.settle("OnDelete: all pods counted as updated", _updated_pods("o-0-a", 3), 60)
        env.settle("OnDelete: clique and set counted as updated", _replica_updated, 60)

    def _back_to_rolling(self, env: SceneEnvironment, waiting: dict[str, Object]) -> None:
        """Switch the strategy of both sets, and change a clique that was not changed before."""
        env.mark("switch to RollingRecreate")
        for set_name in waiting:
            changes.set_strategy(env, set_name, changes.ROLLING)
        env.settled("the switch has been observed", all_of(*map(_switched, waiting)))
        env.quiet(1.5, real=True)
        env.mark("RollingRecreate: at rest")
        before = changes.change_image(env, waiting["o"], "q", tag="3")
        other = changes.change_image(env, waiting["p"], "q", tag="3")
        env.settle("RollingRecreate: update ended", changes.has_ended("o", before), 60)
        env.settle("RollingRecreate: update of the other set ended", changes.has_ended("p", other), 60)
        env.quiet(0.7)
        env.mark("end")


def misplaced(view: View) -> list[str]:
    """Return the cliques under OnDelete that have the wrong template."""
    wrong = []
    for clique in CLIQUES_OF_O:
        current, letter = view.get(CLIQUES, clique) or {}, clique.rpartition("-")[2]
        tag = text(current, "spec", "podSpec", "containers", 0, "image").rpartition(":")[2]
        if tag != ("2" if letter in "ac" else "1"):
            wrong.append(f"{clique} has template {tag}")
    return wrong


def _on_delete(env: SceneEnvironment, set_name: str) -> Object:
    replicas = 2 if set_name == "o" else 1
    workload = env.workload("rolling", setName=set_name, replicas=replicas, alone=3, groups=1, groupsMinAvailable=1)
    workload["spec"]["updateStrategy"] = {"type": changes.ON_DELETE}
    return workload


def _change(env: SceneEnvironment, starting: dict[str, Object]) -> None:
    changes.template(starting["labels"], "web")["labels"] = {"shade": "green"}
    changes.template(starting["annotations"], "web")["annotations"] = {"example.com/shade": "green"}
    changes.set_image(starting["image"], "web", tag="2")
    for set_name in ("labels", "annotations", "image"):
        changes.apply(env, starting[set_name])
    env.patch(SETS, "priority", {"spec": {"template": {"priorityClassName": "system-cluster-critical"}}})


def _change_what_pods_do_not_depend_on(env: SceneEnvironment, other: Object) -> None:
    cliques = other["spec"]["template"]["cliques"]
    cliques[0]["spec"]["replicas"] = 3
    changed = {
        "terminationDelay": "3h0m0s",
        "headlessServiceConfig": {"publishNotReadyAddresses": False},
        "cliques": cliques,
    }
    env.patch(SETS, "other", {"spec": {"template": changed}})
    changes.set_strategy(env, "other", changes.ON_DELETE)


# -- conditions --------------------------------------------------------------------------------------------------------


@predicate
def _updated_pods(view: View, clique: str, count: int) -> bool | Unmet:
    reported = number(view.get(CLIQUES, clique), "status", "updatedReplicas")
    return reported == count or Unmet(f"updatedReplicas of {clique} is {reported}")


@predicate
def _tags(view: View, tags: dict[str, list[str]]) -> bool | Unmet:
    current = {clique: changes.image_tags(view, clique) for clique in tags}
    return current == tags or Unmet(f"templates: {current}, wanted: {tags}")


def _replica_updated(view: View) -> bool | Unmet:
    clique = view.get(CLIQUES, "o-0-a")
    pcs, count = view.get(SETS, "o"), number(view.get(SETS, "o"), "status", "updatedReplicas")
    if updates.reached_hashes(clique) != updates.target_hashes(clique):
        return Unmet("the clique does not have the hashes that its progress names")
    return (count == 1 and updates.has_ended(pcs)) or Unmet(f"updatedReplicas of the set is {count}, not 1")


@predicate
def _switched(view: View, set_name: str) -> bool | Unmet:
    """The operator has observed the current spec of a set, whose strategy is RollingRecreate."""
    pcs = view.get(SETS, set_name)
    rolling = text(pcs, "spec", "updateStrategy", "type") == changes.ROLLING
    observed = number(pcs, "status", "observedGeneration")
    return (rolling and observed == number(pcs, "metadata", "generation")) or Unmet(f"{set_name} is not observed")
