"""The tests of `run --quick`: a first impression of an implementation, in about a minute.

There are a few tests of each of the five profiles that the other profiles build upon. Their scenes are the shortest
ones according to fixtures/costs/scenes.yaml: none of them restarts the implementation or waits for more than a few
seconds.
"""

from __future__ import annotations

from collections.abc import Iterable

MAX_SECONDS = 45
"""Maximum total seconds of the scenes; the rest of the minute is for the cluster."""

PLAIN_SCENE = "ReadyDisaggregatedSet"
"""The scene that is chosen for tests with several scenes."""
TESTS = {
    # One set that becomes Ready, which must work before anything else can be judged.
    "core/test_managed_objects.py::test_exactly_the_expected_objects_exist": "CORE-001",
    f"core/test_pods_of_a_set.py::test_cliques_have_their_pods_with_index_and_subdomain[{PLAIN_SCENE}]": "CORE-007",
    f"core/test_ready_statuses.py::test_a_set_whose_pods_can_run_becomes_available[{PLAIN_SCENE}]": "CORE-010",
    "core/test_gangs_of_a_set.py::test_gangs_refer_to_the_pods_of_their_cliques": "GANG-002",
    "core/test_gangs_of_a_set.py::test_pods_are_created_with_the_gate": "GANG-005",
    # Gates and placement, which make pods a gang. The two scheduler tests are the only ones for an implementation
    # without an operator.
    "gang/test_foreign_gates.py::test_only_groves_own_gate_is_removed": "GANG-020",
    "gang/test_services_torn_apart.py::test_no_prefill_pod_is_bound_where_no_decode_pod_fits": "SCHED-007",
    "gang/test_services_torn_apart.py::test_a_service_over_six_nodes_waits_for_the_sixth": "SCHED-008",
    # One change of each kind: the startup order, a scale-in, a breach.
    "startup/test_waiting.py::test_pods_wait_for_their_parents": "START-011",
    "scaling/test_excess_pods.py::test_terminating_pods_are_not_counted": "SCALE-011",
    "termination/test_emptied_cliques.py::test_a_clique_without_any_pod_has_its_replica_recreated": "TERM-001",
}
"""Test → the requirement that it judges."""


def is_quick(tests: Iterable[str]) -> bool:
    """Return whether the selected tests of a run are exactly the tests of `--quick`."""
    return set(tests) == set(TESTS)
