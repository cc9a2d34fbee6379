"""Tests of all objects of a full-featured set, with autoscalers, claims at each level, and labels for its gangs."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.grove import expected_claims, expected_pods, expected_secondary, labels
from conformance.grove.expected import ExpectedClique, ExpectedObjects, expected
from conformance.grove.fields import Document, at, items, label, mapping, name, number, pruned, text
from conformance.grove.role_rules import permissions_of
from conformance.history.query import Predicate, Unmet, predicate
from conformance.history.view import View
from conformance.suite.outcomes.checks import ABSENT, Absent
from conformance.testing import observed, predicates
from conformance.testing.comparison import value_or_absent, values_of_expected_keys
from conformance.testing.composition import with_actual_gang_names
from conformance.testing.devices import claim_template
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.tests.resources import judging
from conformance.tests.resources.manifests import OTHER_SPEC

AUTOSCALERS, CLAIMS = judging.AUTOSCALERS, "resourceclaims"
KIND_LABEL = "example.com/kind"
"""An annotation of one of the workload's scaling groups."""
LABELS_MIRRORED = "gangs carry the labels of the set"
"""The step at which all objects exist."""


class FullFeaturedSet(Scene):
    """A set with two replicas, and a ResourceClaimTemplate in the namespace. It has the same name as a template of the
    set, and takes precedence over that template (OBJ-820). Finally the set is deleted. There are no nodes, so no pod is
    scheduled."""

    def play(self, env: SceneEnvironment) -> None:
        self.namespace = env.namespace
        self.workload = workload = env.workload("full-featured", replicas=2)
        self.owner = ("PodCliqueSet", name(workload))
        self.expected = expected(workload)
        self.claims = expected_claims.claims(workload, self.expected)
        self.autoscalers = {
            "/".join(scaler.target): scaler for scaler in expected_secondary.autoscalers(workload).values()
        }
        self.secondary_resources = expected_secondary.secondary_resources(workload)
        env.create(claim_template("cache", OTHER_SPEC))
        env.create(workload)
        env.wait_for("all pods exist", predicates.all_exist(list(self.expected.cliques.values())))
        env.settle("autoscalers exist", judging.have_autoscalers(self.autoscalers), 60)
        env.settle("claims exist", observed.are_present(CLAIMS, self.claims), 60)
        env.settle("control plane has put a token into the Secret", _has_token(name(workload)), 60)
        view = env.settle(LABELS_MIRRORED, _are_labels_mirrored(workload, self.expected))

        env.delete("podcliquesets", name(workload))
        kinds = ("serviceaccounts", "roles", "rolebindings", "secrets", AUTOSCALERS, CLAIMS)
        set_labels = {labels.PART_OF: name(workload)}
        deleted = observed.all_of(
            *(observed.are_absent(resource, view.names(resource, set_labels)) for resource in kinds)
        )
        env.settle("all that was part of the set is deleted", deleted, 150)


# -- accounts, roles and tokens ------------------------------------------------------------------------------------


@requirement("RES-001")
def test_a_set_has_its_account_and_role(run: Recorded[FullFeaturedSet]) -> None:
    """The names of the objects are covered by another requirement."""
    for secondary in run.scene.secondary_resources:
        objects = judging.objects_of_set(run.at(LABELS_MIRRORED), secondary.resource, run.scene.owner[1])
        run.expect(
            f"the set has one of its {secondary.resource}", True, any(item is not None for item in objects.values())
        )


@requirement("RES-094")
def test_account_and_role_are_called_as_upstreams(run: Recorded[FullFeaturedSet]) -> None:
    """Only upstream's code determines these names."""
    view = run.at(LABELS_MIRRORED)
    for secondary in run.scene.secondary_resources:
        run.expect(
            f"{secondary.resource}/{secondary.name} exists",
            True,
            view.get(secondary.resource, secondary.name) is not None,
        )


@requirement("RES-002")
def test_account_and_role_carry_labels(run: Recorded[FullFeaturedSet]) -> None:
    """Additional labels are permissions_of."""
    for secondary in run.scene.secondary_resources:
        objects = judging.existing_objects_of_set(run.at(LABELS_MIRRORED), secondary.resource, run.scene.owner[1])
        judging.expect_labels(
            run, secondary.resource, dict.fromkeys(objects, judging.common_labels(secondary.labels)), objects
        )


@requirement("RES-003")
def test_the_set_owns_account_and_role(run: Recorded[FullFeaturedSet]) -> None:
    """An object without an owner is identified by its label."""
    view = run.at(LABELS_MIRRORED)
    for secondary in run.scene.secondary_resources:
        objects = judging.existing_objects_of_set(view, secondary.resource, run.scene.owner[1])
        judging.expect_owners(run, secondary.resource, dict.fromkeys(objects, run.scene.owner), objects, view)


@requirement("RES-004")
def test_the_role_allows_to_see_pods(run: Recorded[FullFeaturedSet]) -> None:
    """Other rules are permitted if they allow the same actions."""
    account, role = (secondary.name for secondary in run.scene.secondary_resources[:2])
    view = run.at(LABELS_MIRRORED)
    current, binding = view.get("roles", role), view.get("rolebindings", role)
    run.expect(
        "what the Role allows", expected_secondary.PERMISSIONS, value_or_absent(current, permissions_of(current))
    )
    bound = {
        "role": [text(binding, "roleRef", "kind"), text(binding, "roleRef", "name")],
        "subjects": [[text(s, key) for key in ("kind", "name", "namespace")] for s in items(binding, "subjects")],
    }
    expected_binding = {"role": ["Role", role], "subjects": [["ServiceAccount", account, run.scene.namespace]]}
    run.same("what RoleBindings bind", {role: expected_binding}, {role: value_or_absent(binding, bound)})


@requirement("RES-005")
def test_account_and_role_exist_before_cliques(run: Recorded[FullFeaturedSet]) -> None:
    """The creations of the objects are compared by resource version."""
    span = run.until(LABELS_MIRRORED)
    cliques = [record.revision for record in span.records("podcliques")]
    for secondary in run.scene.secondary_resources:
        revisions = [record.revision for record in span.records(secondary.resource, secondary.name)]
        early = min(revisions) < min(cliques) if revisions and cliques else ABSENT
        run.expect(f"{secondary.resource}/{secondary.name} exists before the first clique", True, early)


@requirement("RES-006", reaches="control plane has put a token into the Secret")
def test_the_control_plane_fills_the_token_secret(run: Recorded[FullFeaturedSet]) -> None:
    """The control plane writes the token if the Secret has the right type and an annotation that names the
    ServiceAccount."""


@requirement("RES-090", reaches="all that was part of the set is deleted")
def test_secondary_resources_are_deleted_with_the_set(run: Recorded[FullFeaturedSet]) -> None:
    """All objects with the label of the set are deleted."""


# -- order, labels and annotations ---------------------------------------------------------------------------------


@requirement("RES-014")
def test_standalone_cliques_exist_first(run: Recorded[FullFeaturedSet]) -> None:
    """The creations of the objects are compared by resource version."""
    run.expect("groups and gangs made before a standalone clique", [], _objects_created_too_early(run))


@requirement("RES-022")
def test_gangs_carry_labels_and_annotations_of_the_set(run: Recorded[FullFeaturedSet]) -> None:
    """Additional labels and annotations are permissions_of."""
    workload, view = run.scene.workload, run.at(LABELS_MIRRORED)
    expected_set = with_actual_gang_names(run.scene.expected, view)
    for field in ("labels", "annotations"):
        expected_tags = dict.fromkeys(expected_set.gangs, mirrored_values(workload, field))
        run.same(
            f"{field} of the set on its gangs", expected_tags, _values_on_gangs(workload, expected_set, view, field)
        )


@requirement("RES-020")
def test_gangs_take_nothing_of_grove_from_the_set(run: Recorded[FullFeaturedSet]) -> None:
    """The set has a label and an annotation with Grove's prefix, and a managed-by label that names another manager."""
    workload, view = run.scene.workload, run.at(LABELS_MIRRORED)
    expected_set = with_actual_gang_names(run.scene.expected, view)
    for field in ("labels", "annotations"):
        grove_keys = [key for key in mapping(workload, "metadata", field) if key.startswith(labels.OWN_PREFIX)]
        actual = {gang: mapping(view.get("podgangs", gang), "metadata", field) for gang in expected_set.gangs}
        copied = [gang for gang, tags in actual.items() if any(key in tags for key in grove_keys)]
        run.expect(f"gangs with {field} of Grove that the set has", [], copied)
    manager = label(workload, labels.MANAGED_BY)
    managed_gangs = [
        gang for gang in expected_set.gangs if label(view.get("podgangs", gang), labels.MANAGED_BY) == manager
    ]
    run.expect(f"gangs that are managed by {manager}", [], managed_gangs)


@requirement("RES-023")
def test_labels_of_templates_are_passed_on(run: Recorded[FullFeaturedSet]) -> None:
    """The template of the standalone clique has one of Grove's labels."""
    view = run.at(LABELS_MIRRORED)
    for clique in with_actual_gang_names(run.scene.expected, view).cliques.values():
        objects = dict(_templates_and_pods(view, clique))
        judging.expect_labels(run, "cliques", {clique.name: _own_labels(clique)}, objects)
        pods = {object_name: item for object_name, item in objects.items() if object_name != clique.name}
        run.expect(f"labels of Grove that Pods have from {clique.name}", {}, copied_keys(clique.template.labels, pods))


@requirement("RES-119")
def test_labels_of_templates_are_passed_on_to_pods(run: Recorded[FullFeaturedSet]) -> None:
    """Additional labels are permissions_of."""
    view = run.at(LABELS_MIRRORED)
    for clique in with_actual_gang_names(run.scene.expected, view).cliques.values():
        objects = dict(_templates_and_pods(view, clique))
        pods = [item_name for item_name in objects if item_name != clique.name]
        judging.expect_labels(run, "pods", dict.fromkeys(pods, _own_labels(clique)), objects)


@requirement("RES-115")
def test_annotations_of_templates_are_passed_on(run: Recorded[FullFeaturedSet]) -> None:
    """The template of the standalone clique has one of Grove's annotations."""
    view = run.at(LABELS_MIRRORED)
    expected_set = with_actual_gang_names(run.scene.expected, view)
    for clique in expected_set.cliques.values():
        for object_name, item in _templates_and_pods(view, clique):
            annotations = clique.template.annotations.items()
            expected_annotations = {key: value for key, value in annotations if not key.startswith(labels.OWN_PREFIX)}
            notes = mapping(item, "metadata", "annotations")
            run.same(
                "annotations",
                {object_name: expected_annotations},
                {object_name: value_or_absent(item, {key: notes.get(key) for key in expected_annotations})},
            )
    kinds = {
        group: value_or_absent(item := view.get("podcliquescalinggroups", group), observed.annotation(item, KIND_LABEL))
        for group in expected_set.groups
    }
    configs = items(run.scene.workload, "spec", "template", "podCliqueScalingGroups")
    annotations_by_config = {text(config, "name"): text(config, "annotations", KIND_LABEL) for config in configs}
    expected_kinds = {
        group: next(v for config_name, v in annotations_by_config.items() if group.endswith(f"-{config_name}"))
        for group in kinds
    }
    run.same("annotations of scaling groups", expected_kinds, kinds)


def copied_keys(expected_labels: Mapping[str, str], objects: Mapping[str, Document | None]) -> dict[str, list[str]]:
    """Return object → the Grove labels that the object has with the values from its template."""
    grove_labels = {key: value for key, value in expected_labels.items() if key.startswith(labels.OWN_PREFIX)}
    copied = {
        object_name: [key for key, value in grove_labels.items() if label(item, key) == value]
        for object_name, item in objects.items()
    }
    return {object_name: keys for object_name, keys in copied.items() if keys}


def _own_labels(clique: ExpectedClique) -> dict[str, str]:
    """Return the labels of a template that are not Grove's own."""
    return {key: value for key, value in clique.template.labels.items() if not key.startswith(labels.OWN_PREFIX)}


def _templates_and_pods(view: View, clique: ExpectedClique) -> list[tuple[str, Document | None]]:
    """Return the name and object of the PodClique and of each pod that are created from a clique template."""
    pods = predicates.pods_of(view, clique.name)
    return [(clique.name, view.get("podcliques", clique.name)), *((name(pod), pod) for pod in pods)]


# -- autoscalers ---------------------------------------------------------------------------------------------------


@requirement("RES-030", reaches="autoscalers exist")
def test_each_config_has_its_autoscaler(run: Recorded[FullFeaturedSet]) -> None:
    """Autoscalers are identified by their targets."""
    configs, view = run.scene.autoscalers, run.at(LABELS_MIRRORED)
    run.expect("targets of autoscalers", sorted(configs), judging.targets(view.list(AUTOSCALERS)))
    scalers = judging.autoscalers_by_target(view)
    specs: dict[str, object] = {}
    actual: dict[str, object] = {}
    for target, config in configs.items():
        scaler = scalers.get(target)
        spec = at(scaler, "spec")
        specs[target] = {"min": config.minimum, "max": config.maximum, "metrics": config.metrics}
        metrics = pruned(config.metrics, at(spec, "metrics"))
        minimum = None if config.minimum is None else number(spec, "minReplicas")
        actual[target] = value_or_absent(
            scaler, {"min": minimum, "max": number(spec, "maxReplicas"), "metrics": metrics}
        )
    run.same("specs of autoscalers", specs, actual)


@requirement("RES-096")
def test_autoscalers_are_called_like_their_targets(run: Recorded[FullFeaturedSet]) -> None:
    """Only upstream's code determines these names."""
    run.given("autoscalers exist")
    names = sorted(scaler.name for scaler in run.scene.autoscalers.values())
    run.expect("autoscalers by name", names, run.at(LABELS_MIRRORED).names(AUTOSCALERS))


@requirement("RES-031")
def test_autoscalers_carry_labels(run: Recorded[FullFeaturedSet]) -> None:
    """Additional labels are permissions_of."""
    tags = {target: judging.common_labels(scaler.labels) for target, scaler in run.scene.autoscalers.items()}
    judging.expect_labels(run, AUTOSCALERS, tags, _autoscalers(run))


@requirement("RES-116")
def test_autoscalers_have_an_owner(run: Recorded[FullFeaturedSet]) -> None:
    """The owner need not be the controller."""
    owners = dict.fromkeys(run.scene.autoscalers, run.scene.owner)
    judging.expect_owners(run, AUTOSCALERS, owners, _autoscalers(run), run.at(LABELS_MIRRORED))


def _autoscalers(run: Recorded[FullFeaturedSet]) -> judging.ObjectsByName:
    """Return target → autoscaler for the expected autoscalers."""
    scalers = judging.autoscalers_by_target(run.at(LABELS_MIRRORED))
    return {target: scalers.get(target) for target in run.scene.autoscalers}


# -- claims --------------------------------------------------------------------------------------------------------


@requirement("RES-040", reaches="claims exist")
def test_each_sharing_entry_has_its_claims(run: Recorded[FullFeaturedSet]) -> None:
    """The naming scheme determines which claim belongs to which entry."""
    run.expect("claims by name", sorted(run.scene.claims), run.at(LABELS_MIRRORED).names(CLAIMS))


@requirement("RES-041")
def test_claims_carry_labels_and_have_an_owner(run: Recorded[FullFeaturedSet]) -> None:
    """Additional labels are permissions_of."""
    run.given("claims exist")
    claims, view = run.scene.claims, run.at(LABELS_MIRRORED)
    current = judging.objects_by_name(view, CLAIMS, claims)
    tags = {name: judging.common_labels(claim.labels) for name, claim in claims.items()}
    judging.expect_labels(run, CLAIMS, tags, current)
    judging.expect_owners(run, CLAIMS, {name: claim.owner for name, claim in claims.items()}, current, view)


@requirement("RES-098")
def test_claims_say_where_they_belong_and_all_containers_have_them(run: Recorded[FullFeaturedSet]) -> None:
    """These labels, and the use of claims by init containers and by several containers, follow from upstream's code
    only."""
    run.given("all pods exist")
    claims = run.scene.claims
    tags = {
        claim: {
            key: value for key, value in entry.labels.items() if key not in judging.COMMON_LABELS and key != labels.NAME
        }
        for claim, entry in claims.items()
    }
    judging.expect_labels(run, CLAIMS, tags, judging.objects_by_name(run.at(LABELS_MIRRORED), CLAIMS, claims))
    for pod, claim_names in _pods_with_claims(run):
        _expect_claims(
            run, pod, [*items(pod, "spec", "initContainers"), *items(pod, "spec", "containers")], claim_names
        )


@requirement("RES-042")
def test_claims_have_the_spec_of_their_template(run: Recorded[FullFeaturedSet]) -> None:
    """The namespace has another template with the same name as one of the set's templates."""
    view = run.at(LABELS_MIRRORED)
    specs = {
        claim.name: expected_claims.embedded_spec(run.scene.workload, claim) for claim in run.scene.claims.values()
    }
    actual = {
        claim_name: value_or_absent(claim := view.get(CLAIMS, claim_name), pruned(spec, at(claim, "spec")))
        for claim_name, spec in specs.items()
    }
    run.same("specs of claims", specs, actual)


@requirement("RES-043")
def test_pods_have_the_claims_that_are_shared_with_them_and_use_them(run: Recorded[FullFeaturedSet]) -> None:
    """If a filter excludes too much, a claim is missing. Claims are identified by their names."""
    run.given("all pods exist", "claims exist")
    for pod, claim_names in _pods_with_claims(run):
        pod_claims = observed.claims_of_pod(pod)
        run.expect(f"claims that {name(pod)} lacks", [], [claim for claim in claim_names if claim not in pod_claims])
        containers = items(pod, "spec", "containers")
        used_claims = [claim for container in containers for claim in observed.claims_of_container(pod, container)]
        run.expect(
            f"claims that no container of {name(pod)} uses",
            [],
            [claim for claim in claim_names if claim not in used_claims],
        )


def _expect_claims(
    run: Recorded[FullFeaturedSet], pod: Document, containers: list[Document], claims: list[str]
) -> None:
    """Expect that each of these containers of a pod uses all claims."""
    for container in containers:
        used_claims = observed.claims_of_container(pod, container)
        description = f"claims that {name(pod)}/{text(container, 'name')} does not use"
        run.expect(description, [], [claim for claim in claims if claim not in used_claims])


@requirement("RES-044")
def test_pods_have_no_claims_of_others(run: Recorded[FullFeaturedSet]) -> None:
    """If a filter excludes too little, there is an extra claim. Claims are identified by their names."""
    run.given("claims exist")
    for pod, claim_names in _pods_with_claims(run):
        extra = [claim for claim in observed.claims_of_pod(pod) if claim not in claim_names]
        run.expect(f"claims that {name(pod)} must not have", [], extra)


# ------------------------------------------------------------------------------------------------------------------


def mirrored_values(workload: Document, kind: str) -> dict[str, str]:
    """Return the labels or annotations of a set that its gangs must have. Keys that Grove itself sets are left out
    (OBJ-230)."""
    set_values = mapping(workload, "metadata", kind)
    return {k: v for k, v in set_values.items() if not k.startswith(labels.OWN_PREFIX) and k != labels.MANAGED_BY}


def _values_on_gangs(
    workload: Document, expected_set: ExpectedObjects, view: View, field: str
) -> dict[str, dict[str, str | None] | Absent]:
    """Return gang → its values of the labels or annotations that it must take over from the set. Gangs may have other
    keys."""
    actual = {
        gang: value_or_absent(current := view.get("podgangs", gang), mapping(current, "metadata", field))
        for gang in expected_set.gangs
    }
    return values_of_expected_keys(dict.fromkeys(expected_set.gangs, mirrored_values(workload, field)), actual)


def _are_labels_mirrored(workload: Document, expected_set: ExpectedObjects) -> Predicate:
    expected_tags = mirrored_values(workload, "labels")

    def check(view: View) -> bool:
        current = _values_on_gangs(workload, with_actual_gang_names(expected_set, view), view, "labels")
        return all(observed_labels == expected_tags for observed_labels in current.values())

    return check


@predicate
def _has_token(view: View, set_name: str) -> bool | Unmet:
    secrets = judging.objects_of_set(view, "secrets", set_name).values()
    return any(text(secret, "data", "token") for secret in secrets) or Unmet(f"no Secret of {set_name} has a token")


def _objects_created_too_early(run: Recorded[FullFeaturedSet]) -> list[str]:
    """Return the scaling groups and gangs that were created before all standalone cliques of their replica existed."""
    expected_set = with_actual_gang_names(run.scene.expected, run.at(LABELS_MIRRORED))
    first_revisions: dict[tuple[str, str], int] = {}
    for record in run.until(LABELS_MIRRORED).records():
        first_revisions.setdefault((record.resource, record.name), record.revision)
    early_objects = []
    for index in range(len(expected_set.services)):
        standalone_cliques = [c.name for c in expected_set.cliques.values() if c.set_index == index and not c.group]
        last_revision = max(first_revisions.get(("podcliques", clique), 0) for clique in standalone_cliques)
        gangs = {clique.gang for clique in expected_set.cliques.values() if clique.set_index == index}
        groups = {
            clique.group for clique in expected_set.cliques.values() if clique.set_index == index and clique.group
        }
        later_objects = [
            *(("podgangs", gang) for gang in gangs),
            *(("podcliquescalinggroups", group) for group in groups),
        ]
        early_objects += [
            f"{resource}/{object_name}"
            for resource, object_name in later_objects
            if first_revisions.get((resource, object_name), last_revision) < last_revision
        ]
    return sorted(early_objects)


def _pods_with_claims(run: Recorded[FullFeaturedSet]) -> list[tuple[Document, list[str]]]:
    """Return each pod with its expected claims."""
    view, pods = run.at(LABELS_MIRRORED), []
    for clique in run.scene.expected.cliques.values():
        for pod in predicates.pods_of(view, clique.name):
            index = expected_pods.index(pod)
            claim_names = expected_claims.pod_claim_names(run.scene.workload, clique, -1 if index is None else index)
            pods.append((pod, list(claim_names)))
    return pods
