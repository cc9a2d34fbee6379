"""Tests that the replicas of an existing clique or scaling group belong to autoscalers and users and not to the
operator."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from itertools import chain

from conformance.grove.expected import expected
from conformance.grove.fields import name, number, text
from conformance.grove.selectors import selects
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.testing import observed, predicates
from conformance.testing.composition import all_in_gangs, cliques_of, gang_of, none_in_gangs
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.tests.resources import judging
from conformance.tests.resources.manifests import trigger

REMOVED_TARGETS = ["PodClique/p-0-fe", "PodClique/p-1-fe", "PodCliqueScalingGroup/p-1-sg"]
"""The targets of the autoscalers that are removed."""
KEPT_TARGET = "PodCliqueScalingGroup/p-0-sg"
MEMBER_SIZES = {"p-0-sg-3-ld": 1, "p-0-sg-3-wk": 2}
"""The cliques of the replica that is added to the scaling group → their numbers of pods."""
SCALED_CLIQUES = [[f"p-0-sg-{number}-ld", f"p-0-sg-{number}-wk"] for number in (1, 2, 3)]
"""The cliques of the replicas 1 to 3 of the scaling group. These replicas have their own gangs; the first replica is in
the base gang."""
REMOVED_CLAIMS = ["p-1-cache", "p-1-link", "p-1-fe-0-gpu", "p-1-sg-0-gpu", "p-1-sg-all-link", "p-0-sg-3-gpu"]
KEPT_CLAIMS = ["p-0-cache", "p-0-sg-0-gpu", "p-0-sg-2-gpu", "p-0-sg-all-link", "p-all-fabric"]


class SetScaledByOthers(Scene):
    """A set with two replicas, autoscalers and claims. A clique and a scaling group are scaled. Then an unrelated field
    and the replicas of a template change. Finally an autoscaling config, a replica of the set and a replica of the
    group are removed. There are no nodes, so no pod is scheduled."""

    def play(self, env: SceneEnvironment) -> None:
        self.workload = workload = env.workload("full-featured", replicas=2)
        self.expected = expected(workload)
        env.create(workload)
        env.wait_for("all pods exist", predicates.all_exist(list(self.expected.cliques.values())))
        env.wait_for("autoscalers exist", judging.have_autoscalers([*REMOVED_TARGETS, KEPT_TARGET]))
        env.settled(
            "selectors are published", _are_scales_published(name(workload), [*self.expected.groups], ["p-0-fe"])
        )
        self._scale(env)
        self._change_template(env)
        self._remove_parts(env)

    def _scale(self, env: SceneEnvironment) -> None:
        pcs = name(self.workload)
        self.scale_subresources = {
            "p-0-fe": env.patch("podcliques", "p-0-fe", {"spec": {"replicas": 3}}, subresource="scale"),
            "p-0-sg": env.patch("podcliquescalinggroups", "p-0-sg", {"spec": {"replicas": 4}}, subresource="scale"),
            pcs: env.patch("podcliquesets", pcs, {"spec": {"replicas": 2}}, subresource="scale"),
        }
        env.wait_for("scaled clique has its pods", _has_pods({"p-0-fe": 3}))
        env.wait_for("scaled group has its cliques and pods", _has_pods(MEMBER_SIZES))
        env.wait_for("each scaled replica of the group has a gang", all_in_gangs([*chain(*SCALED_CLIQUES)]))

    def _change_template(self, env: SceneEnvironment) -> None:
        """Change an unrelated field, and the replicas in the template. Neither change may affect the live replicas."""
        self._cliques = copy.deepcopy(self.workload["spec"]["template"]["cliques"])
        self._cliques[0]["spec"]["replicas"] = 1
        change = {"spec": {"template": {"terminationDelay": "2h0m0s", "cliques": self._cliques}}, **trigger("1")}
        env.patch("podcliquesets", name(self.workload), change)
        env.wait_for("operator has observed the update", _is_generation_observed(name(self.workload)))
        env.quiet(2)
        env.mark("nothing moves after the update")

    def _remove_parts(self, env: SceneEnvironment) -> None:
        env.settle(
            "claims of all replicas exist", observed.are_present("resourceclaims", [*REMOVED_CLAIMS, *KEPT_CLAIMS])
        )
        del self._cliques[0]["spec"]["autoScalingConfig"]
        change = {"spec": {"replicas": 1, "template": {"cliques": self._cliques}}, **trigger("2")}
        env.patch("podcliquesets", name(self.workload), change)
        env.patch("podcliquescalinggroups", "p-0-sg", {"spec": {"replicas": 3}}, subresource="scale")
        env.settle(
            "autoscalers of the removed config and replica are deleted",
            judging.have_no_autoscalers(REMOVED_TARGETS),
            60,
        )
        env.settle("claims of removed replicas are deleted", observed.are_absent("resourceclaims", REMOVED_CLAIMS), 60)
        cliques = [clique for clique in self.expected.cliques if clique.startswith("p-1-")]
        env.settle("gangs of removed replicas are deleted", none_in_gangs([*cliques, *SCALED_CLIQUES[-1]]), 60)
        env.quiet(1)
        env.mark("nothing moves after the removal")


@requirement("CORE-013")
def test_scale_subresources_publish_selectors(run: Recorded[SetScaledByOthers]) -> None:
    """Pods that were created after the selectors were published are selected as well."""
    view = run.at("each scaled replica of the group has a gang")
    all_cliques = view.names("podcliques")
    group_cliques = [clique for clique in all_cliques if clique.startswith("p-0-sg-")]
    cliques_by_owner = {"p-0-fe": ["p-0-fe"], "p-0-sg": group_cliques, name(run.scene.workload): all_cliques}
    pods = {clique: predicates.pods_of(view, clique) for clique in all_cliques}
    expected_pods = {
        owner: sorted(name(pod) for clique in cliques for pod in pods[clique])
        for owner, cliques in cliques_by_owner.items()
    }
    selected_pods = {}
    for owner, scale in run.scene.scale_subresources.items():
        selector = text(scale, "status", "selector")
        selected_pods[owner] = sorted(
            name(pod) for members in pods.values() for pod in members if selects(selector, pod)
        )
    run.same("pods that the selectors in the scale subresource select", expected_pods, selected_pods)


@requirement(
    "RES-032",
    reaches=(
        "scaled clique has its pods",
        "scaled group has its cliques and pods",
        "each scaled replica of the group has a gang",
    ),
)
def test_live_replicas_belong_to_whoever_scales(run: Recorded[SetScaledByOthers]) -> None:
    """The numbers in the template differ from the live replicas, and are changed once more."""
    run.given("all pods exist")
    scaled = "each scaled replica of the group has a gang"
    last = cliques_of(gang_of(run.at(scaled), SCALED_CLIQUES[-1][0]))
    run.expect("PodCliques of the gang of the last replica", sorted(MEMBER_SIZES), last)
    run.given("operator has observed the update")
    view = run.at("nothing moves after the update")
    group = observed.replicas(view.get("podcliquescalinggroups", "p-0-sg"))
    run.expect("replicas of the group after the update", 4, group)
    front_clique = observed.replicas(view.get("podcliques", "p-0-fe"))
    pods = {clique: len(predicates.pods_of(view, clique)) for clique in ("p-0-fe", *MEMBER_SIZES)}
    run.expect("pods after the update", {"p-0-fe": front_clique, **MEMBER_SIZES}, pods)


@requirement("RES-097")
def test_the_operator_leaves_the_replicas_of_cliques_alone(run: Recorded[SetScaledByOthers]) -> None:
    """One of the cliques was scaled, and the other was not. The lower number in the template must not scale either
    clique."""
    run.given("scaled clique has its pods", "operator has observed the update")
    view = run.at("nothing moves after the update")
    replicas = {clique: observed.replicas(view.get("podcliques", clique)) for clique in ("p-0-fe", "p-1-fe")}
    run.expect("replicas of cliques after the update", {"p-0-fe": 3, "p-1-fe": 2}, replicas)


@requirement("RES-033", reaches="autoscalers of the removed config and replica are deleted")
def test_autoscalers_of_removed_configs_are_deleted(run: Recorded[SetScaledByOthers]) -> None:
    """Autoscalers are identified by their targets."""
    run.given("autoscalers exist")
    targets = judging.targets(run.at("nothing moves after the removal").list(judging.AUTOSCALERS))
    run.expect("target of the autoscaler that is still wanted", [KEPT_TARGET], targets)


@requirement("RES-034", reaches="gangs of removed replicas are deleted")
def test_gangs_of_removed_replicas_are_deleted(run: Recorded[SetScaledByOthers]) -> None:
    """Other requirements judge the PodGangs that stay."""
    before, after = (
        sorted(map(cliques_of, run.at(f"nothing moves after the {step}").list("podgangs")))
        for step in ("update", "removal")
    )
    needed = [
        cliques
        for cliques in before
        if not any(clique.startswith("p-1-") or clique in SCALED_CLIQUES[-1] for clique in cliques)
    ]
    run.expect("PodCliques of the gangs that are still needed", needed, after)


@requirement("RES-047", reaches="claims of removed replicas are deleted")
def test_claims_of_removed_replicas_are_deleted(run: Recorded[SetScaledByOthers]) -> None:
    run.given("claims of all replicas exist")
    view = run.at("nothing moves after the removal")
    existing = [claim for claim in KEPT_CLAIMS if view.get("resourceclaims", claim) is not None]
    run.expect("claims that are still needed", KEPT_CLAIMS, existing)


@predicate
def _are_scales_published(view: View, set_name: str, groups: list[str], cliques: list[str]) -> bool:
    """All these objects publish the selector of their pods in their statuses."""
    fields = [("podcliquesets", set_name, "hpaPodSelector")]
    fields += [("podcliquescalinggroups", group, "selector") for group in groups]
    fields += [("podcliques", clique, "hpaPodSelector") for clique in cliques]
    return all(text(view.get(resource, object_name), "status", field) for resource, object_name, field in fields)


@predicate
def _has_pods(view: View, sizes: Mapping[str, int]) -> bool | Unmet:
    counts = {clique: len(predicates.pods_of(view, clique)) for clique in sizes}
    return counts == sizes or Unmet(f"pods: {counts}, wanted: {dict(sizes)}")


@predicate
def _is_generation_observed(view: View, set_name: str) -> bool | Unmet:
    pcs = view.get("podcliquesets", set_name)
    generation, reported = number(pcs, "metadata", "generation"), number(pcs, "status", "observedGeneration")
    return generation == reported or Unmet(f"observedGeneration is {reported} of {generation}")
