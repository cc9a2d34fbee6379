"""Tests of GPUs that are linked across nodes: the ComputeDomains, and the channels that they provide to containers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from conformance.grove import expected_domains, labels
from conformance.grove.expected import ExpectedClique, expected
from conformance.grove.fields import Document, at, finalizers, items, name, number, text
from conformance.history.view import View
from conformance.testing import observed, predicates
from conformance.testing.comparison import value_or_absent
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.tests.resources import judging

COMPUTE_DOMAINS = "computedomains"
UNLINKED_CLIQUES = ("p-0-plain", "p-1-plain")
"""The scaling groups whose templates have no annotation."""


class LinkedCliques(Scene):
    """A set with two replicas, whose cliques are in several multi-node NVLink groups or in none. The replicas are
    removed one after the other and then added again. Finally the set is deleted. There are no nodes, so no pod is
    scheduled."""

    def play(self, env: SceneEnvironment) -> None:
        self.workload = workload = env.workload("linked")
        self.expected, self.domains = expected(workload), expected_domains.domains(workload)
        self.second_replica_domains = [domain for domain in self.domains if domain.startswith("p-1-")]
        env.create(workload)
        env.wait_for("all pods exist", predicates.all_exist(list(self.expected.cliques.values())))
        env.settle("ComputeDomains exist", observed.are_present(COMPUTE_DOMAINS, self.domains), 60)
        env.quiet(1)
        env.mark("nothing moves")
        env.patch("podcliquesets", "p", {"spec": {"replicas": 1}})
        env.settle(
            "domains of the removed replica are deleted",
            observed.are_absent(COMPUTE_DOMAINS, self.second_replica_domains),
            60,
        )
        env.patch("podcliquesets", "p", {"spec": {"replicas": 0}})
        env.settle("domains of the last replica are deleted", observed.are_absent(COMPUTE_DOMAINS, self.domains), 60)
        env.patch("podcliquesets", "p", {"spec": {"replicas": 2}})
        env.settle("domains come back with the replicas", observed.are_present(COMPUTE_DOMAINS, self.domains), 60)
        env.delete("podcliquesets", "p")
        env.settle("domains of the deleted set are deleted", observed.are_absent(COMPUTE_DOMAINS, self.domains), 150)


@requirement("RES-070", reaches=("ComputeDomains exist", "domains come back with the replicas"))
def test_each_group_has_a_compute_domain(run: Recorded[LinkedCliques]) -> None:
    """The domains are recreated when a set without replicas gets replicas again."""
    view, domains = run.at("nothing moves"), run.scene.domains
    current = judging.objects_by_name(view, COMPUTE_DOMAINS, domains)
    tags = {
        entry.name: {key: value for key, value in entry.labels.items() if key != labels.NAME}
        for entry in domains.values()
    }
    judging.expect_labels(run, COMPUTE_DOMAINS, tags, current)
    owners = dict.fromkeys(domains, ("PodCliqueSet", name(run.scene.workload)))
    judging.expect_controllers(run, COMPUTE_DOMAINS, owners, current, view)
    specs = {domain: {"template": domain, "finalizer": True} for domain in domains}
    run.same("specs of domains", specs, {domain: _domain_spec(entry) for domain, entry in current.items()})


@requirement("RES-071")
def test_the_nearest_annotation_says_the_group(run: Recorded[LinkedCliques]) -> None:
    """If a group is misread, there are too many or too few domains, or a channel of another domain."""
    view, workload = run.at("nothing moves"), run.scene.workload
    run.expect("domains by name", sorted(run.scene.domains), view.names(COMPUTE_DOMAINS))
    for clique in run.scene.expected.cliques.values():
        domain = expected_domains.clique_domain(workload, clique)
        for owner, spec in _pod_specs(clique, view):
            run.expect(f"channels of {owner}", [domain] if domain else [], _channel_claims(spec))
    requested = dict.fromkeys(UNLINKED_CLIQUES, observed.annotation(workload, labels.MNNVL))
    actual = {
        group: value_or_absent(
            current := view.get("podcliquescalinggroups", group), observed.annotation(current, labels.MNNVL)
        )
        for group in UNLINKED_CLIQUES
    }
    run.same("groups that scaling groups without an annotation of their own name", requested, actual)


@requirement("RES-072")
def test_containers_with_gpus_use_a_channel(run: Recorded[LinkedCliques]) -> None:
    """Pods must have the channels in the pod spec of their clique."""
    run.given("all pods exist", "ComputeDomains exist")
    view = run.at("nothing moves")
    for clique in run.scene.expected.cliques.values():
        domain = expected_domains.clique_domain(run.scene.workload, clique)
        if not domain:
            continue
        template = list(_clique_template(clique, view))
        for owner, spec in template:
            run.expect(f"channels of {owner}", [domain], _channel_claims(spec))
        for owner, spec in (*template, *_pod_specs(clique, view)):
            _expect_channel(run, owner, spec, filter(expected_domains.has_gpu, items(spec, "containers")), domain)


@requirement("RES-099")
def test_domains_and_channels_are_as_upstreams(run: Recorded[LinkedCliques]) -> None:
    """The number of nodes, and the channels of init containers and of containers without GPUs, follow from upstream's
    code only."""
    run.given("all pods exist")
    view, domains = run.at("nothing moves"), run.scene.domains
    sizes = {
        domain: value_or_absent(item := view.get(COMPUTE_DOMAINS, domain), number(item, "spec", "numNodes"))
        for domain in domains
    }
    run.same("numNodes of domains", dict.fromkeys(domains, 0), sizes)
    for clique in run.scene.expected.cliques.values():
        domain = expected_domains.clique_domain(run.scene.workload, clique)
        for owner, spec in (*_clique_template(clique, view), *_pod_specs(clique, view)):
            _expect_channel(run, owner, spec, items(spec, "initContainers"), domain)
            containers_without_gpus = [item for item in items(spec, "containers") if not expected_domains.has_gpu(item)]
            _expect_channel(run, owner, spec, containers_without_gpus, domain)


@requirement(
    "RES-073", reaches=("domains of the removed replica are deleted", "domains of the last replica are deleted")
)
def test_domains_of_removed_replicas_are_deleted(run: Recorded[LinkedCliques]) -> None:
    """The domains of the remaining replica stay."""
    run.given("ComputeDomains exist")
    deleted = "domains of the removed replica are deleted"
    remaining_domains = [domain for domain in run.at(deleted).names(COMPUTE_DOMAINS) if domain in run.scene.domains]
    run.expect(
        "domains of the replica that is left",
        sorted(set(run.scene.domains) - set(run.scene.second_replica_domains)),
        remaining_domains,
    )


@requirement("RES-074", reaches="domains of the deleted set are deleted")
def test_domains_of_a_deleted_set_are_deleted(run: Recorded[LinkedCliques]) -> None:
    """The finalizer of the domains must not block their deletion."""


def _expect_channel(
    run: Recorded[LinkedCliques], owner: str, spec: object, containers: Iterable[Document], domain: str
) -> None:
    """Expect that containers with GPUs use a channel of the domain, if there is one, and that other containers do not
    use any channel."""
    for container in containers:
        channels = [domain] if domain and expected_domains.has_gpu(container) else []
        run.expect(f"channels of {owner}/{text(container, 'name')}", channels, _used_claims(spec, container))


def _domain_spec(domain: Document | None) -> object:
    """Return the template and the finalizer of a domain."""
    template = expected_domains.template_of(domain)
    return value_or_absent(
        domain, {"template": template, "finalizer": expected_domains.FINALIZER in finalizers(domain)}
    )


def _clique_template(clique: ExpectedClique, view: View) -> Iterator[tuple[str, object]]:
    """Yield the name and the pod spec of a clique if the clique exists (OBJ-844)."""
    current = view.get("podcliques", clique.name)
    if current is not None:
        yield clique.name, at(current, "spec", "podSpec")


def _pod_specs(clique: ExpectedClique, view: View) -> Iterator[tuple[str, object]]:
    """Yield the name and the spec of each pod of a clique."""
    for pod in predicates.pods_of(view, clique.name):
        yield name(pod), at(pod, "spec")


def _claims_by_name(spec: object) -> dict[str, str]:
    """Return the claim templates of a pod, keyed by the names of the claims within the pod."""
    return {text(c, "name"): text(c, "resourceClaimTemplateName") for c in items(spec, "resourceClaims")}


def _channel_claims(spec: object) -> list[str]:
    """Return the domains from which a pod claims channels."""
    return [template for template in _claims_by_name(spec).values() if template]


def _used_claims(spec: object, container: Document) -> list[str | None]:
    """Return the domains whose channels a container uses."""
    templates = _claims_by_name(spec)
    return [templates.get(text(claim, "name")) for claim in items(container, "resources", "claims")]
