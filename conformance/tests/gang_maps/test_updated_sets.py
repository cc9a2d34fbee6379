"""Tests of updates that replace pods within their gangs, with the strategies RollingRecreate and OnDelete."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conformance.grove import labels, updates
from conformance.grove.fields import label, name, uid
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.suite.scenes.api import Object
from conformance.testing import following, predicates
from conformance.testing.disruption import CLIQUES, GROUPS, SETS
from conformance.testing.observed import all_of
from conformance.testing.scaled import pods_are, scale
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement

ROLLED_SET, ON_DELETE_SET = "r", "d"
REPLICAS = 2
ROLLED_ENTRIES_UPDATED, GANGS_AND_ON_DELETE_ENTRIES_UPDATED = (
    "entries have the new generation",
    "gangs, and entries of OnDelete, have the new generation",
)


class UpdatedSets(Scene):
    """One node with room for all pods. Two sets, each with two replicas, a standalone clique and a scaling group. One
    set has the strategy RollingRecreate, and the other set has the strategy OnDelete. All their cliques get another
    image. Then the clique and the group of every replica are scaled out."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        set_sizes = {"alone": 2, "aloneMinAvailable": 1, "members": 1, "membersMinAvailable": 1}
        shape = {"replicas": REPLICAS, "groups": 2, "groupsMinAvailable": 1, **set_sizes}
        rolling_set, on_delete = (
            env.workload("kept", setName=set_name, **shape) for set_name in (ROLLED_SET, ON_DELETE_SET)
        )
        on_delete["spec"]["updateStrategy"] = {"type": "OnDelete"}
        for workload in (rolling_set, on_delete):
            env.create(workload)
        set_names = (ROLLED_SET, ON_DELETE_SET)
        env.wait_for("sets available", all_of(*(predicates.is_available(set_name, REPLICAS) for set_name in set_names)))
        env.settled("maps followed", all_of(*map(following.are_maps_followed, set_names)))
        env.quiet(1)
        env.mark("before the update")
        before = {set_name: updates.generation_hash(env.history.view().get(SETS, set_name)) for set_name in set_names}
        for workload in (rolling_set, on_delete):
            _change_images(env, workload)
        env.wait_for("sets updated", all_of(*(_is_updated(set_name, before[set_name]) for set_name in set_names)), 120)
        env.settle(ROLLED_ENTRIES_UPDATED, _are_hashes_current(ROLLED_SET, _hashes_of_entries))
        other_hashes = (
            _are_hashes_current(ON_DELETE_SET, _hashes_of_entries),
            *(_are_hashes_current(set_name, _hashes_of_gangs) for set_name in set_names),
        )
        env.settle(GANGS_AND_ON_DELETE_ENTRIES_UPDATED, all_of(*other_hashes))
        env.settled("maps followed again", all_of(*map(following.are_maps_followed, set_names)))
        env.quiet(1)
        env.mark("updated")
        for set_name in set_names:
            for replica in range(REPLICAS):
                scale(env, CLIQUES, f"{set_name}-{replica}-a", 3)
                scale(env, GROUPS, f"{set_name}-{replica}-g", 3)
        for set_name in set_names:
            env.settle(f"{set_name}: added pods Ready", pods_are(_sizes(set_name), ready=True), 60)
        env.settled("maps followed in the end", all_of(*map(following.are_maps_followed, set_names)))
        env.quiet(1)
        env.mark("end")


def _change_images(env: SceneEnvironment, workload: Object) -> None:
    cliques = workload["spec"]["template"]["cliques"]
    for clique in cliques:
        container = clique["spec"]["podSpec"]["containers"][0]
        container["image"] = container["image"].replace(":1", ":2")
    env.patch(SETS, name(workload), {"spec": {"template": {"cliques": cliques}}})


def _sizes(set_name: str) -> dict[str, int]:
    """Return PodClique → number of pods after the scale-out of a set."""
    return {
        clique: size
        for replica in range(REPLICAS)
        for clique, size in (
            (f"{set_name}-{replica}-a", 3),
            *((f"{set_name}-{replica}-g-{index}-{member}", 1) for index in range(3) for member in "bc"),
        )
    }


@predicate
def _is_updated(view: View, set_name: str, before: str) -> bool | Unmet:
    """The set has another generation hash, its update has ended, and it is available."""
    pcs = view.get(SETS, set_name)
    if updates.generation_hash(pcs) in ("", before) or not updates.has_ended(pcs):
        return Unmet(f"the update of {set_name} has not ended")
    return predicates.is_available(set_name, REPLICAS)(view)


def _hashes_of_entries(view: View, set_name: str) -> Mapping[str, str]:
    """Return entry → generation hash. Entries without members are left out, because they have no pods to which a hash
    could refer."""
    return {
        f"entry {entry.epoch} of replica {replica}": entry.generation
        for replica in range(REPLICAS)
        for entry in following.entries_of(view, set_name, replica)
        if not entry.is_empty
    }


def _hashes_of_gangs(view: View, set_name: str) -> Mapping[str, str]:
    """Return gang → generation hash."""
    gangs = following.gangs_of(view, set_name)
    return {f"gang {gang}": label(document, labels.GENERATION_HASH) for gang, document in gangs.items()}


@predicate
def _are_hashes_current(view: View, set_name: str, hashes: Callable[[View, str], Mapping[str, str]]) -> bool | Unmet:
    """All these hashes equal the generation hash of the set."""
    generation = updates.generation_hash(view.get(SETS, set_name))
    outdated_hashes = [key for key, observed in hashes(view, set_name).items() if observed != generation]
    return not outdated_hashes or Unmet(
        f"{len(outdated_hashes)} have another generation than {set_name}, the first: {outdated_hashes[0]}"
    )


def _entry_contents(view: View, set_name: str) -> dict[str, object]:
    """Return the contents and dependencies of entries, which an update does not change. The generation hash is left
    out."""
    return {
        f"{set_name}-{replica} {entry.epoch}": [entry.summary(), list(entry.depends_on)]
        for replica in range(REPLICAS)
        for entry in following.entries_of(view, set_name, replica)
    }


@requirement("MAP-040")
def test_a_rolling_update_keeps_gangs_and_entries(run: Recorded[UpdatedSets]) -> None:
    """Entries, including their dependencies, are compared before the update and at rest after it."""
    _expect_same_gangs(run, ROLLED_SET)


@requirement("MAP-048")
def test_an_update_on_delete_keeps_gangs_and_entries(run: Recorded[UpdatedSets]) -> None:
    """Entries and gangs stay the same, as with RollingRecreate, although no pod is replaced."""
    _expect_same_gangs(run, ON_DELETE_SET)


def _expect_same_gangs(run: Recorded[UpdatedSets], set_name: str) -> None:
    """Expect that the entries of a set, and its gangs with their UIDs, are the same as before the update."""
    run.given("sets updated")
    before, after = run.at("before the update"), run.at("updated")
    run.same(f"entries of {set_name}", _entry_contents(before, set_name), _entry_contents(after, set_name))
    old_uids, new_uids = (
        {name: uid(gang) for name, gang in following.gangs_of(view, set_name).items()} for view in (before, after)
    )
    run.same("uids of PodGangs", old_uids, new_uids)


@requirement("MAP-041")
def test_replaced_pods_join_the_same_gang(run: Recorded[UpdatedSets]) -> None:
    """The gangs that each clique's pods name are compared before and after the update."""
    run.given("sets updated")
    gangs_by_clique = [
        {
            clique: sorted({label(pod, labels.GANG) for pod in predicates.pods_of(run.at(step), clique)})
            for clique in following.cliques_of_set(run.at("before the update"), ROLLED_SET)
        }
        for step in ("before the update", "updated")
    ]
    run.same("gangs of pods by PodClique", gangs_by_clique[0], gangs_by_clique[1])


@requirement("MAP-042", reaches=ROLLED_ENTRIES_UPDATED)
def test_entries_have_the_generation_of_the_set(run: Recorded[UpdatedSets]) -> None:
    """The entries must have the generation hash within 30 s of the end of the update."""


@requirement("MAP-045", reaches=GANGS_AND_ON_DELETE_ENTRIES_UPDATED)
def test_gangs_and_entries_on_delete_have_the_generation_of_the_set(run: Recorded[UpdatedSets]) -> None:
    """The gangs outlive the update with either strategy, so their label has to change. OnDelete keeps the old pods."""


@requirement("MAP-043", reaches=(f"{ROLLED_SET}: added pods Ready", f"{ON_DELETE_SET}: added pods Ready"))
def test_what_is_added_after_an_update_runs(run: Recorded[UpdatedSets]) -> None:
    """Both strategies are judged. The clique and the group of every replica are scaled out at the same time."""
    for set_name in (ROLLED_SET, ON_DELETE_SET):
        run.expect(f"{set_name}: not held once", [], following.misplaced_members(run.at("end"), set_name))


@requirement("MAP-008")
def test_every_pod_is_referred_to_after_an_update(run: Recorded[UpdatedSets]) -> None:
    """The pods that were added after the update are judged as well."""
    for set_name in (ROLLED_SET, ON_DELETE_SET):
        run.expect(f"{set_name}: pods astray", [], following.stray_pods(run.at("end"), set_name))


test_invariants = invariants(UpdatedSets, "INV-001", "INV-002", "INV-004", "INV-005", "INV-008")
