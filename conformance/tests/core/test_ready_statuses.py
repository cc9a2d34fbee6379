"""Tests of the statuses of a set, its cliques and its scaling groups when every pod is Ready."""

from __future__ import annotations

from conformance.testing.scene import Recorded, requirement
from conformance.tests.core import statuses
from conformance.tests.core.published_sets import Published
from conformance.tests.core.ready_set import PODS_READY, STATUSES_AT_REST, ReadyDisaggregatedSet


@requirement("CORE-010")
def test_a_set_whose_pods_can_run_becomes_available(run: Recorded[ReadyDisaggregatedSet | Published]) -> None:
    """Whether pods become Ready is covered by other requirements."""
    run.given(PODS_READY)
    run.same(
        "status of the set",
        *statuses.compare_set_status(run.scene.expected, run.at(STATUSES_AT_REST), run.scene.set_name),
    )


@requirement("CORE-011")
def test_cliques_count_their_pods(run: Recorded[ReadyDisaggregatedSet | Published]) -> None:
    """Reasons and messages of the conditions are not judged."""
    run.given(PODS_READY)
    run.same("statuses of cliques", *statuses.compare_clique_statuses(run.scene.expected, run.at(STATUSES_AT_REST)))


@requirement("CORE-012")
def test_scaling_groups_count_their_replicas(run: Recorded[ReadyDisaggregatedSet | Published]) -> None:
    """Reasons and messages of the conditions are not judged."""
    run.given(PODS_READY)
    run.same(
        "statuses of scaling groups", *statuses.compare_group_statuses(run.scene.expected, run.at(STATUSES_AT_REST))
    )


@requirement("CORE-037")
def test_conditions_have_the_reasons_of_the_api(run: Recorded[ReadyDisaggregatedSet]) -> None:
    """Clients may rely on the reasons that the API defines."""
    run.same("reasons of conditions", *statuses.compare_reasons(run.scene.expected, run.at(STATUSES_AT_REST)))


@requirement("CORE-013")
def test_statuses_publish_the_pod_selector(run: Recorded[ReadyDisaggregatedSet]) -> None:
    """The selectors are compared by the pods that they select, not by their terms."""
    run.same(
        "selectors in statuses",
        *statuses.compare_selectors(run.scene.expected, run.at(STATUSES_AT_REST), run.scene.set_name),
    )


@requirement("CORE-030")
def test_template_hashes_agree(run: Recorded[ReadyDisaggregatedSet]) -> None:
    """How the hashes are computed is not judged."""
    run.given(PODS_READY)
    run.same(
        "hashes in labels and statuses",
        *statuses.compare_hashes(run.scene.expected, run.at(STATUSES_AT_REST), run.scene.set_name),
    )
