"""Tests of similar names: cliques whose names have a common ending, and objects of one or two sets that would have the
same name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.grove import labels, names
from conformance.grove.expected import ExpectedClique, expected
from conformance.grove.fields import condition_is, controller, items, name, number, text
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.suite.scenes.dry_run import Reply
from conformance.testing import composition, observed, predicates
from conformance.testing.composition import cliques_of
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.testing.services import headless_services
from conformance.tests.resources import judging

TIER_LABEL = "example.com/tier"
"""A label in a template of the workload `namesakes`."""
NAME_CONFLICT_RESOLVED = "second set refused, reports an error, or needs another name"
"""The step at which the second of two sets no longer conflicts with the first set."""
POD_COUNT = 2
"""The number of pods of the clique with the contested name, which is the same in both templates."""


class CliquesWithACommonEnding(Scene):
    """A set in which the names of some cliques end in the names of other cliques. There are no nodes, so no pod is
    scheduled."""

    def play(self, env: SceneEnvironment) -> None:
        workload = env.workload("namesakes")
        self.expected = expected(workload)
        env.create(workload)
        env.wait_for("all cliques exist", observed.are_present("podcliques", self.expected.cliques))
        pods = predicates.all_exist(list(self.expected.cliques.values()))
        all_present = observed.all_of(pods, observed.are_present("services", self.expected.services))
        env.settle("all pods and Services exist", all_present)


class LongNames(Scene):
    """A set whose name is as long as admission allows. The names of set, scaling group and clique have 45 characters in
    total (OBJ-120), or fewer if admission rejects that many. There are no nodes, so no pod is scheduled."""

    def play(self, env: SceneEnvironment) -> None:
        for length in (41, 36, 31, 26):
            workload = env.workload("chain", setName="n" * length, startup="CliqueStartupTypeAnyOrder")
            if not _admission_reply(env, workload).refused:
                break
        self.expected = expected(workload)
        env.create(workload)
        env.wait_for("all pods exist", predicates.all_exist(list(self.expected.cliques.values())))


class TwoSetsWithOneGangName(Scene):
    """The first scaled gang of the group `b` of set `a` has the name of the base gang of set `a-0-b` (OBJ-123), which
    is created later, unless admission rejects it. If gangs are named differently, no name is contested. There are no
    nodes, so no pod is scheduled."""

    def play(self, env: SceneEnvironment) -> None:
        first = env.workload("namesakes", setName="a")
        first["spec"]["template"]["podCliqueScalingGroups"][0]["name"] = "b"
        second = env.workload("frontend", setName="a-0-b")
        env.create(first)
        clique = "a-0-b-1-leader"
        env.wait_for("gang of the first set exists", composition.all_in_gangs([clique]))
        self.gang = name(composition.gang_of(env.quiet(1), clique))
        self.is_contested = self.gang == names.base_gang("a-0-b", 0)
        env.mark("second set")
        self.reply = _admission_reply(env, second)
        if not self.reply.refused:
            env.create(second)
        if self.reply.refused or not self.is_contested:
            env.mark(NAME_CONFLICT_RESOLVED)
        else:
            env.settle(NAME_CONFLICT_RESOLVED, observed.reports_error("a-0-b"), 60)
        env.quiet(1)
        env.mark("nothing moves")


class TwoCliquesWithOneName(Scene):
    """One node. A standalone clique has the name of the clique `leader` of the scaling group's first replica (OBJ-123),
    and the same number of pods, so an operator that confuses the two cliques does not notice. The scene ends early if
    admission rejects the set."""

    contested = "alike-0-sg-0-leader"

    def play(self, env: SceneEnvironment) -> None:
        workload = env.workload("namesakes")
        cliques = workload["spec"]["template"]["cliques"]
        worker = next(clique for clique in cliques if clique["name"] == "worker")
        cliques.append(
            {"name": "sg-0-leader", "spec": {**worker["spec"], "roleName": "namesake", "replicas": POD_COUNT}}
        )
        workload["spec"]["template"]["podCliqueScalingGroups"][0]["replicas"] = 1
        self.other_cliques = [clique for clique in expected(workload).cliques if clique != self.contested]
        self.reply = _admission_reply(env, workload)
        if self.reply.refused:
            env.mark("set refused, or it or its scaling group reports an error")
            return
        env.nodes("dgx-h100", 1)
        env.create(workload)
        env.wait_for("one of the two exists", observed.are_present("podcliques", [self.contested]))
        reported = _one_set_reports_error("alike", "alike-0-sg")
        env.settle("set refused, or it or its scaling group reports an error", reported, 60)
        env.settle("other cliques exist", observed.are_present("podcliques", self.other_cliques))
        env.settled("pods of the other cliques are Ready", _are_pods_ready(self.other_cliques))
        env.quiet(2)
        env.mark("nothing moves")


class TwoAutoscalersWithOneName(Scene):
    """A standalone clique and a scaling group have the same name, and both have an autoscaler (OBJ-123). The scene ends
    early if admission rejects the set. There are no nodes, so no pod is scheduled."""

    def play(self, env: SceneEnvironment) -> None:
        workload = env.workload("namesakes")
        template = workload["spec"]["template"]
        worker, group = template["cliques"][0], template["podCliqueScalingGroups"][0]
        worker["name"] = group["name"]
        worker["spec"]["autoScalingConfig"] = group["scaleConfig"] = {"minReplicas": 1, "maxReplicas": 3}
        group["replicas"] = group["minAvailable"] = 1
        self.reply = _admission_reply(env, workload)
        if self.reply.refused:
            env.mark("set refused, or reports an error")
            return
        env.create(workload)
        autoscaler_targets = [f"{kind}/alike-0-{group['name']}" for kind in ("PodClique", "PodCliqueScalingGroup")]
        env.wait_for(
            "one of the two exists",
            lambda view: not judging.autoscalers_by_target(view).keys().isdisjoint(autoscaler_targets),
        )
        env.settle("set refused, or reports an error", _reports_error_or_scales(autoscaler_targets), 60)


class ForeignScalingGroup(Scene):
    """A scaling group of another client has the name of the set's scaling group. The cliques of the set's group are
    therefore never created, and its gang waits for them. There are no nodes, so no pod is scheduled."""

    def play(self, env: SceneEnvironment) -> None:
        owner = env.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "somebody"}})
        uid = text(owner, "metadata", "uid")
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "somebody", "uid": uid, "controller": True}
        group = {
            "apiVersion": "grove.io/v1alpha1",
            "kind": "PodCliqueScalingGroup",
            "metadata": {
                "name": "alike-0-sg",
                "labels": {labels.BY_HAND: "somebody"},  # marks the object as the suite's own, for the invariants
                "ownerReferences": [reference],
            },
            "spec": {"replicas": 1, "cliqueNames": ["leader"]},
        }
        env.create(group)
        env.create(env.workload("namesakes"))
        env.wait_for("standalone clique exists", observed.are_present("podcliques", ["alike-0-worker"]))
        env.settle("set reports an error", observed.reports_error("alike"), 60)


@requirement("RES-050")
def test_a_clique_is_created_from_the_template_of_its_whole_name(run: Recorded[CliquesWithACommonEnding]) -> None:
    """The templates differ in every field that is compared."""
    run.given("all cliques exist")
    view = run.at("all pods and Services exist")
    cliques = run.scene.expected.cliques.values()
    expected_cliques = {clique.name: _from_template(clique) for clique in cliques}
    run.same(
        "cliques, and the images of their pods",
        expected_cliques,
        {clique.name: _actual_values(view, clique) for clique in cliques},
    )


@requirement("CORE-006")
def test_services_do_as_their_set_says(run: Recorded[CliquesWithACommonEnding]) -> None:
    """The set's headlessServiceConfig asks for Services that publish only ready addresses."""
    view = run.at("all pods and Services exist")
    run.same("headless Services", *headless_services(run.scene.expected, view))


@requirement("RES-051", reaches=NAME_CONFLICT_RESOLVED)
def test_two_sets_with_one_gang_name_leave_each_other_alone(run: Recorded[TwoSetsWithOneGangName]) -> None:
    """If gangs are named differently, no name is contested."""
    run.given("gang of the first set exists")
    _is_rejected(run, run.scene.reply)
    gang = run.scene.gang
    before, view = run.at("second set"), run.at("nothing moves")
    current = view.get("podgangs", gang)
    part = text(current, "metadata", "labels", labels.PART_OF)
    actual = {"owner": text(controller(current), "name"), "part of": part, "groups": cliques_of(current)}
    expected_gang = {"owner": "a", "part of": "a", "groups": cliques_of(before.get("podgangs", gang))}
    run.expect("the gang of the first set", expected_gang, actual)


@requirement("RES-052", reaches="set refused, or it or its scaling group reports an error")
def test_two_cliques_with_one_name_are_reported(run: Recorded[TwoCliquesWithOneName]) -> None:
    """The two cliques have the same size, so an operator that confuses them does not notice."""
    if _is_rejected(run, run.scene.reply):
        return
    run.given("one of the two exists")
    other_cliques, view = run.scene.other_cliques, run.at("other cliques exist")
    existing = [clique for clique in other_cliques if view.get("podcliques", clique) is not None]
    run.expect("the other cliques of the set", other_cliques, existing)
    available = number(run.at("nothing moves").get("podcliquesets", "alike"), "status", "availableReplicas")
    run.expect("available replicas of a set that lacks a clique", 0, available or 0)


@requirement("RES-053", reaches="all pods exist")
def test_names_as_long_as_admission_allows_work(run: Recorded[LongNames]) -> None:
    """A truncated hostname lacks its index."""
    view = run.at("all pods exist")
    for clique in run.scene.expected.cliques:
        observed_hostnames = sorted(text(pod, "spec", "hostname") for pod in predicates.pods_of(view, clique))
        hostnames = [f"{clique}-{index}" for index in range(len(observed_hostnames))]
        run.expect(f"hostnames of {clique}", hostnames, observed_hostnames)
        run.expect(
            f"hostnames of {clique} that no DNS label can hold", [], [h for h in observed_hostnames if len(h) > 63]
        )


@requirement("RES-054", reaches="set refused, or reports an error")
def test_two_autoscalers_with_one_name_are_reported(run: Recorded[TwoAutoscalersWithOneName]) -> None:
    """An operator whose autoscalers have other names may create both."""
    if not _is_rejected(run, run.scene.reply):
        run.given("one of the two exists")


@requirement("RES-091", reaches="set reports an error")
def test_an_error_of_a_scaling_group_is_reported_while_its_gang_waits(run: Recorded[ForeignScalingGroup]) -> None:
    """The gang waits for the cliques of the group, which cannot be created."""
    run.given("standalone clique exists")


def _from_template(clique: ExpectedClique) -> dict[str, object]:
    return {
        "replicas": clique.template.replicas,
        "minAvailable": clique.template.min_available,
        "roleName": clique.template.role,
        TIER_LABEL: clique.labels.get(TIER_LABEL, ""),
        "images": [text(container, "image") for container in items(clique.template.pod_spec, "containers")],
    }


def _actual_values(view: View, clique: ExpectedClique) -> dict[str, object]:
    """Return the fields of a PodClique and its pods. A missing field has the value of the template. Containers that are
    not in the template, such as containers from admission plugins, are covered by CORE-014."""
    current, pods = view.get("podcliques", clique.name), predicates.pods_of(view, clique.name)
    template_names = {text(container, "name") for container in items(clique.template.pod_spec, "containers")}
    containers = (
        container
        for pod in pods
        for container in items(pod, "spec", "containers")
        if text(container, "name") in template_names
    )
    have = {
        "replicas": number(current, "spec", "replicas"),
        "minAvailable": number(current, "spec", "minAvailable"),
        "roleName": text(current, "spec", "roleName"),
        TIER_LABEL: text(current, "metadata", "labels", TIER_LABEL),
        "images": sorted({text(container, "image") for container in containers}),
    }
    return {key: have[key] or value for key, value in _from_template(clique).items()}


def _admission_reply(env: SceneEnvironment, workload: Mapping[str, Any]) -> Reply:
    """Return admission's reply to a set. A rejection because of the set's names counts as a reported error."""
    return env.dry_run.ask(env.dry_run.create(dict(workload)))


@predicate
def _reports_error_or_scales(view: View, targets: list[str]) -> bool | Unmet:
    """The set reports an error, or each target has an autoscaler."""
    reports_error = observed.reports_error("alike")(view)
    return True if reports_error is True or judging.have_autoscalers(targets)(view) is True else reports_error


def _is_rejected(run: Recorded[Scene], reply: Reply) -> bool:
    """Return whether admission has rejected the set of the scene. Expect that it has accepted the set or rejected it
    with a reason."""
    unclear_reply = "" if reply.accepted or reply.refused else str(reply)
    run.expect("how the set is neither accepted nor refused with a reason", "", unclear_reply)
    return reply.refused


@predicate
def _are_pods_ready(view: View, cliques: list[str]) -> bool:
    """Each of these cliques has pods, and all these pods are Ready."""
    pods = [predicates.pods_of(view, clique) for clique in cliques]
    return all(pods) and all(condition_is(pod, "Ready") == "True" for clique_pods in pods for pod in clique_pods)


@predicate
def _one_set_reports_error(view: View, set_name: str, group: str) -> bool | Unmet:
    owners = (view.get("podcliquesets", set_name), view.get("podcliquescalinggroups", group))
    return any(map(observed.error_codes, owners)) or Unmet("lastErrors is empty in both")
