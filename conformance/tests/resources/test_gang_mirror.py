"""What a gang takes over from its set, and what it keeps: labels, annotations, priority class."""

from __future__ import annotations

from conformance.grove.expected import expected
from conformance.grove.fields import at, mapping, name, number, text, texts
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.testing import composition, observed, predicates
from conformance.testing.comparison import of
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.tests.resources.manifests import trigger

CLASS = "system-cluster-critical"
"""A priority class of every cluster, which pods of any namespace may have."""


class GangsThatSomebodyChanges(Scene):
    """A set that is at rest; then somebody changes its labels, and writes into its gangs, cliques and scaling groups.
    Nothing but the trigger has the operator reconcile the set. No nodes: no pod is scheduled."""

    def play(self, env: SceneEnvironment) -> None:
        workload = env.workload("full-featured")
        wanted = expected(workload)
        self.reservation = {"namespace": env.namespace, "name": "kept"}
        env.create(workload)
        env.wait_for("gangs exist", composition.all_held(wanted.cliques))
        view = observed.rest(env, wanted)
        self.gang = gang = name(composition.gang_of(view, "p-0-fe"))
        gangs = composition.by_composition(wanted, view).gangs

        for key in ("grove.io/by-hand", "example.com/by-hand"):
            env.patch("podgangs", gang, {"metadata": {"annotations": {key: "x"}}})
        spec = {"priorityClassName": "by-hand", "reuseReservationRef": self.reservation}
        env.patch("podgangs", gang, {"spec": spec})
        changed = {"example.com/team": None, "example.com/new": "y"}
        env.patch("podcliquesets", name(workload), {"metadata": {"labels": changed, **trigger("1")["metadata"]}})
        given = observed.all_of(*(_labelled(each, "new", "y") for each in gangs))
        env.settle("gangs have the new label of their set", given, 60)
        lost = [*(_labelled(each, "team", None) for each in gangs), _annotated(gang, "example.com/by-hand", "")]
        env.settle("gangs have lost the old label of their set and a foreign annotation", observed.all_of(*lost), 60)
        env.settle("foreign priority class is removed", _without_priority_class(gang), 60)

        env.patch("podcliques", "p-0-fe", {"spec": {"minAvailable": 2}})
        env.patch("podcliquescalinggroups", "p-0-sg", {"spec": {"minAvailable": 2, "cliqueNames": ["wk", "ld"]}})
        env.patch("podcliquesets", name(workload), trigger("2"))
        env.settle("cliques and scaling groups follow their templates", _as_templates, 60)


class SetWithPriorityClass(Scene):
    """A small set with a priority class. No nodes: no pod is scheduled."""

    def play(self, env: SceneEnvironment) -> None:
        workload = env.workload("frontend", setName="urgent")
        workload["spec"]["template"]["priorityClassName"] = CLASS
        self.wanted = expected(workload)
        env.create(workload)
        env.wait_for("all pods exist", predicates.all_exist(list(self.wanted.cliques.values())))
        env.quiet(1)
        env.mark("nothing moves")


@requirement("RES-021", reaches="gangs have lost the old label of their set and a foreign annotation")
def test_gangs_lose_what_their_set_lost(run: Recorded[GangsThatSomebodyChanges]) -> None:
    """Gangs MUST lose labels that their set lost and foreign annotations, except those with the prefix grove.io/."""
    lost = "gangs have lost the old label of their set and a foreign annotation"
    found = observed.annotation(run.at(lost).get("podgangs", run.scene.gang), "grove.io/by-hand")
    run.expect("an annotation of Grove that the operator does not know", "x", found)


@requirement("RES-022", reaches="gangs have the new label of their set")
def test_gangs_get_a_new_label_of_their_set(run: Recorded[GangsThatSomebodyChanges]) -> None:
    """A label that is added to a set MUST be on each of its gangs once grove.io/reconcile-trigger has been changed."""
    run.given("gangs exist")


@requirement("RES-026", reaches="foreign priority class is removed")
def test_foreign_changes_of_a_gang_spec_are_reverted(run: Recorded[GangsThatSomebodyChanges]) -> None:
    """Changes of others to fields of a gang's spec that the operator owns MUST be reverted; all others MUST be kept."""
    removed = "foreign priority class is removed"
    kept = mapping(run.at(removed).get("podgangs", run.scene.gang), "spec", "reuseReservationRef")
    run.expect("a field of the gang that the operator does not own", run.scene.reservation, kept)


@requirement("RES-027", reaches="cliques and scaling groups follow their templates")
def test_minimums_and_members_are_reset(run: Recorded[GangsThatSomebodyChanges]) -> None:
    """minAvailable of cliques and groups, and members of groups, MUST be reset to those of the template."""


@requirement("RES-024")
def test_gangs_have_the_priority_class_of_their_set(run: Recorded[SetWithPriorityClass]) -> None:
    """The gangs of a PodCliqueSet MUST have its priorityClassName."""
    view = run.at("nothing moves")
    gangs = composition.by_composition(run.scene.wanted, view).gangs
    seen = {gang: of(found := view.get("podgangs", gang), text(found, "spec", "priorityClassName")) for gang in gangs}
    run.expect("classes of the gangs", dict.fromkeys(gangs, CLASS), seen)


@requirement("RES-025")
def test_pods_have_the_priority_class_of_their_set(run: Recorded[SetWithPriorityClass]) -> None:
    """The pods of a PodCliqueSet MUST have its priorityClassName."""
    run.given("all pods exist")
    view = run.at("nothing moves")
    pods = [pod for clique in run.scene.wanted.cliques for pod in predicates.pods_of(view, clique)]
    run.expect("classes of the pods", [CLASS], sorted({text(pod, "spec", "priorityClassName") for pod in pods}))


def _as_templates(view: View) -> bool | Unmet:
    """The minimums of a standalone clique and of a scaling group, and its members, are those of `full-featured`."""
    group = at(view.get("podcliquescalinggroups", "p-0-sg"), "spec")
    found = [number(view.get("podcliques", "p-0-fe"), "spec", "minAvailable"), number(group, "minAvailable")]
    members = texts(group, "cliqueNames")
    return (found == [1, 1] and members == ["ld", "wk"]) or Unmet(f"minimums are {found}, the group has {members}")


def _without_priority_class(gang: str) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        found = text(view.get("podgangs", gang), "spec", "priorityClassName")
        return not found or Unmet(f"the priority class of {gang} is {found}")

    return seen


def _labelled(gang: str, key: str, value: str | None) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        found = mapping(view.get("podgangs", gang), "metadata", "labels").get(f"example.com/{key}")
        return found == value or Unmet(f"its value on {gang} is {found!r}")

    return seen


def _annotated(gang: str, key: str, value: str) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        found = observed.annotation(view.get("podgangs", gang), key)
        return found == value or Unmet(f"its value on {gang} is {found!r}")

    return seen
