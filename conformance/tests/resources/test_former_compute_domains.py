"""Tests of leftovers of an earlier version: a ComputeDomain with another name, and an annotation for multi-node
NVLink."""

from __future__ import annotations

from typing import Any

from conformance.grove import expected_domains, labels
from conformance.grove.expected import expected
from conformance.grove.fields import Document, at, mapping, terminating, text
from conformance.testing import observed, predicates
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement

COMPUTE_DOMAINS, FORMER_DOMAIN, AUTO_ANNOTATION = "computedomains", "p-0", "grove.io/auto-mnnvl"


class FormerDomains(Scene):
    """A set that has a ComputeDomain of an earlier version and gets a second replica, and a set that has the annotation
    of that version but no group. There are no nodes, so no pod is scheduled."""

    def play(self, env: SceneEnvironment) -> None:
        workload, other_clique = env.workload("linked", replicas=1), env.workload("linked", setName="o", replicas=1)
        other_clique["metadata"]["annotations"] = {AUTO_ANNOTATION: "enabled"}
        for part in (
            *other_clique["spec"]["template"]["cliques"],
            *other_clique["spec"]["template"]["podCliqueScalingGroups"],
        ):
            part.pop("annotations", None)
        owner = env.create(workload)
        env.create(other_clique)
        self.expected = expected(other_clique)
        cliques = [clique for manifest in (workload, other_clique) for clique in expected(manifest).cliques.values()]
        env.wait_for("all pods exist", predicates.all_exist(cliques))
        self.former = env.create(_former_domain(owner))
        env.wait_for("former ComputeDomain exists", observed.are_present(COMPUTE_DOMAINS, [FORMER_DOMAIN]))
        env.patch("podcliquesets", "p", {"spec": {"replicas": 2}})
        wide_clique = env.workload("linked", replicas=2)
        env.wait_for(
            "second replica has domains", observed.are_present(COMPUTE_DOMAINS, expected_domains.domains(wide_clique))
        )
        env.quiet(1)
        env.mark("nothing moves")


@requirement("RES-118")
def test_a_domain_of_the_former_naming_scheme_stays(run: Recorded[FormerDomains]) -> None:
    """The ComputeDomain with the former name is the same before and after the set is scaled out."""
    run.given("second replica has domains")
    domain = run.at("nothing moves").get(COMPUTE_DOMAINS, FORMER_DOMAIN)
    state = "deleted" if domain is None else _state(domain)
    run.expect("former ComputeDomain", _state(run.scene.former), state)


@requirement("RES-117")
def test_the_former_annotation_has_no_effect(run: Recorded[FormerDomains]) -> None:
    """The claims of pods are compared with the claims that the current annotations request."""
    run.given("all pods exist")
    view = run.at("nothing moves")
    run.expect("ComputeDomains of the set", [], [name for name in view.names(COMPUTE_DOMAINS) if name.startswith("o-")])
    for clique in run.scene.expected.cliques.values():
        for pod in predicates.pods_of(view, clique.name):
            run.expect(f"resource claims of Pods of {clique.name}", None, at(pod, "spec", "resourceClaims"))
    annotations = mapping(view.get("podcliquesets", "o"), "metadata", "annotations")
    run.expect("annotation of the set", "enabled", annotations.get(AUTO_ANNOTATION))


def _former_domain(owner: Document) -> dict[str, Any]:
    """Return a ComputeDomain for the first replica of a set as an earlier version of Grove created it."""
    reference = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "name": "p",
        "uid": text(owner, "metadata", "uid"),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {
            "name": FORMER_DOMAIN,
            "labels": {
                labels.MANAGED_BY: labels.OPERATOR,
                labels.PART_OF: "p",
                labels.NAME: FORMER_DOMAIN,
                labels.SET_INDEX: "0",
            },
            "ownerReferences": [reference],
            "finalizers": [expected_domains.FINALIZER],
        },
        "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": FORMER_DOMAIN}}},
    }


def _state(domain: Document | None) -> object:
    return {"uid": text(domain, "metadata", "uid"), "spec": at(domain, "spec"), "deleted": terminating(domain)}
