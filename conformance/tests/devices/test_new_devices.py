"""Tests of gangs that wait for devices of a new node, and of a gang that preempts others for their devices."""

from __future__ import annotations

from collections.abc import Callable

from conformance.grove.expected import ExpectedClique, expected
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.testing import devices, predicates
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement

TEMPLATE = "one-gpu"
PRIORITY_CLASS = "system-cluster-critical"
"""A PriorityClass that every cluster has and that pods in any namespace may use."""


class GangsThatWaitForNodes(Scene):
    """No node has devices. A gang of eight pods has a minimum of one, and a later gang has a minimum of seven; each pod
    has a claim for one device. Then a node with eight devices appears. When all devices are allocated, a gang of higher
    priority needs two of them."""

    def play(self, env: SceneEnvironment) -> None:
        env.create(devices.claim_template(TEMPLATE, devices.claim_spec()))
        self.cliques = {}
        for set_name, pods, minimum, priority_class in (
            ("extra", 8, 1, ""),
            ("minimum", 7, 7, ""),
            ("urgent", 2, 2, PRIORITY_CLASS),
        ):
            workload = env.workload("frontend", setName=set_name, pods=pods)
            workload = devices.with_claim(workload, {"resourceClaimTemplateName": TEMPLATE})
            template = workload["spec"]["template"]
            template["cliques"][0]["spec"]["minAvailable"] = minimum
            if priority_class:
                template["priorityClassName"] = priority_class
            (self.cliques[set_name],) = expected(workload).cliques.values()
            if set_name == "urgent":
                waiting = [self.cliques["extra"], self.cliques["minimum"]]
                env.wait_for("gangs without devices ungated", predicates.all_ungated(waiting))
                env.quiet(1)
                env.nodes("dgx-h100", 1, gpus="devices")
                env.settle("a gang bound on the new devices", _have_bound(self.cliques, extra=1), 60)
                env.settle("minimums bound on the new devices", _have_bound(self.cliques, extra=1, minimum=7), 60)
                env.quiet(1)
                env.mark("devices added")
            env.create(workload)
        env.settle("gang of higher priority bound", _have_bound(self.cliques, urgent=2), 60)
        env.quiet(1)
        env.mark("gang of higher priority placed")


@requirement("DEV-013", reaches="a gang bound on the new devices")
def test_new_devices_are_used(run: Recorded[GangsThatWaitForNodes]) -> None: ...


@requirement("DEV-014", reaches="minimums bound on the new devices")
def test_devices_go_to_minimums_before_extra_pods(run: Recorded[GangsThatWaitForNodes]) -> None: ...


@requirement("DEV-015", reaches="gang of higher priority bound")
def test_a_gang_of_higher_priority_gets_devices(run: Recorded[GangsThatWaitForNodes]) -> None: ...


@requirement("DEV-002")
def test_no_device_is_allocated_twice_in_a_preemption(run: Recorded[GangsThatWaitForNodes]) -> None:
    run.always("no device is in two allocations", devices.are_allocated_once(), until="gang of higher priority placed")


test_invariants = invariants(GangsThatWaitForNodes, "INV-003", "INV-010")


def _have_bound(cliques: dict[str, ExpectedClique], **minimums: int) -> Callable[[View], bool | Unmet]:
    """Return a predicate: these sets have at least so many bound pods."""

    def have_bound(view: View) -> bool | Unmet:
        for set_name, minimum in minimums.items():
            count = sum(predicates.bound_counts(view, [cliques[set_name]]).values())
            if count < minimum:
                return Unmet(f"{count} of {minimum} pods of {set_name} are bound")
        return True

    return have_bound
