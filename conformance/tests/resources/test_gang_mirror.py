"""Tests of the labels, annotations and priority class that a gang takes over from its set, and of the other annotations
of the gang."""

from __future__ import annotations

from conformance.grove.expected import expected
from conformance.grove.fields import at, mapping, name, number, text
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.testing import composition, observed, predicates
from conformance.testing.comparison import value_or_absent
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.tests.resources.manifests import trigger

MANUAL_LABELS = ("grove.io/by-hand", "example.com/by-hand")
"""Annotations of a gang that another client adds."""
PRIORITY_CLASS = "system-cluster-critical"
"""A PriorityClass that every cluster has and that pods in any namespace may use."""


class GangsThatSomebodyChanges(Scene):
    """A set at rest. Then another client changes the set's labels and writes to its gangs, cliques and scaling groups.
    Only the trigger annotation makes the operator reconcile the set. There are no nodes, so no pod is scheduled."""

    def play(self, env: SceneEnvironment) -> None:
        workload = env.workload("full-featured")
        expected_set = expected(workload)
        env.create(workload)
        env.wait_for("gangs exist", composition.all_in_gangs(expected_set.cliques))
        view = observed.wait_for_rest(env, expected_set)
        self.gang = gang = name(composition.gang_of(view, "p-0-fe"))
        gangs = composition.with_actual_gang_names(expected_set, view).gangs

        for key in MANUAL_LABELS:
            env.patch("podgangs", gang, {"metadata": {"annotations": {key: "x"}}})
        env.patch("podgangs", gang, {"spec": {"priorityClassName": "by-hand"}})
        changed_gangs = {"example.com/team": None, "example.com/new": "y"}
        env.patch("podcliquesets", name(workload), {"metadata": {"labels": changed_gangs, **trigger("1")["metadata"]}})
        gangs_with_label = observed.all_of(*(_has_label(gang_name, "new", "y") for gang_name in gangs))
        env.settle("gangs have the new label of their set", gangs_with_label, 60)
        gangs_without_label = observed.all_of(*(_has_label(gang_name, "team", None) for gang_name in gangs))
        env.settle("gangs have lost the old label of their set", gangs_without_label, 60)
        env.settle("foreign priority class is removed", _has_no_priority_class(gang), 60)

        env.patch("podcliques", "p-0-fe", {"spec": {"minAvailable": 2}})
        env.patch("podcliquescalinggroups", "p-0-sg", {"spec": {"minAvailable": 2, "cliqueNames": ["wk", "ld"]}})
        env.patch("podcliquesets", name(workload), trigger("2"))
        env.settle("minimums are those of the templates", _has_minimums_of_templates, 60)


class SetWithPriorityClass(Scene):
    """A small set with a priority class. There are no nodes, so no pod is scheduled."""

    def play(self, env: SceneEnvironment) -> None:
        workload = env.workload("frontend", setName="urgent")
        workload["spec"]["template"]["priorityClassName"] = PRIORITY_CLASS
        self.expected = expected(workload)
        env.create(workload)
        env.wait_for("all pods exist", predicates.all_exist(list(self.expected.cliques.values())))
        env.quiet(1)
        env.mark("nothing moves")


@requirement("RES-021", reaches="gangs have lost the old label of their set")
def test_gangs_lose_what_their_set_lost(run: Recorded[GangsThatSomebodyChanges]) -> None:
    """The trigger annotation makes the operator reconcile the set and its gangs."""
    run.given("gangs exist")


@requirement("RES-022", reaches="gangs have the new label of their set")
def test_gangs_get_a_new_label_of_their_set(run: Recorded[GangsThatSomebodyChanges]) -> None:
    """The trigger annotation makes the operator reconcile the set and its gangs."""
    run.given("gangs exist")


@requirement("RES-095")
def test_gangs_keep_annotations_of_others(run: Recorded[GangsThatSomebodyChanges]) -> None:
    """The set is reconciled twice after the annotations are added."""
    gang = run.at("minimums are those of the templates").get("podgangs", run.scene.gang)
    annotations = {key: observed.annotation(gang, key) for key in MANUAL_LABELS}
    run.expect("annotations that somebody has put on a gang", dict.fromkeys(MANUAL_LABELS, "x"), annotations)


@requirement("RES-026", reaches="foreign priority class is removed")
def test_foreign_changes_of_a_gang_spec_are_reverted(run: Recorded[GangsThatSomebodyChanges]) -> None:
    """The set has no priority class."""
    run.given("gangs exist")


@requirement("RES-027", reaches="minimums are those of the templates")
def test_minimums_are_reset(run: Recorded[GangsThatSomebodyChanges]) -> None:
    """The scene also reverses the order of a group's cliques. That order has no effect and need not be restored."""


@requirement("RES-024")
def test_gangs_have_the_priority_class_of_their_set(run: Recorded[SetWithPriorityClass]) -> None:
    """Every cluster has this class."""
    view = run.at("nothing moves")
    gangs = composition.with_actual_gang_names(run.scene.expected, view).gangs
    classes = {
        gang: value_or_absent(current := view.get("podgangs", gang), text(current, "spec", "priorityClassName"))
        for gang in gangs
    }
    run.expect("classes of the gangs", dict.fromkeys(gangs, PRIORITY_CLASS), classes)


@requirement("RES-025")
def test_pods_have_the_priority_class_of_their_set(run: Recorded[SetWithPriorityClass]) -> None:
    """The pod specs of the templates have no priority class."""
    run.given("all pods exist")
    view = run.at("nothing moves")
    pods = [pod for clique in run.scene.expected.cliques for pod in predicates.pods_of(view, clique)]
    run.expect(
        "classes of the pods", [PRIORITY_CLASS], sorted({text(pod, "spec", "priorityClassName") for pod in pods})
    )


def _has_minimums_of_templates(view: View) -> bool | Unmet:
    """The minimums of a standalone clique and of a scaling group are those of the workload `full-featured`."""
    group = at(view.get("podcliquescalinggroups", "p-0-sg"), "spec")
    minimums = [number(view.get("podcliques", "p-0-fe"), "spec", "minAvailable"), number(group, "minAvailable")]
    return minimums == [1, 1] or Unmet(f"minimums are {minimums}")


@predicate
def _has_no_priority_class(view: View, gang: str) -> bool | Unmet:
    current = text(view.get("podgangs", gang), "spec", "priorityClassName")
    return not current or Unmet(f"the priority class of {gang} is {current}")


@predicate
def _has_label(view: View, gang: str, key: str, value: str | None) -> bool | Unmet:
    current = mapping(view.get("podgangs", gang), "metadata", "labels").get(f"example.com/{key}")
    return current == value or Unmet(f"its value on {gang} is {current!r}")
