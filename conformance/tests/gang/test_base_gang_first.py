"""Tests that scaled PodGangs wait for their base PodGang.

A scaled gang holds a replica of a scaling group above minAvailable. It must not take capacity that its base gang still
needs, even if the scaled gang fits and the base gang does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance.grove.expected import ExpectedClique, expected
from conformance.grove.fields import condition_is, number
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.testing import composition, predicates
from conformance.testing.comparison import value_or_absent
from conformance.testing.observed import all_of
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement

Statuses = dict[str, dict[str, object]]
"""PodClique → its reported fields and conditions."""
BREACHED = "MinAvailableBreached"


class BaseGangShortOfNodes(Scene):
    """First there is one node, later there are more. Each replica of the scaling group `workers` fills a node. The base
    gang needs two nodes, while each scaled gang would fit on the first node. A replica has one prefill pod above its
    minimum."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 1)
        workload = env.workload(
            "disaggregated",
            routers=1,
            workers=4,
            workersMinAvailable=2,
            prefills=2,
            prefillsMinAvailable=1,
            prefillGpus=4,
            decodeGpus=4,
        )
        self.expected = expected(workload)
        [self.base_gang] = self.expected.base_gangs
        self.base_cliques = self.expected.of_gang(self.base_gang.name)
        self.scaled_cliques = [
            clique for gang in self.expected.scaled_gangs for clique in self.expected.of_gang(gang.name)
        ]
        env.create(workload)
        env.settle("all pods exist", predicates.all_exist([*self.base_cliques, *self.scaled_cliques]), 60)
        env.settle("all gangs exist", composition.all_in_gangs(self.expected.cliques), 60)
        env.wait_for("base gang ungated", predicates.all_ungated(self.base_cliques))

        # A later set that becomes bound proves that the operator and the scheduler are still working.
        later_set = env.workload("frontend", setName="later")
        env.create(later_set)
        env.wait_for("later set bound", predicates.all_bound(list(expected(later_set).cliques.values())))
        env.quiet(1)
        env.mark("nothing moves")
        env.settle("statuses at rest", _are_unscheduled(self.base_cliques, self.scaled_cliques), 60)

        # Now only the minimum of the base gang fits, and that is enough for the scaled gangs to lose their gates.
        env.nodes("dgx-h100", 1)
        env.wait_for("base gang bound", predicates.is_admitted(self.expected, self.base_gang))
        env.wait_for("minimum of the base gang Ready", predicates.has_minimum_ready(self.expected, self.base_gang))
        env.wait_for("scaled gangs ungated", predicates.all_ungated(self.scaled_cliques))
        env.nodes("dgx-h100", 4)
        minimums = (predicates.is_admitted(self.expected, gang) for gang in self.expected.scaled_gangs)
        env.wait_for("minimums of the scaled gangs bound", all_of(*minimums))


@requirement("GANG-001")
def test_each_replica_above_the_minimum_has_its_own_gang(run: Recorded[BaseGangShortOfNodes]) -> None:
    """Gangs are compared by the PodCliques that they hold, because the names of gangs differ between releases."""
    expected_cliques = sorted(sorted(gang.minimums) for gang in run.scene.expected.gangs.values())
    observed_cliques = sorted(map(composition.cliques_of, run.at("all gangs exist").list("podgangs")))
    run.expect("PodCliques of each gang", expected_cliques, observed_cliques)


@requirement("GANG-006", reaches="base gang ungated")
def test_a_waiting_base_gang_is_ungated(run: Recorded[BaseGangShortOfNodes]) -> None:
    """The gang does not fit on the only node, and one of its pods is above its minimum."""


@requirement("GANG-007")
def test_scaled_pods_keep_their_gate(run: Recorded[BaseGangShortOfNodes]) -> None:
    """A scaled gang would fit on the only node. If a scaled pod were bound too early, the base gang might never fit."""
    scaled_cliques = run.scene.scaled_cliques
    run.always("no pod of a scaled gang is bound", predicates.none_bound(scaled_cliques), until="nothing moves")
    run.always("no pod of a scaled gang is ungated", predicates.none_ungated(scaled_cliques), until="nothing moves")


@requirement("GANG-008", reaches="scaled gangs ungated")
def test_scaled_pods_lose_their_gate_after_the_base_gang(run: Recorded[BaseGangShortOfNodes]) -> None:
    """At that time, only the minimum of the base gang fits and becomes Ready. The pod above the minimum stays
    unscheduled."""


@requirement("SCHED-001")
def test_a_base_gang_that_does_not_fit_binds_nothing(run: Recorded[BaseGangShortOfNodes]) -> None:
    run.always("no pod of the base gang is bound", predicates.none_bound(run.scene.base_cliques), until="nothing moves")


@requirement("SCHED-002", reaches=("base gang bound", "minimums of the scaled gangs bound"))
def test_gangs_are_bound_once_nodes_appear(run: Recorded[BaseGangShortOfNodes]) -> None:
    """There is room for all pods at that time. Pods above the minimums are covered by SCHED-006."""


@requirement("SCHED-005", reaches="later set bound")
def test_a_later_set_is_bound(run: Recorded[BaseGangShortOfNodes]) -> None: ...


@requirement("CORE-027")
def test_statuses_say_that_nothing_is_scheduled(run: Recorded[BaseGangShortOfNodes]) -> None:
    """Pods of scaled gangs keep their gates, and pods of the base gang have lost their gates."""
    expected_statuses, observed_statuses = _compare_statuses(
        run.scene.base_cliques, run.scene.scaled_cliques, run.at("statuses at rest")
    )
    run.same("statuses of cliques without scheduled pods", expected_statuses, observed_statuses)


@requirement("CORE-028")
def test_no_group_is_called_sound_before_a_pod_is_scheduled(run: Recorded[BaseGangShortOfNodes]) -> None:
    """As long as none of its pods is scheduled, a scaling group must not report MinAvailableBreached=False."""
    records = run.until("statuses at rest").records("podcliquescalinggroups")
    records_without_breach = [str(record) for record in records if condition_is(record.object, BREACHED) == "False"]
    run.expect("scaling groups that were called sound while no pod was scheduled", [], records_without_breach)


test_invariants = invariants(
    BaseGangShortOfNodes, "INV-001", "INV-002", "INV-003", "INV-004", "INV-005", "INV-008", "INV-010"
)


def _compare_statuses(
    base_cliques: Sequence[ExpectedClique], scaled_cliques: Sequence[ExpectedClique], view: View
) -> tuple[Statuses, Mapping[str, object]]:
    """Return the statuses that the cliques must report while none of their pods is scheduled, and the observed
    statuses."""
    expected_statuses: Statuses = {}
    observed_statuses: dict[str, object] = {}
    for clique in (*base_cliques, *scaled_cliques):
        current, pods = view.get("podcliques", clique.name), clique.template.replicas
        expected_statuses[clique.name] = {
            "scheduledReplicas": 0,
            "scheduleGatedReplicas": pods if clique in scaled_cliques else 0,
            "PodCliqueScheduled": "False",
            BREACHED: "True",
        }
        observed: dict[str, object] = {
            key: number(current, "status", key) for key in ("scheduledReplicas", "scheduleGatedReplicas")
        }
        for condition_type in ("PodCliqueScheduled", BREACHED):
            observed[condition_type] = condition_is(current, condition_type)
        observed_statuses[clique.name] = value_or_absent(current, observed)
    return expected_statuses, observed_statuses


@predicate
def _are_unscheduled(
    view: View, base_cliques: Sequence[ExpectedClique], scaled_cliques: Sequence[ExpectedClique]
) -> bool | Unmet:
    """Every clique reports the status of a clique without scheduled pods."""
    expected_statuses, observed_statuses = _compare_statuses(base_cliques, scaled_cliques, view)
    return expected_statuses == observed_statuses or Unmet("the statuses are behind")
