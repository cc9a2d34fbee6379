"""Tests of devices that fail: Kubernetes keeps new gangs off them or evicts the pods that use them."""

from __future__ import annotations

from conformance.grove.expected import ExpectedClique
from conformance.history.query import Predicate, Unmet
from conformance.history.view import View
from conformance.testing import devices, disruption, observed, predicates, replaced
from conformance.testing.devices import Device
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement

TEMPLATE, TOLERANT_TEMPLATE = "one-gpu", "one-gpu-of-any-health"
TOLERATION = {"operator": "Exists", "effect": "NoSchedule"}
TERMINATION_DELAY = "2s"
"""The terminationDelay while the gang loses a pod that cannot be replaced. The scene waits for the termination."""


class DevicesThatFail(Scene):
    """Two nodes with two devices each, of which one has failed. A gang of three pods uses the others, and a pod that
    tolerates the failure uses the failed device. When it is gone, a pod that does not tolerate the failure waits.

    Then a device of the gang is drained: one pod is evicted, and no device is free for another one. The operator
    terminates the gang, whose pods wait together. The device that failed first is repaired, and the gang fits again.
    In the end the other device is repaired, and a device is drained while that one is free. Only one gang waits at a
    time."""

    def play(self, env: SceneEnvironment) -> None:
        node, *_ = env.nodes("tiny", 2, gpus="devices")
        first_failure: Device = devices.DRIVER, node, "gpu-0"
        _fail(env, first_failure)
        env.create(devices.claim_template(TEMPLATE, devices.claim_spec()))
        tolerant_spec = devices.claim_spec(devices.request(tolerations=[TOLERATION]))
        env.create(devices.claim_template(TOLERANT_TEMPLATE, tolerant_spec))
        three, (self.three,) = devices.gang(env, "three", 3, TEMPLATE)
        three["spec"]["template"]["terminationDelay"] = TERMINATION_DELAY
        tolerant, tolerant_cliques = devices.gang(env, "tolerant", 1, TOLERANT_TEMPLATE)
        waiting, self.waiting = devices.gang(env, "waiting", 1, TEMPLATE)

        env.create(three)
        env.wait_for("gang on the other devices is ready", predicates.is_available("three", 1))
        env.create(tolerant)
        env.settle("pod that tolerates the failure bound", predicates.all_bound(tolerant_cliques), 60)
        env.delete("podcliquesets", "tolerant")
        env.wait_for("failed device not allocated", _is_free(first_failure))
        env.create(waiting)
        env.wait_for("pod without a device ungated", predicates.all_ungated(self.waiting))
        env.quiet(1)
        env.mark("only the failed device free")
        env.delete("podcliquesets", "waiting")
        env.wait_for("no other gang waits", observed.are_absent("podcliques", [clique.name for clique in self.waiting]))

        drained = _used_devices(env.history.view(), self.three)[0]
        previous_uids = replaced.pod_uids(env.history.view(), [self.three])
        _fail(env, drained, drain=True)
        env.wait_for("gang terminated", replaced.are_replaced([self.three], previous_uids))
        env.quiet(1)
        env.mark("two of three devices free")
        _repair(env, first_failure)
        env.wait_for("gang bound once a device is repaired", predicates.all_bound([self.three]))

        disruption.set_termination_delay(env, ["three"], "1h")
        _repair(env, drained)
        victim = _used_device_beside(env.history.view(), self.three, drained)
        previous_uids = replaced.pod_uids(env.history.view(), [self.three])
        _fail(env, victim, drain=True)
        env.wait_for("pod of the drained device evicted", replaced.has_lost_pods([self.three], previous_uids))
        env.settle("evicted pod replaced on another device", predicates.all_bound([self.three]), 60)
        env.quiet(1)
        env.mark("pod replaced")


@requirement("DEV-022")
def test_failed_devices_are_not_allocated(run: Recorded[DevicesThatFail]) -> None:
    run.always("no device is allocated despite its taint", devices.allocations_are_tolerant(), until="pod replaced")


@requirement("DEV-023", reaches="pod that tolerates the failure bound")
def test_a_failure_may_be_tolerated(run: Recorded[DevicesThatFail]) -> None: ...


@requirement("DEV-003")
def test_a_gang_does_not_start_without_devices_in_order(run: Recorded[DevicesThatFail]) -> None:
    """Neither the pod for which only the failed device is free, nor the terminated gang."""
    for step, cliques in (
        ("only the failed device free", run.scene.waiting),
        ("two of three devices free", [run.scene.three]),
    ):
        count = sum(predicates.bound_counts(run.at(step), cliques).values())
        run.expect(f"bound pods of {cliques[0].name}", 0, count)


@requirement("DEV-024", reaches="evicted pod replaced on another device")
def test_an_evicted_pod_is_replaced(run: Recorded[DevicesThatFail]) -> None: ...


@requirement("DEV-025", reaches="gang bound once a device is repaired")
def test_repaired_devices_are_used(run: Recorded[DevicesThatFail]) -> None: ...


test_invariants = invariants(DevicesThatFail, "INV-003", "INV-010")


def _fail(env: SceneEnvironment, device: Device, *, drain: bool = False) -> None:
    _, node, device_name = device
    env.fail_gpu(node, device_name, drain=drain)


def _repair(env: SceneEnvironment, device: Device) -> None:
    _, node, device_name = device
    env.repair_gpu(node, device_name)


def _used_devices(view: View, clique: ExpectedClique) -> list[Device]:
    """Return the devices that the claims of a clique's pods have."""
    claims = devices.claims_of(view, predicates.pods_of(view, clique.name))
    return sorted(device for claim in claims.values() if claim for device in devices.allocated_devices(claim))


def _used_device_beside(view: View, clique: ExpectedClique, other: Device) -> Device:
    """Return the device of a clique that is on the node of another one."""
    _, pool, _ = other
    return next(device for device in _used_devices(view, clique) if device[1] == pool and device != other)


def _is_free(device: Device) -> Predicate:
    return lambda view: device not in devices.claims_of_devices(view) or Unmet(f"{device[2]} is still allocated")
