"""Tests of sets without a multi-node NVLink annotation, and of a ComputeDomain that another client deletes."""

from __future__ import annotations

from conformance.grove import expected_domains, labels
from conformance.grove.expected import expected
from conformance.grove.fields import at, finalizers, items, name, text, uid
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.scenes.api import Object
from conformance.testing import observed, predicates
from conformance.testing.comparison import value_or_absent
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement

COMPUTE_DOMAINS, CLIQUES = "computedomains", "podcliques"
DOMAIN_NAME = "p-0-wide"
"""The ComputeDomain that is deleted."""


class SetWithoutGroups(Scene):
    """A set whose cliques have GPUs but are not in a multi-node NVLink group, whether or not the operator has that
    feature. There are no nodes, so no pod is scheduled."""

    def play(self, env: SceneEnvironment) -> None:
        workload = env.workload("linked", setName="bare", replicas=1)
        _remove_groups(workload)
        self.cliques = list(expected(workload).cliques.values())
        env.create(workload)
        env.wait_for("all pods exist", predicates.all_exist(self.cliques))
        env.quiet(1)
        env.mark("nothing moves")


class DomainDeletedByHand(Scene):
    """A set with several ComputeDomains, one of which another client deletes. Another set gets its pods afterwards,
    which shows that the operator is still working. There are no nodes, so no pod is scheduled."""

    def play(self, env: SceneEnvironment) -> None:
        workload = env.workload("linked", replicas=1)
        self.domains = expected_domains.domains(workload)
        env.create(workload)
        env.wait_for("ComputeDomains exist", observed.are_present(COMPUTE_DOMAINS, self.domains))
        env.quiet(1)
        self.initial_domain = uid(env.history.view().get(COMPUTE_DOMAINS, DOMAIN_NAME) or {})
        env.delete(COMPUTE_DOMAINS, DOMAIN_NAME)
        env.settled("the deletion has been noticed", self._is_domain_deleted, 30)
        env.patch("podcliquesets", "p", {"metadata": {"annotations": {labels.TRIGGER: "after the deletion"}}})
        later = env.workload("frontend", setName="later")
        env.create(later)
        env.wait_for("later set has its pods", predicates.all_exist(list(expected(later).cliques.values())))
        env.settle("ComputeDomain kept or there again", observed.are_present(COMPUTE_DOMAINS, [DOMAIN_NAME]), 60)
        env.quiet(1.5, real=True)
        env.mark("nothing moves")

    def _is_domain_deleted(self, view: View) -> bool | Unmet:
        domain = view.get(COMPUTE_DOMAINS, DOMAIN_NAME)
        is_deleted = (
            domain is None or uid(domain) != self.initial_domain or text(domain, "metadata", "deletionTimestamp") != ""
        )
        return is_deleted or Unmet("the ComputeDomain is not even marked for deletion")


@requirement("RES-114")
def test_no_clique_is_linked_unasked(run: Recorded[SetWithoutGroups]) -> None:
    """GPUs alone are not a reason for a ComputeDomain. If the feature is off, there are no ComputeDomains at all."""
    run.given("all pods exist")
    view = run.at("nothing moves")
    run.expect("ComputeDomains", [], view.names(COMPUTE_DOMAINS))
    claims: dict[str, object] = {}
    for clique in run.scene.cliques:
        current = view.get(CLIQUES, clique.name)
        claims[clique.name] = value_or_absent(current, _claims(at(current, "spec", "podSpec")))
        claims |= {f"pods/{name(pod)}": _claims(at(pod, "spec")) for pod in predicates.pods_of(view, clique.name)}
    run.expect(
        "cliques and Pods with claims", {}, {owner: current for owner, current in claims.items() if current != []}
    )


@requirement("RES-070", reaches="ComputeDomain kept or there again")
def test_a_domain_that_is_deleted_by_hand_is_there(run: Recorded[DomainDeletedByHand]) -> None:
    """If the set still needs the ComputeDomain, its finalizer keeps it, or the operator recreates it."""
    domain = run.at("nothing moves").get(COMPUTE_DOMAINS, DOMAIN_NAME)
    expected_report = {"finalizer": True, "template": DOMAIN_NAME}
    actual = {
        "finalizer": expected_domains.FINALIZER in finalizers(domain),
        "template": expected_domains.template_of(domain),
    }
    run.expect("what the ComputeDomain says", expected_report, value_or_absent(domain, actual))
    run.expect("ComputeDomains", sorted(run.scene.domains), run.at("nothing moves").names(COMPUTE_DOMAINS))


def _remove_groups(workload: Object) -> None:
    """Remove the multi-node NVLink annotation at every level."""
    template = workload["spec"]["template"]
    for holder in (workload["metadata"], *template["cliques"], *template["podCliqueScalingGroups"]):
        holder.get("annotations", {}).pop(labels.MNNVL, None)


def _claims(spec: object) -> list[str]:
    """Return the claims of a pod spec and of its containers."""
    containers = [*items(spec, "initContainers"), *items(spec, "containers")]
    used_names = [text(claim, "name") for container in containers for claim in items(container, "resources", "claims")]
    return [text(claim, "name") for claim in items(spec, "resourceClaims")] + used_names
