"""Tests that sets, scaling groups and cliques are scaled out and in without changes to other objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from conformance.grove import labels
from conformance.grove.fields import items, label, name, number, text, uid
from conformance.history.query import Predicate
from conformance.history.view import View
from conformance.suite.scenes.api import Object
from conformance.testing import disruption, incarnations, predicates
from conformance.testing.blocked_deletion import block_deletion
from conformance.testing.comparison import value_or_absent
from conformance.testing.composition import cliques_of, gang_of, none_in_gangs
from conformance.testing.disruption import CLIQUES, GANGS, GROUPS, SETS
from conformance.testing.observed import all_of, are_absent, are_present
from conformance.testing.scaled import pods_are, scale
from conformance.testing.scene import Exclusive, Recorded, Scene, SceneEnvironment, invariants, requirement

RESOURCES = ("pods", CLIQUES, GROUPS, GANGS, "services")
LAST_OF_FIRST = [f"s-0-g-{j}-{clique}" for j in (1, 2, 3) for clique in "bc"]
"""The cliques that are deleted when s-0-g is scaled in to one replica."""
MISSING_REPLICA, LAST_OF_SECOND = ([f"s-1-g-{j}-{clique}" for clique in "bc"] for j in (1, 2))
"""The cliques of s-1-g that are already terminating when s-1-g is scaled in to one replica, and the cliques that this
scale-in deletes."""

Uids = dict[tuple[str, str], str]
"""Resource and name → UID."""


class ScaledAtEveryLevel(Scene):
    """One node with room for all pods. A set with a clique (a) and a scaling group (g) of two cliques (b, c) is scaled
    out at every level. The groups of its first two replicas are scaled in while no operator is running. Finally the set
    is scaled to one replica, to zero, and out again. Nothing within the third replica of the set is scaled."""

    exclusive = Exclusive.ROLES

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        workload = env.workload("kept", setName="s", aloneMinAvailable=1, groupsMinAvailable=1, membersMinAvailable=1)
        env.create(workload)
        env.wait_for("set available", predicates.is_available("s", 1))
        env.mark("before the scale-out")
        self._scale_out(env, workload)
        self._scale_groups_in(env)
        self._scale_set_in(env)

    def _scale_out(self, env: SceneEnvironment, workload: Object) -> None:
        template = workload["spec"]["template"]["cliques"]
        template[0]["spec"]["replicas"] = 3
        env.patch(SETS, "s", {"spec": {"template": {"cliques": template}}})
        scale(env, CLIQUES, "s-0-a", 4)
        scale(env, CLIQUES, "s-0-g-0-c", 3)
        scale(env, GROUPS, "s-0-g", 4)
        scale(env, SETS, "s", 3)
        env.wait_for("new replicas have their groups", are_present(GROUPS, ["s-1-g", "s-2-g"]))
        scale(env, GROUPS, "s-1-g", 3)
        env.settle("scaled clique has its pods", pods_are({"s-0-a": 4}, ready=True), timeout=60)
        one_replica = {"s-0-g-0-c": 3, "s-0-g-1-c": 2}
        env.settle("clique of one group replica has its pods", pods_are(one_replica, ready=True), timeout=60)
        group = {f"s-0-g-{j}-{clique}": size for j in range(4) for clique, size in (("b", 1), ("c", 2 + (j == 0)))}
        env.settle("scaled group has its pods", pods_are(group, ready=True), timeout=60)
        new = {f"s-{i}-g-{j}-{clique}": size for i in (1, 2) for j in (0, 1) for clique, size in (("b", 1), ("c", 2))}
        env.wait_for("new replicas have their pods", pods_are(new, ready=True))
        env.wait_for("new replicas available", predicates.is_available("s", 3))
        env.settle("new cliques have the template's size", pods_are({"s-1-a": 3, "s-2-a": 3}), timeout=60)
        env.quiet(1)
        env.mark("scaled out")

    def _scale_groups_in(self, env: SceneEnvironment) -> None:
        """Scale in both groups. In s-0-g, only the first replica is not ready. In s-1-g, the middle replica is
        terminating."""
        disruption.set_pod_states(env, "s-0-g-0-b", disruption.STARTING, 1)
        with block_deletion(env, CLIQUES, MISSING_REPLICA):
            self._with_a_terminating_replica(env)
        env.wait_for("terminating replica gone", are_absent(CLIQUES, MISSING_REPLICA))
        env.settle(
            "pods of both replicas gone", pods_are(dict.fromkeys((*MISSING_REPLICA, *LAST_OF_SECOND), 0)), timeout=60
        )
        # Later tests compare the objects that stay, which must not include the gangs of deleted replicas.
        env.settled("their gangs are gone", none_in_gangs([*LAST_OF_FIRST, *MISSING_REPLICA, *LAST_OF_SECOND]))
        env.quiet(1.5)
        env.mark("groups scaled in")

    def _with_a_terminating_replica(self, env: SceneEnvironment) -> None:
        for clique in MISSING_REPLICA:
            env.delete(CLIQUES, clique)
        env.mark("before the scale-in")
        rests = (("a", 3), *((f"g-{j}-{clique}", size) for j in (0, 1) for clique, size in (("b", 1), ("c", 2))))
        env.wait_for("third replica ready", pods_are({f"s-2-{rest}": size for rest, size in rests}, ready=True))
        env.quiet(1)
        env.mark("third replica at rest")
        env.roles.kill("operator")
        scale(env, GROUPS, "s-0-g", 1)
        scale(env, GROUPS, "s-1-g", 1)
        env.roles.restart("operator")
        env.settle("last replicas of the group deleted", are_absent(CLIQUES, LAST_OF_FIRST), timeout=60)
        env.settle("their pods deleted", pods_are(dict.fromkeys(LAST_OF_FIRST, 0)), timeout=60)
        env.settle("last replica deleted beside a terminating one", are_absent(CLIQUES, LAST_OF_SECOND), timeout=60)

    def _scale_set_in(self, env: SceneEnvironment) -> None:
        surplus = [key for key in _existing_uids(env.history.view()) if key[1].startswith(("s-1", "s-2"))]
        scale(env, SETS, "s", 1)
        env.settle("surplus replicas gone", _all_deleted(surplus), timeout=60)
        scale(env, SETS, "s", 0)
        view = env.history.view()
        remaining = [
            (resource, object_name)
            for resource in RESOURCES
            for object_name in view.names(resource)
            if object_name.startswith("s-0")
        ]
        env.settle("nothing left of any replica", _all_deleted(remaining), timeout=60)
        scale(env, SETS, "s", 2)
        env.wait_for("set available again", predicates.is_available("s", 2))
        sizes = (("a", 3), ("g-0-b", 1), ("g-0-c", 2), ("g-1-c", 2))
        counts = {f"s-{i}-{suffix}": size for i in (0, 1) for suffix, size in sizes}
        env.settle("sizes of the template", pods_are(counts, ready=True), timeout=60)


@requirement("SCALE-001", reaches=("new replicas have their groups", "new replicas have their pods"))
def test_a_set_is_scaled_out(run: Recorded[ScaledAtEveryLevel]) -> None:
    """The objects of the existing replica keep their UIDs."""
    run.given("set available", "new replicas available")
    before = _existing_uids(run.at("before the scale-out"))
    run.same("uids of what was there before", *_uids_before_and_now(before, run.at("scaled out")))


@requirement("SCALE-002", reaches="new cliques have the template's size")
def test_new_replicas_have_the_sizes_of_the_template(run: Recorded[ScaledAtEveryLevel]) -> None:
    """The template was changed after the first replica was created."""


@requirement("SCALE-003", reaches="surplus replicas gone")
def test_a_set_is_scaled_in(run: Recorded[ScaledAtEveryLevel]) -> None:
    """Pods, Services and gangs are deleted as well. The objects that stay are compared by their UIDs."""
    stay = {key: uid for key, uid in _existing_uids(run.at("groups scaled in")).items() if key[1].startswith("s-0")}
    run.same("uids of the replica that stays", *_uids_before_and_now(stay, run.at("surplus replicas gone")))


@requirement("SCALE-004", reaches=("nothing left of any replica", "set available again", "sizes of the template"))
def test_a_set_is_scaled_to_zero_and_out_again(run: Recorded[ScaledAtEveryLevel]) -> None:
    """The objects of all kinds are judged first, and then the pods of each clique."""


@requirement("SCALE-005", reaches="scaled clique has its pods")
def test_a_clique_is_scaled_out(run: Recorded[ScaledAtEveryLevel]) -> None:
    """If the generation hash is unchanged, no update has started. minReplicas is covered by GANG-001."""
    view = run.at("scaled out")
    pods = predicates.pods_of(view, "s-0-a")
    run.expect("indices of the pods", ["0", "1", "2", "3"], sorted(label(pod, labels.POD_INDEX) for pod in pods))
    groups = [group for gang in view.list("podgangs") for group in items(gang, "spec", "podgroups")]
    clique_groups = [group for group in groups if text(group, "name") == "s-0-a"]
    referenced = sorted(text(pod, "name") for group in clique_groups for pod in items(group, "podReferences"))
    run.expect("pods in PodGroups of the clique", sorted(map(name, pods)), referenced)
    before = _generation_hash(run.at("before the scale-out"))
    run.expect("the set's currentGenerationHash", before, _generation_hash(view))


@requirement("SCALE-006", reaches="scaled group has its pods")
def test_a_group_is_scaled_out(run: Recorded[ScaledAtEveryLevel]) -> None:
    """The gang that holds an added PodClique holds exactly the PodCliques of its scaling group replica."""
    view = run.at("scaled out")
    replicas = [[f"s-0-g-{j}-b", f"s-0-g-{j}-c"] for j in (1, 2, 3)]
    members = {clique: replica for replica in replicas for clique in replica}
    gangs = {clique: gang_of(view, clique) for clique in members}
    run.same(
        "PodCliques of the gang of each",
        members,
        {clique: value_or_absent(gang, cliques_of(gang)) for clique, gang in gangs.items()},
    )


@requirement("SCALE-007", reaches=("last replicas of the group deleted", "their pods deleted"))
def test_a_group_is_scaled_in(run: Recorded[ScaledAtEveryLevel]) -> None:
    """The replica that stays is the only one that is not ready."""
    view = run.at("groups scaled in")
    run.expect("cliques of the group in the end", ["s-0-g-0-b", "s-0-g-0-c"], _cliques_of_group(view, "s-0-g"))
    before, stay = _existing_uids(run.at("before the scale-in")), ("s-0-g-0-", "s-1-g-0-")
    staying = {key: uid for key, uid in before.items() if key[0] in ("pods", CLIQUES) and key[1].startswith(stay)}
    run.same("uids of the replicas that stay", *_uids_before_and_now(staying, view))


@requirement(
    "SCALE-008",
    reaches=("last replica deleted beside a terminating one", "terminating replica gone", "pods of both replicas gone"),
)
def test_a_group_with_a_terminating_replica_is_scaled_in(run: Recorded[ScaledAtEveryLevel]) -> None:
    """The middle replica is kept terminating while the last replica has to be deleted."""
    cliques = _cliques_of_group(run.at("groups scaled in"), "s-1-g")
    run.expect("cliques of the group in the end", ["s-1-g-0-b", "s-1-g-0-c"], cliques)


@requirement("SCALE-009", reaches="clique of one group replica has its pods")
def test_one_clique_of_a_group_replica_is_scaled_out(run: Recorded[ScaledAtEveryLevel]) -> None:
    """The pods of the same clique in the next replica are counted at the same time."""


@requirement("SCALE-013", reaches="last replicas of the group deleted")
def test_scaling_while_no_operator_runs_takes_effect(run: Recorded[ScaledAtEveryLevel]) -> None:
    """A scaling group is scaled in after the operator has ended and before it starts again."""


@requirement("SCALE-014")
def test_a_restart_changes_nothing_that_is_right(run: Recorded[ScaledAtEveryLevel]) -> None:
    """The UIDs and generations of objects in the set's third replica are compared. Nothing else happens in that
    replica."""
    run.given("third replica ready")
    before, now = (_generations_by_resource(run.at(step)) for step in ("third replica at rest", "groups scaled in"))
    run.same("uids and generations in the third replica", before, now)


test_invariants = invariants(ScaledAtEveryLevel, "INV-001", "INV-004", "INV-005", "INV-025", "GANG-024")


def _existing_uids(view: View) -> Uids:
    return {
        (resource, object_name): uid
        for resource in RESOURCES
        for object_name, uid in incarnations.uids(view, resource).items()
    }


def _uids_before_and_now(before: Uids, view: View) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the former UIDs of objects, and the current UIDs of the objects with the same names."""
    now = _existing_uids(view)
    former = {f"{resource}/{object_name}": uid for (resource, object_name), uid in before.items()}
    return former, {
        f"{resource}/{object_name}": now.get((resource, object_name), "") for resource, object_name in before
    }


def _all_deleted(objects: Iterable[tuple[str, str]]) -> Predicate:
    """None of these objects exists. Each object is identified by its resource and name."""
    keys = list(objects)
    return all_of(
        *(are_absent(kind, [object_name for resource, object_name in keys if resource == kind]) for kind in RESOURCES)
    )


def _generations_by_resource(view: View) -> dict[str, list[object]]:
    """Return the UID and generation of each object in the set's third replica."""
    replica_objects = [
        (resource, item) for resource in RESOURCES for item in view.list(resource) if name(item).startswith("s-2")
    ]
    return {
        f"{resource}/{name(item)}": [uid(item), number(item, "metadata", "generation")]
        for resource, item in replica_objects
    }


def _generation_hash(view: View) -> str:
    return text(view.get(SETS, "s"), "status", "currentGenerationHash")


def _cliques_of_group(view: View, group: str) -> list[str]:
    return [clique for clique in view.names(CLIQUES) if clique.startswith(f"{group}-")]
