"""Tests of the pods of a standalone clique that an update replaces, and of their order."""

from __future__ import annotations

from conformance.grove import pods, updates
from conformance.grove.fields import uid
from conformance.history.query import Unmet, predicate
from conformance.history.record import Record
from conformance.history.view import View
from conformance.suite.scenes.api import Object
from conformance.testing import disruption, predicates, replay
from conformance.testing.observed import all_of
from conformance.testing.scaled import pods_are, scale
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement
from conformance.tests.update import changes
from conformance.tests.update.changes import CLIQUES, SETS

SIZES = {
    "down": 2,
    "sick": 4,
    "ill": 4,
    "crashed": 2,
    "shrinks": 3,
    "grows": 2,
    "again": 3,
    "back": 3,
    "twice": 3,
    "fits": 2,
    "broken": 2,
}
"""Set → the number of pods of its clique. Two pods each of `down`, `sick` and `ill` are not Ready, and two pods of
`crashed` have failed before. `shrinks` and `grows` are scaled. `again`, `back` and `twice` are changed twice. The new
pods of `fits` do not fit on any node at first, and the new pods of `broken` have an image that cannot be pulled."""
MINIMUMS = {"sick": 3}
FINAL_SIZES = {**SIZES, "shrinks": 1, "grows": 4}
ONE_OR_TWO = (1, 2)
"""The permitted numbers of replaced pods, of three Ready pods, after a second change and before a new pod becomes
Ready. An unready pod of the first change is replaced immediately (CHG-RU-21). It is not specified whether the next
Ready pod waits for the successor of that pod, because the selection is cleared (CHG-RU-60) but Ready pods are replaced
one at a time (CHG-RU-23). The third Ready pod waits in any case."""
TWO_OR_THREE = (2, 3)
"""The permitted numbers of pods of `ill` that are replaced immediately: its two unready pods and, unless these count
against maxUnavailable, one Ready pod."""
FIRST_REPLACED = {"down": (2,), "sick": (1, 2), "ill": TWO_OR_THREE, "twice": ONE_OR_TWO}
"""Set → permitted numbers of pods that are replaced immediately. In each other set, the number is one. The unready pods
of `sick` may be replaced one after the other here, because UPD-014 covers that they are replaced at the same time."""
NEXT_REPLACED = {"sick": (2, 3), "ill": (3, 4), "crashed": (2,), "shrinks": (2,), "twice": (2, 3)}
"""Set → permitted numbers of pods that are replaced by the time the successors of the first pods are Ready."""
LAST_TAG = {"again": "3", "twice": "3", "broken": "3", "back": "1"}
"""Set → the template that it has in the end. All other sets have the second template."""
LATE_LABEL = "conformance.grove.io/late"
"""A label that the pods of one set require of their node, and that no node has at first."""

Uids = dict[str, set[str]]


def clique_of(set_name: str) -> str:
    """Return the name of the clique of a set."""
    return f"{set_name}-0-web"


class CliquesInDifferentStates(Scene):
    """A set with one standalone clique for each state that an update can encounter (see SIZES). All sets are changed at
    the same time. New pods become Ready only when they are released. A node for the set `fits` becomes available
    last."""

    def play(self, env: SceneEnvironment) -> None:
        nodes = env.nodes("tiny", 1)
        sets = {set_name: _workload(env, set_name) for set_name in SIZES}
        for workload in sets.values():
            env.create(workload)
        env.wait_for(
            "all pods Ready", changes.report_ready({clique_of(set_name): n for set_name, n in SIZES.items()}), 150
        )
        for set_name in ("down", "sick", "ill"):
            disruption.set_pod_states(env, clique_of(set_name), disruption.STARTING, 2)
        disruption.set_pod_states(env, clique_of("crashed"), disruption.RECOVERED, 2)
        unready = {clique_of("down"): 0, clique_of("sick"): 2, clique_of("ill"): 2}
        env.wait_for("two pods not Ready", changes.report_ready(unready))
        env.quiet(0.7)
        env.mark("change")
        view = env.history.view()
        self.first = {set_name: changes.uids(view, clique_of(set_name)) for set_name in SIZES}
        before = {set_name: updates.generation_hash(view.get(SETS, set_name)) for set_name in SIZES}

        for set_name, workload in sets.items():
            changes.set_image(workload, "web", tag="2")
            _second_template(env, workload, set_name)
            changes.apply(env, workload)
        env.settled("the first of two changes has been observed", changes.has_started("twice", before["twice"]))
        changes.set_image(sets["twice"], "web", tag="3")
        changes.apply(env, sets["twice"])
        changes.require_held(env, clique_of("again"))
        for set_name, size in SIZES.items():
            bound = size - 1 if set_name == "fits" else size
            replaced = changes.has_replaced_pods(
                clique_of(set_name), self.first[set_name], FIRST_REPLACED.get(set_name, (1,)), bound
            )
            env.settle(f"{set_name}: first pods replaced", replaced, 60)
        env.quiet(1, real=True)
        env.mark("first pods replaced")
        self._release_next_pods(env)
        self._change_again(env, sets)

        env.patch("nodes", nodes[0], {"metadata": {"labels": {LATE_LABEL: "yes"}}})
        ends = {
            set_name: _has_ended(set_name) if set_name == "back" else changes.has_ended(set_name, before[set_name])
            for set_name in SIZES
        }
        changes.release_until(env, "all updates end", map(clique_of, SIZES), all_of(*ends.values()))
        for set_name, ended in ends.items():
            env.settle(f"{set_name}: update ended", ended, 30)
        env.quiet(0.7)
        env.mark("end")

    def _release_next_pods(self, env: SceneEnvironment) -> None:
        """Scale two cliques, and let new pods of several sets become Ready. Pods that were added by scaling are not
        released."""
        first = self.first
        scale(env, CLIQUES, clique_of("grows"), 4)
        env.settle(
            "grows: added pods exist", changes.has_replaced_pods(clique_of("grows"), first["grows"], (1,), 4), 60
        )
        successor = _oldest_new_pods(env, "grows", first)
        self.added = changes.uids(env.history.view(), clique_of("grows")) - first["grows"] - successor
        for set_name in ("down", "sick", "ill", "crashed", "shrinks", "twice"):
            changes.release(env, clique_of(set_name))
        changes.release(env, clique_of("grows"), successor)
        for set_name, counts in NEXT_REPLACED.items():
            replaced = changes.has_replaced_pods(clique_of(set_name), first[set_name], counts, SIZES[set_name])
            env.settle(f"{set_name}: next pod replaced", replaced, 60)
        env.settle("grows: added pods Ready", _are_ready(clique_of("grows"), self.added), 60)
        env.settled("and their clique reports it", changes.report_ready({clique_of("grows"): 3}), 10)
        scale(env, CLIQUES, clique_of("shrinks"), 1)
        env.settle("shrinks: one pod left", pods_are({clique_of("shrinks"): 1}), 60)
        env.quiet(1, real=True)
        env.mark("next pods replaced")

    def _change_again(self, env: SceneEnvironment, sets: dict[str, Object]) -> None:
        """Apply a third template to one set, the first template again to another, and a template that is not broken to
        a third set."""
        changes.set_image(sets["again"], "web", tag="3")
        sets["back"] = _workload(env, "back")
        changes.template(sets["broken"], "web").pop("annotations")
        changes.set_image(sets["broken"], "web", tag="3")
        for set_name in ("again", "back", "broken"):
            changes.apply(env, sets[set_name])
        second_template = changes.uids_where(
            env.history.view(), clique_of("again"), lambda pod: changes.image_tag(pod) == "2"
        )
        env.settle(
            "again: pod of the second template deleted", changes.are_deleted(clique_of("again"), second_template), 60
        )
        replaced = changes.has_replaced_pods(clique_of("again"), self.first["again"], ONE_OR_TWO, 3)
        env.settle("again: pods of the third template exist", replaced, 60)
        env.quiet(1, real=True)
        env.mark("third template at rest")


Run = Recorded[CliquesInDifferentStates]


@requirement("UPD-055")
def test_no_set_reports_the_end_before_its_pods_are_ready(run: Recorded[CliquesInDifferentStates]) -> None:
    """At this time all pods of `down` have been replaced, and none of the new pods is Ready."""
    view = run.at("first pods replaced")
    early = [set_name for set_name in SIZES if updates.has_ended(view.get(SETS, set_name))]
    run.expect("sets that report the end while pods are not Ready", [], early)


@requirement("UPD-055")
def test_no_clique_reports_the_end_before_its_pods_are_ready(run: Recorded[CliquesInDifferentStates]) -> None:
    """The pods are judged at the same time as for sets, when no new pod of `down` is Ready."""
    view = run.at("first pods replaced")
    generations = {set_name: updates.generation_hash(view.get(SETS, set_name)) for set_name in SIZES}
    early = [
        set_name
        for set_name in SIZES
        if updates.has_ended(view.get(CLIQUES, clique_of(set_name)), generations[set_name])
    ]
    run.expect("cliques that report the end while pods are not Ready", [], early)


@requirement("UPD-014", reaches=("down: first pods replaced", "sick: first pods replaced", "ill: first pods replaced"))
def test_unready_pods_are_replaced_at_once(run: Recorded[CliquesInDifferentStates]) -> None:
    """The containers of these pods have not started, and the successors of the pods are held."""
    run.given("two pods not Ready")
    for set_name in ("down", "ill"):
        _expect_replaced_at_first(run, set_name)
    view = run.at("first pods replaced")
    unready = {
        uid(pod) for set_name in ("down", "sick", "ill") for pod in _unready_pods(view, set_name, run.scene.first)
    }
    run.expect("old pods that are not Ready", [], sorted(unready))


@requirement("UPD-014")
def test_an_update_that_begins_with_unready_pods_ends(run: Recorded[CliquesInDifferentStates]) -> None:
    """The Ready pods are replaced later, and each pod is replaced once."""
    run.given("ill: next pod replaced")
    _expect_updated(run, "ill")
    _expect_created(run, "ill", 4)


@requirement("UPD-015")
def test_pods_that_failed_before_are_replaced_one_at_a_time(run: Recorded[CliquesInDifferentStates]) -> None:
    """Both pods have failed before and are Ready again when the template changes."""
    _expect_replaced_at_first(run, "crashed")
    _expect_replaced_next(run, "crashed")
    _expect_updated(run, "crashed")


@requirement("UPD-016")
def test_the_next_ready_pod_waits_for_the_successor(run: Recorded[CliquesInDifferentStates]) -> None:
    """At that time, replacements of other pods of `sick` are Ready, and pods of `grows` that were added by scaling."""
    run.given("all pods Ready")
    _expect_replaced_next(run, "sick")
    _expect_replaced(run, "grows", "next pods replaced", "grows: added pods Ready", (1,))


@requirement("UPD-017")
def test_no_ready_pod_is_replaced_below_the_minimum(run: Recorded[CliquesInDifferentStates]) -> None:
    """Only two of four pods are Ready, although at least three must be."""
    _expect_replaced_at_first(run, "sick")
    ready = changes.uids_where(run.at("change"), clique_of("sick"), pods.is_ready)
    remaining = changes.uids(run.at("first pods replaced"), clique_of("sick"))
    run.expect("replaced pods of sick that were Ready", [], sorted(ready - remaining))


@requirement("UPD-018")
def test_a_successor_without_a_node_pauses_the_update(run: Recorded[CliquesInDifferentStates]) -> None:
    """The node for the new pods becomes available last."""
    _expect_replaced_at_first(run, "fits")
    _expect_updated(run, "fits")


@requirement("UPD-019", reaches="shrinks: update ended")
def test_the_update_of_a_clique_that_is_scaled_in_ends(run: Recorded[CliquesInDifferentStates]) -> None:
    """The clique is scaled in to one pod while the successor of a Ready pod is not Ready."""
    run.given("shrinks: next pod replaced", "shrinks: one pod left", "shrinks: update ended")
    _expect_updated(run, "shrinks")


@requirement("UPD-020")
def test_added_pods_have_the_new_template(run: Recorded[CliquesInDifferentStates]) -> None:
    """Two pods are added while the successor of the first replaced pod is not Ready."""
    old = changes.created_with_another_tag(run.between("first pods replaced", "end"), clique_of("grows"), "2")
    run.expect("pods that were created with another template", [], old)
    run.given("grows: first pods replaced", "grows: added pods exist", "grows: update ended")
    remaining = changes.uids(run.at("end"), clique_of("grows"))
    run.expect("added pods that were replaced", [], sorted(run.scene.added - remaining))


@requirement("UPD-021")
def test_a_broken_template_is_fixed_by_another_one(run: Recorded[CliquesInDifferentStates]) -> None:
    """The image of the second template cannot be pulled."""
    if not _lost_pods(run.at("first pods replaced"), "broken", run.scene.first):
        run.given("broken: first pods replaced")
    _expect_updated(run, "broken")


@requirement("UPD-022")
def test_a_change_during_an_update_restarts_it(run: Recorded[CliquesInDifferentStates]) -> None:
    """A pod of the second template that is not Ready does not count as a Ready pod, and may stay until it is Ready."""
    _expect_replaced_at_first(run, "again")
    _expect_replaced(run, "again", "third template at rest", "again: pods of the third template exist", ONE_OR_TWO)
    _expect_updated(run, "again")


@requirement("UPD-022")
def test_two_changes_replace_ready_pods_one_at_a_time(run: Recorded[CliquesInDifferentStates]) -> None:
    """The set is changed again before a pod of the first change is Ready."""
    _expect_replaced_at_first(run, "twice")


@requirement("UPD-023")
def test_the_last_of_two_changes_applies(run: Recorded[CliquesInDifferentStates]) -> None:
    """The operator has observed the first change when the second change is made."""
    _expect_updated(run, "twice")


@requirement("UPD-024")
def test_a_reverted_template_keeps_the_pods_that_have_it(run: Recorded[CliquesInDifferentStates]) -> None:
    """At that time, one of three pods has the second template."""
    run.given("back: first pods replaced")
    _expect_updated(run, "back")
    first = run.scene.first["back"] & changes.uids(run.at("next pods replaced"), clique_of("back"))
    remaining = first & changes.uids(run.at("end"), clique_of("back"))
    run.expect("kept pods of the first template", sorted(first), sorted(remaining))


@requirement("UPD-046")
def test_no_clique_reports_the_end_before_its_pods_are_replaced(run: Recorded[CliquesInDifferentStates]) -> None:
    """All old pods of `down` are deleted at the same time, so their deletion could be mistaken for the end of the
    update."""
    run.given("two pods not Ready", "first pods replaced")
    early: dict[str, list[str]] = {}
    for set_name in ("down", "sick", "ill", "crashed"):
        if (end := _end_of_clique(run, set_name)) is not None:
            clique_pods = [
                pod
                for pod in replay.pods_at_revision(run.history, end.revision)
                if replay.clique_name(pod) == clique_of(set_name)
            ]
            tags = sorted(changes.image_tag(pod.object) for pod in clique_pods)
            if tags != ["2"] * SIZES[set_name]:
                early[set_name] = tags
    run.expect("templates of the pods of cliques that reported the end", {}, early)
    run.given("down: update ended")


test_invariants = invariants(CliquesInDifferentStates, "INV-001", "INV-004", "INV-005")


# -- acting ------------------------------------------------------------------------------------------------------------


def _workload(env: SceneEnvironment, set_name: str) -> Object:
    workload = env.workload("waiting", setName=set_name, pods=SIZES[set_name], minAvailable=MINIMUMS.get(set_name, 1))
    changes.template(workload, "web").pop("annotations")
    return workload


def _second_template(env: SceneEnvironment, workload: Object, set_name: str) -> None:
    """Keep the new pods of a set from becoming Ready, because no node fits, because the image is missing, or because
    the pods are held."""
    if set_name == "fits":
        spec = changes.template(workload, "web")["spec"]["podSpec"]
        spec["nodeSelector"] = {**spec.get("nodeSelector", {}), LATE_LABEL: "yes"}
    elif set_name == "broken":
        env.set_behavior(workload, "web", "image-pull-failure")
    else:
        changes.hold_pods(workload, "web")


def _oldest_new_pods(env: SceneEnvironment, set_name: str, first: Uids) -> set[str]:
    """Return the oldest pod that is not one of the first pods. It was created before any pod was added by scaling."""
    new = changes.uids(env.history.view(), clique_of(set_name)) - first[set_name]
    order = [record.uid for record in env.history.records("pods")]
    return set(sorted(new, key=order.index)[:1])


@predicate
def _are_ready(view: View, clique: str, uids: set[str]) -> bool | Unmet:
    """These pods (UIDs) of a clique are Ready."""
    unready = uids - changes.uids_where(view, clique, pods.is_ready)
    return not unready or Unmet(f"{len(unready)} of {len(uids)} pods of {clique} are missing or not Ready")


@predicate
def _has_ended(view: View, set_name: str) -> bool | Unmet:
    """An update that restores the first template has ended. Its generation is the same as before the first change."""
    pcs = view.get(SETS, set_name)
    return updates.has_ended(pcs) or Unmet(f"the update of {set_name} has not ended: {dict(updates.progress(pcs))}")


# -- judging -----------------------------------------------------------------------------------------------------------


def _end_of_clique(run: Run, set_name: str) -> Record | None:
    """Return the first state of a set's clique that reports the end of the update."""
    generation = updates.generation_hash(run.at("first pods replaced").get(SETS, set_name))
    records = run.after("change").records(CLIQUES, clique_of(set_name))
    return next((record for record in records if updates.has_ended(record.object, generation)), None)


def _lost_pods(view: View, set_name: str, first: Uids) -> set[str]:
    return first[set_name] - changes.uids(view, clique_of(set_name))


def _unready_pods(view: View, set_name: str, first: Uids) -> list[changes.Pod]:
    """Return the old pods of a set that still exist and are not Ready."""
    return [
        pod
        for pod in predicates.pods_of(view, clique_of(set_name))
        if uid(pod) in first[set_name] and not pods.is_ready(pod)
    ]


def _expect_replaced_at_first(run: Run, set_name: str) -> None:
    """Expect that only as many pods of a set are replaced as may be replaced immediately."""
    _expect_replaced(
        run, set_name, "first pods replaced", f"{set_name}: first pods replaced", FIRST_REPLACED.get(set_name, (1,))
    )


def _expect_replaced_next(run: Run, set_name: str) -> None:
    """Expect that only as many pods of a set are replaced as may be replaced when the first successors are Ready."""
    _expect_replaced(run, set_name, "next pods replaced", f"{set_name}: next pod replaced", NEXT_REPLACED[set_name])


def _expect_replaced(run: Run, set_name: str, step: str, awaited: str, allowed: tuple[int, ...]) -> None:
    """Expect that the number of replaced pods of a set at a step is one of `allowed`. Unless the number is too high,
    the test is blocked if the earlier step `awaited` was not reached."""
    expected, count = " or ".join(map(str, allowed)), len(_lost_pods(run.at(step), set_name, run.scene.first))
    if count <= max(allowed):
        run.given(awaited)
    run.expect(f"replaced pods of {set_name}", expected, expected if count in allowed else str(count))


def _expect_updated(run: Run, set_name: str) -> None:
    """Expect that all pods of a set have the last template in the end. The report of the end is covered by UPD-007."""
    tags = [LAST_TAG.get(set_name, "2")] * FINAL_SIZES[set_name]
    run.expect(f"templates of the pods of {set_name}", tags, changes.image_tags(run.at("end"), clique_of(set_name)))


def _expect_created(run: Run, set_name: str, count: int) -> None:
    """Expect that this number of pods of a set was created since the change."""
    run.expect(
        f"new pods of {set_name}", count, replay.creation_counts(run.between("change", "end")).get(clique_of(set_name))
    )
