"""Tests of the objects that are created for a set: their names, labels, owners, finalizers and specs, and the
Services."""

from __future__ import annotations

from collections.abc import Callable

from conformance.grove import labels
from conformance.grove.fields import finalizers, name, text
from conformance.grove.fields import labels as labels_of
from conformance.testing import predicates
from conformance.testing.comparison import value_or_absent
from conformance.testing.composition import cliques_of
from conformance.testing.owners import owner_comparison
from conformance.testing.scene import Recorded, invariants, requirement
from conformance.testing.services import headless_services
from conformance.tests.core import objects
from conformance.tests.core.every_pod_field import PODS_EXIST, SetWithEveryPodField
from conformance.tests.core.pods_of_set import judged_pods
from conformance.tests.core.published_sets import Published, RoutedSet, WideExpertParallelSet
from conformance.tests.core.ready_set import STATUSES_AT_REST, ReadyDisaggregatedSet


@requirement("CORE-001")
def test_exactly_the_expected_objects_exist(run: Recorded[ReadyDisaggregatedSet]) -> None:
    """Services that are not headless serve other purposes. Additional headless Services are not judged, because the
    comment on headlessServiceConfig announces a Service for every PodGang."""
    view = run.at(STATUSES_AT_REST)
    for resource, expected in objects.labels_by_resource(run.scene.expected_names).items():
        if resource == "services":
            services = view.list(resource)
            headless = {name(service) for service in services if text(service, "spec", "clusterIP") == "None"}
            run.expect("headless Services by name", sorted(expected), sorted(expected.keys() & headless))
        elif resource != "podgangs":
            run.expect(f"{resource} by name", sorted(expected), view.names(resource))


@requirement("CORE-032")
def test_each_replica_has_its_gangs_and_pods_name_them(run: Recorded[ReadyDisaggregatedSet]) -> None:
    """Gangs are compared by the cliques that they hold. Only the names of base gangs are fixed."""
    view, expected_finalizers = run.at(STATUSES_AT_REST), run.scene.expected_names
    gangs = sorted(map(cliques_of, view.list("podgangs")))
    run.expect(
        "PodCliques of each gang", sorted(sorted(gang.minimums) for gang in expected_finalizers.gangs.values()), gangs
    )
    expected = {gang.name: sorted(gang.minimums) for gang in expected_finalizers.base_gangs}
    observed = {gang: cliques_of(obj) for gang in expected if (obj := view.get("podgangs", gang)) is not None}
    run.expect("PodCliques of the base gangs by name", expected, observed)
    _compare_labels_of_pods(run, lambda key: key == labels.GANG)


@requirement("CORE-002")
def test_objects_carry_the_common_labels(run: Recorded[ReadyDisaggregatedSet]) -> None:
    """No document specifies the component label of a Pod."""
    _compare_labels(run, lambda key: objects.is_of_set(key) or key == labels.COMPONENT)
    _compare_labels_of_pods(run, objects.is_of_set)


@requirement("CORE-034")
def test_objects_carry_their_name_as_a_label(run: Recorded[ReadyDisaggregatedSet]) -> None:
    """PodGangs have no such label, and Pods have random names."""
    _compare_labels(run, lambda key: key == labels.NAME)
    _compare_labels_of_pods(run, lambda key: key in (labels.NAME, labels.COMPONENT))


@requirement("CORE-003")
def test_objects_carry_groves_labels(run: Recorded[ReadyDisaggregatedSet]) -> None:
    """Labels that name gangs, and labels of templates, are covered by other requirements."""

    def is_chosen(key: str) -> bool:
        return key.startswith(labels.OWN_PREFIX) and not objects.is_of_gangs(key)

    _compare_labels(run, is_chosen)
    _compare_labels_of_pods(run, is_chosen)


@requirement("CORE-033")
def test_gangs_and_cliques_have_upstreams_names_and_labels(run: Recorded[ReadyDisaggregatedSet]) -> None:
    """These names and labels appear only in upstream's code and not in any document."""
    view, expected_set = run.at(STATUSES_AT_REST), run.scene.expected
    expected = {gang.name: sorted(gang.minimums) for gang in run.scene.expected_names.scaled_gangs}
    observed = {gang: value_or_absent(obj := view.get("podgangs", gang), cliques_of(obj)) for gang in expected}
    run.same("PodCliques of the scaled gangs by name", expected, observed)
    _compare_labels(run, objects.is_of_gangs)
    _compare_labels_of_pods(run, lambda key: key == labels.BASE_GANG)
    base_labels = [clique for clique in expected_set.cliques.values() if not clique.base_gang]
    base_objects = [view.get("podcliques", clique.name) for clique in base_labels]
    base_objects += [pod for pods in predicates.pods_by_clique(view, base_labels).values() for pod in pods]
    marked_pods = [name(obj) for obj in base_objects if labels.BASE_GANG in labels_of(obj)]
    run.expect("cliques and pods of the base gang that name a base gang", [], marked_pods)


def _compare_labels(run: Recorded[ReadyDisaggregatedSet], is_chosen: Callable[[str], bool]) -> None:
    view = run.at(STATUSES_AT_REST)
    for resource, expected in objects.labels_by_resource(run.scene.expected).items():
        run.same(f"labels of {resource}", *objects.compare_labels(expected, resource, view, is_chosen))


def _compare_labels_of_pods(run: Recorded[ReadyDisaggregatedSet], is_chosen: Callable[[str], bool]) -> None:
    for pod in judged_pods(run):
        expected = {name(pod.observed_pod): pod.template_pod.labels}
        run.same("labels of a pod", *objects.compare_labels(expected, "pods", run.at(STATUSES_AT_REST), is_chosen))


@requirement("CORE-004")
def test_cliques_have_their_owner(run: Recorded[ReadyDisaggregatedSet]) -> None:
    """The UID is compared as well, because a deleted owner with the same name does not count."""
    view, cliques = run.at(STATUSES_AT_REST), run.scene.expected.cliques
    podcliques = {clique: view.get("podcliques", clique) for clique in cliques}
    run.same(
        "owners of cliques",
        *owner_comparison({name: clique.owner for name, clique in cliques.items()}, podcliques, view),
    )


@requirement("CORE-045")
def test_objects_have_their_controller(run: Recorded[ReadyDisaggregatedSet]) -> None:
    """The UID is compared as well, because a deleted owner with the same name does not count."""
    view = run.at(STATUSES_AT_REST)
    for resource, owners in objects.owners_by_resource(run.scene.expected, view).items():
        run.same(f"controllers of {resource}", *objects.compare_controllers(owners, resource, view))


@requirement("CORE-035")
def test_references_to_controllers_block_their_deletion(run: Recorded[ReadyDisaggregatedSet]) -> None:
    """An object without a controller fails another requirement."""
    view = run.at(STATUSES_AT_REST)
    for resource, owners in objects.owners_by_resource(run.scene.expected, view).items():
        run.same(f"blockOwnerDeletion of {resource}", *objects.compare_blocking_owners(owners, resource, view))


@requirement("CORE-036")
def test_objects_are_created_with_their_finalizer(run: Recorded[ReadyDisaggregatedSet]) -> None:
    """Without the finalizer, an early deletion would remove the object immediately."""
    run.invariant()


@requirement("CORE-005")
def test_objects_carry_their_finalizer(run: Recorded[ReadyDisaggregatedSet]) -> None:
    """Another requirement covers when objects get the finalizer."""
    view = run.at(STATUSES_AT_REST)
    for finalizer, resource, names in objects.expected_finalizers(run.scene.expected, run.scene.set_name):
        current = {object_name: view.get(resource, object_name) for object_name in names}
        observed = {
            object_name: value_or_absent(obj, finalizer in finalizers(obj)) for object_name, obj in current.items()
        }
        run.same(f"{resource} with the finalizer {finalizer}", dict.fromkeys(names, True), observed)


@requirement("CORE-006")
def test_each_replica_has_a_headless_service(run: Recorded[ReadyDisaggregatedSet]) -> None:
    """The set has a headlessServiceConfig. Selectors of Services are judged by the pods that they select."""
    run.same("headless Services", *headless_services(run.scene.expected, run.at(STATUSES_AT_REST)))


@requirement("CORE-015")
def test_specs_repeat_their_templates(run: Recorded[ReadyDisaggregatedSet | Published]) -> None:
    scene = run.scene
    run.same(
        "specs of cliques and scaling groups",
        *objects.compare_specs(scene.expected, scene.accepted_pods, run.at(STATUSES_AT_REST)),
    )


@requirement("CORE-015")
def test_specs_repeat_every_field_of_their_templates(run: Recorded[SetWithEveryPodField]) -> None:
    """All fields that the API server serves are judged, whatever the version of Kubernetes."""
    scene = run.scene
    run.same("specs of cliques", *objects.compare_specs(scene.expected, scene.accepted_pods, run.at(PODS_EXIST)))


test_invariants = invariants(ReadyDisaggregatedSet | Published, "INV-001", "INV-002", "INV-003", "INV-004", "INV-005")


test_invariants_of_waits = invariants(WideExpertParallelSet | RoutedSet, "INV-006", "INV-026")
