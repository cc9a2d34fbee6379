"""Tests of the PodGangs of a set: their PodGroups, references, scheduler and priority, and the order of creation."""

from __future__ import annotations

from conformance.grove import labels, pods
from conformance.suite.outcomes.checks import ABSENT
from conformance.testing.scene import Recorded, requirement
from conformance.tests.core import gang_objects
from conformance.tests.core.ready_set import STATUSES_AT_REST, ReadyDisaggregatedSet


@requirement("GANG-001")
def test_podgroups_have_the_minimums_of_their_cliques(run: Recorded[ReadyDisaggregatedSet]) -> None:
    """According to upstream's proposal, the minimums of standalone cliques are set to 0 after the placement, so the
    first minimums are judged as well."""
    run.same(
        "PodGroups with their first minimums",
        *gang_objects.compare_minimums(run.scene.expected, run.until(STATUSES_AT_REST)),
    )
    run.same(
        "PodGroups with their minimums",
        *gang_objects.compare_later_minimums(run.scene.expected, run.at(STATUSES_AT_REST)),
    )


@requirement("GANG-002")
def test_gangs_refer_to_the_pods_of_their_cliques(run: Recorded[ReadyDisaggregatedSet]) -> None:
    """The references are compared as sets when the set is Ready, because they are written only when all pods exist."""
    run.same("podReferences", *gang_objects.compare_references(run.scene.expected, run.at(STATUSES_AT_REST)))


@requirement("GANG-003")
def test_gangs_name_their_scheduler(run: Recorded[ReadyDisaggregatedSet]) -> None:
    gang_by_pod = gang_objects.compare_schedulers(run.scene.expected, run.at(STATUSES_AT_REST), run.scene.scheduler)
    run.same("scheduler of gangs", *gang_by_pod)


@requirement("GANG-004")
def test_gangs_of_a_ready_set_are_initialized(run: Recorded[ReadyDisaggregatedSet]) -> None:
    run.same("Initialized of gangs", *gang_objects.compare_initialized(run.scene.expected, run.at(STATUSES_AT_REST)))


@requirement("GANG-005")
def test_pods_are_created_with_the_gate(run: Recorded[ReadyDisaggregatedSet]) -> None:
    """The first record of each pod in all histories of the run is judged."""
    run.invariant()


@requirement("GANG-026")
def test_the_gate_has_its_name(run: Recorded[ReadyDisaggregatedSet]) -> None:
    """The first record of each pod is judged, because the gate is removed later. Pods may have additional gates."""
    first: dict[str, object] = {}
    for record in run.until(STATUSES_AT_REST).records("pods"):
        gates = pods.gates(record.object)
        first.setdefault(record.name, labels.GATE if labels.GATE in gates else sorted(gates))
    first = first or {"a pod of the set": ABSENT}
    run.same("gate of pods at their creation", dict.fromkeys(first, labels.GATE), first)


@requirement("GANG-023")
def test_gangs_are_created_whole_and_before_their_references(run: Recorded[ReadyDisaggregatedSet]) -> None:
    run.judge_violation()
    span, gangs = run.until(STATUSES_AT_REST), run.scene.expected.gangs
    expected: dict[str, object] = {name: sorted(gang.minimums) for name, gang in gangs.items()}
    observed = {**dict.fromkeys(expected, ABSENT), **gang_objects.initial_groups_by_gang(span)}
    run.same("PodGroups of gangs at their creation", expected, observed)


@requirement("GANG-024")
def test_pods_are_created_after_their_gang(run: Recorded[ReadyDisaggregatedSet]) -> None:
    """The order of the API server's writes in all histories of the run is judged."""
    run.invariant()
