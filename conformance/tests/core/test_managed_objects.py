"""The objects that a set becomes: names, labels, owners, finalizers, Services and specs."""

from __future__ import annotations

from collections.abc import Callable

from conformance.grove import labels
from conformance.grove.fields import finalizers, name
from conformance.grove.fields import labels as labels_of
from conformance.testing.comparison import of
from conformance.testing.scene import Recorded, invariants, requirement
from conformance.testing.services import headless_services
from conformance.tests.core import objects
from conformance.tests.core.pods_of_set import each_pod
from conformance.tests.core.ready_set import READY, ReadyDisaggregatedSet


@requirement("CORE-001")
def test_exactly_the_expected_objects_exist(run: Recorded[ReadyDisaggregatedSet]) -> None:
    """The operator MUST create exactly the PodCliques, scaling groups and Services that the set requires."""
    view = run.at(READY)
    for resource, wanted in objects.managed(run.scene.named).items():
        if resource != "podgangs":
            run.expect(f"{resource} by name", sorted(wanted), view.names(resource))


@requirement("CORE-032")
def test_gangs_have_the_names_of_the_naming_scheme(run: Recorded[ReadyDisaggregatedSet]) -> None:
    """The operator MUST create exactly the base PodGang of a replica, and a PodGang for each further group replica."""
    run.expect("podgangs by name", sorted(run.scene.named.gangs), run.at(READY).names("podgangs"))


@requirement("CORE-002")
def test_objects_carry_the_common_labels(run: Recorded[ReadyDisaggregatedSet]) -> None:
    """The app.kubernetes.io labels of every managed object MUST name its manager, its set and its component."""
    _compare_labels(run, objects.is_common)


@requirement("CORE-003")
def test_objects_carry_groves_labels(run: Recorded[ReadyDisaggregatedSet]) -> None:
    """Managed objects MUST carry the grove.io labels that locate them, and a PodClique those of its template."""
    _compare_labels(run, lambda key: not objects.is_common(key) and not objects.is_of_gangs(key))


@requirement("CORE-033")
def test_objects_name_their_gangs(run: Recorded[ReadyDisaggregatedSet]) -> None:
    """PodCliques and Pods MUST name their PodGang, and those of scaled PodGangs, and no others, their base PodGang."""
    _compare_labels(run, objects.is_of_gangs)
    view = run.at(READY)
    of_base = [clique.name for clique in run.scene.wanted.cliques.values() if not clique.base_gang]
    marked = [found for found in of_base if labels.BASE_GANG in labels_of(view.get("podcliques", found))]
    run.expect("cliques of the base gang that name a base gang", [], marked)


def _compare_labels(run: Recorded[ReadyDisaggregatedSet], chosen: Callable[[str], bool]) -> None:
    view = run.at(READY)
    for resource, wanted in objects.managed(run.scene.wanted).items():
        run.same(f"labels of {resource}", *objects.labels_carried(wanted, resource, view, chosen))
    for pod in each_pod(run):
        wanted = {name(pod.seen): pod.right.labels}
        run.same("labels of a pod", *objects.labels_carried(wanted, "pods", view, chosen))


@requirement("CORE-004")
def test_objects_have_their_controller(run: Recorded[ReadyDisaggregatedSet]) -> None:
    """Every managed object MUST have exactly one controller, the one of its kind, with blockOwnerDeletion set."""
    view = run.at(READY)
    for resource, wanted in objects.owners(run.scene.wanted, view).items():
        run.same(f"controllers of {resource}", *objects.controllers(wanted, resource, view))


@requirement("CORE-005")
def test_objects_carry_their_finalizer(run: Recorded[ReadyDisaggregatedSet]) -> None:
    """Sets, PodCliques and scaling groups MUST carry the Grove finalizer of their kind.

    What the operator creates has it from its creation on: else a deletion that comes early takes it away at once.
    """
    run.unbroken()
    view = run.at(READY)
    for finalizer, resource, found in objects.finalizers_of(run.scene.wanted, run.scene.set_name):
        held = {one: of(it := view.get(resource, one), finalizer in finalizers(it)) for one in found}
        run.same(f"{resource} with the finalizer {finalizer}", dict.fromkeys(found, True), held)


@requirement("CORE-006")
def test_each_replica_has_a_headless_service(run: Recorded[ReadyDisaggregatedSet]) -> None:
    """Each replica of a set MUST have a headless Service that selects its Pods, also those that are not ready."""
    run.same("headless Services", *headless_services(run.scene.wanted, run.at(READY)))


@requirement("CORE-015")
def test_specs_repeat_their_templates(run: Recorded[ReadyDisaggregatedSet]) -> None:
    """The specs of PodCliques and PodCliqueScalingGroups MUST repeat their templates."""
    run.same("specs of cliques and scaling groups", *objects.specs(run.scene.wanted, run.at(READY)))


@invariants("INV-001", "INV-002", "INV-003", "INV-004", "INV-005")
def test_invariants(run: Recorded[ReadyDisaggregatedSet], invariant: str) -> None:
    """What MUST hold at every moment of any history."""
    run.invariant()
