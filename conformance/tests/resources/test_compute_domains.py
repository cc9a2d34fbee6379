"""GPUs that are linked across nodes: ComputeDomains and the channels that containers are given of them."""

from __future__ import annotations

from conformance.grove import expected_domains, expected_pods, labels
from conformance.grove.expected import Expected, expected
from conformance.grove.fields import Document, finalizers, items, name, number, text
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import observed, predicates
from conformance.testing.comparison import of, same

DOMAINS = "computedomains"


@requirements("RES-070", "RES-071", "RES-072", "RES-073", "RES-074")
def test_linked_cliques_share_a_compute_domain(case: Case) -> None:
    workload = case.workload("linked")
    wanted, domains = expected(workload), expected_domains.domains(workload)
    case.create(workload)
    case.until("RES-072", "all pods exist", predicates.all_exist(list(wanted.cliques.values())))
    case.eventually("RES-070", "the ComputeDomains exist", observed.there(DOMAINS, domains))
    view = case.quiet(1)
    _check_domains(case, workload, view)
    _check_channels(case, workload, wanted, view)
    asked = {f"p-{i}-{g}": expected_domains.annotation_of_group(workload, g) for i in (0, 1) for g in ("sg", "plain")}
    seen = {
        group: of(found := view.get("podcliquescalinggroups", group), observed.annotation(found, labels.MNNVL))
        for group in asked
    }
    same(case, "RES-071", "groups that scaling groups name", asked, seen)

    case.patch("podcliquesets", "p", {"spec": {"replicas": 1}})
    second = [found for found in domains if found.startswith("p-1-")]
    case.eventually("RES-073", "the domains of a replica that is no more go", observed.gone(DOMAINS, second))
    left = [found for found in case.history.view().names(DOMAINS) if found in domains]
    case.expect("RES-073", "the domains of the other", sorted(set(domains) - set(second)), left)
    case.patch("podcliquesets", "p", {"spec": {"replicas": 0}})
    case.eventually("RES-073", "a set without replicas has no domains", observed.gone(DOMAINS, domains))

    case.patch("podcliquesets", "p", {"spec": {"replicas": 2}})
    case.eventually("RES-070", "the domains come again with the replicas", observed.there(DOMAINS, domains))
    case.delete("podcliquesets", "p")
    case.eventually("RES-074", "the domains of the deleted set go", observed.gone(DOMAINS, domains), timeout=150)


def _check_domains(case: Case, workload: Document, view: View) -> None:
    """RES-070, RES-071. A group that is misread shows as a domain too many or too few."""
    wanted = expected_domains.domains(workload)
    case.expect("RES-071", "domains by name", sorted(wanted), view.names(DOMAINS))
    observed.same_labels(case, "RES-070", DOMAINS, {one.name: one.labels for one in wanted.values()}, view)
    observed.same_owners(case, "RES-070", DOMAINS, dict.fromkeys(wanted, ("PodCliqueSet", name(workload))), view)
    right: dict[str, object] = {}
    seen: dict[str, object] = {}
    for domain in wanted:
        found = view.get(DOMAINS, domain)
        right[domain] = {"template": domain, "numNodes": 0, "finalizer": True}
        template = text(found, "spec", "channel", "resourceClaimTemplate", "name")
        nodes, held = number(found, "spec", "numNodes"), expected_domains.FINALIZER in finalizers(found)
        seen[domain] = of(found, {"template": template, "numNodes": nodes, "finalizer": held})
    same(case, "RES-070", "specs of domains", right, seen)


def _check_channels(case: Case, workload: Document, wanted: Expected, view: View) -> None:
    """RES-071, RES-072, for the pods and for the pod specs of their cliques (OBJ-844)."""
    for clique in wanted.cliques.values():
        domain = expected_domains.of_clique(workload, clique)
        found = view.get("podcliques", clique.name)
        specs = [(clique.name, found.get("spec", {}).get("podSpec"))] if found else []
        specs += [(name(pod), pod.get("spec")) for pod in predicates.pods_of(view, clique.name)]
        for what, spec in specs:
            named = {text(c, "name"): text(c, "resourceClaimTemplateName") for c in items(spec, "resourceClaims")}
            channels = [template for template in named.values() if template]
            # Which domain the pods use shows which group the clique was taken to be in.
            id = "RES-072" if what == clique.name else "RES-071"
            case.expect(id, f"channels of {what}", [domain] if domain else [], channels)
            for container in expected_pods.containers(spec):
                used = [named.get(text(claim, "name")) for claim in items(container, "resources", "claims")]
                right = [domain] if domain and expected_domains.has_gpu(container) else []
                case.expect("RES-072", f"channels of {what}/{text(container, 'name')}", right, used)
