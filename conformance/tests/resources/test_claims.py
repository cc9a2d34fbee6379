"""Tests of ResourceClaims over time: templates that are created late, and claims of pods that survive a scale-in."""

from __future__ import annotations

from conformance.grove import expected_pods, names, pods
from conformance.grove.expected import expected
from conformance.grove.fields import at, name, pruned
from conformance.history.query import Predicate, Unmet, predicate
from conformance.history.view import View
from conformance.testing import observed, predicates
from conformance.testing.devices import claim_template
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.tests.resources.manifests import OTHER_SPEC

CLAIMS = ("borrowing-all-set-template", "borrowing-0-web-all-clique-template")


class TemplatesCreatedLate(Scene):
    """A set and its clique share devices through ResourceClaimTemplates that do not exist at first. The set's template
    is created first, and the clique's template later. There are no nodes, so no pod is scheduled."""

    def play(self, env: SceneEnvironment) -> None:
        workload = env.workload("borrowing")
        self.expected = expected(workload)
        self.cliques = list(self.expected.cliques.values())
        env.create(workload)
        _create_other_set(env, "first")
        env.mark("template of the set")
        env.create(claim_template("set-template", OTHER_SPEC))
        # An operator may create cliques only when it has all templates, so this step may be missed.
        env.settle("cliques exist", observed.are_present("podcliques", self.expected.cliques))
        _create_other_set(env, "second")
        env.quiet(1)
        env.mark("template of the clique")
        env.create(claim_template("clique-template", OTHER_SPEC))
        env.wait_for("all pods exist", predicates.all_exist(self.cliques))
        env.settle("claims exist", observed.are_present("resourceclaims", CLAIMS))


class ScaledInClique(Scene):
    """A standalone clique with three pods, each with its own claim. The clique is scaled in by one, and the pod with
    the lowest index has to be deleted, because it is the only pod that is not Ready. There are no nodes, so no pod is
    scheduled."""

    def play(self, env: SceneEnvironment) -> None:
        workload = env.workload("full-featured", fronts=3, groupReplicas=1)
        env.create(workload)
        clique = expected(workload).cliques["p-0-fe"]
        self.clique = clique.name
        env.wait_for("all pods exist", predicates.all_exist([clique]))
        claims = [names.replica_claim(clique.name, index, "gpu") for index in range(3)]
        env.wait_for("their claims exist", observed.are_present("resourceclaims", claims))
        env.quiet(1)
        for pod in predicates.pods_of(env.history.view(), clique.name):
            if expected_pods.index(pod) != 0:
                ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
                env.patch("pods", name(pod), {"status": {"conditions": [ready]}}, subresource="status")
        env.settled("two pods are ready", _has_ready_pods(clique.name, 2))
        env.patch("podcliques", clique.name, {"spec": {"replicas": 2}}, subresource="scale")
        env.wait_for("a pod is deleted", _has_pods(clique.name, 2))
        env.quiet(2)
        env.mark("nothing moves")


@requirement("RES-042")
def test_a_claim_has_the_spec_of_a_template_of_the_namespace(run: Recorded[TemplatesCreatedLate]) -> None:
    view = run.at("claims exist")
    for claim in CLAIMS:
        actual = pruned(OTHER_SPEC, at(view.get("resourceclaims", claim), "spec"))
        run.expect(f"the spec of {claim}", OTHER_SPEC, actual)


@requirement("RES-045", reaches="all pods exist")
def test_objects_wait_for_the_templates_that_they_need(run: Recorded[TemplatesCreatedLate]) -> None:
    """Other sets, whose templates all exist, get their pods in the meantime, which proves that the operator is
    working."""
    run.given("first set without claims has its pods")
    have_no_pods = observed.all_of(*(_has_pods(clique.name, 0) for clique in run.scene.cliques))
    run.always("no pod exists while the template of the set is missing", have_no_pods, until="template of the set")
    run.given("second set without claims has its pods")
    has_no_pods = _has_pods(run.scene.cliques[0].name, 0)
    run.always("no pod exists while the template of its clique is missing", has_no_pods, until="template of the clique")


@requirement("RES-046")
def test_a_pod_keeps_its_claim_when_its_clique_is_scaled_in(run: Recorded[ScaledInClique]) -> None:
    """The pods that stay have the highest indices."""
    run.given("all pods exist", "their claims exist", "a pod is deleted")
    view = run.at("nothing moves")
    for pod in predicates.pods_of(view, run.scene.clique):
        missing_claims = [claim for claim in observed.claims_of_pod(pod) if view.get("resourceclaims", claim) is None]
        run.expect(f"claims that {name(pod)} has lost", [], missing_claims)


def _create_other_set(env: SceneEnvironment, set_name: str) -> None:
    """Create a set that needs no claim, and wait until the operator has reconciled it. By then the operator has also
    reconciled the earlier set."""
    later = env.workload("frontend", setName=set_name)
    env.create(later)
    cliques = list(expected(later).cliques.values())
    env.wait_for(f"{set_name} set without claims has its pods", predicates.all_exist(cliques))


def _has_ready_pods(clique: str, count: int) -> Predicate:
    return lambda view: sum(map(pods.is_ready, predicates.pods_of(view, clique))) == count


@predicate
def _has_pods(view: View, clique: str, count: int) -> bool | Unmet:
    pod_count = len(predicates.pods_of(view, clique))
    return pod_count == count or Unmet(f"{pod_count} pods are left, not {count}")
