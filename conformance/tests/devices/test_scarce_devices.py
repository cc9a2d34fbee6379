"""Tests of gangs that compete for devices. A gang gets devices for its whole minimum, or none."""

from __future__ import annotations

from conformance.testing import devices, predicates
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement

TEMPLATE = "one-gpu"


class GangsThatCompeteForDevices(Scene):
    """Two nodes with two devices each, and a gang of three pods that gets three devices. A gang of four pods needs more
    devices than are free, and a later gang of six pods more than exist; each pod has a claim for one device. The gang
    of three is deleted, so that the gang of four fits. It is the oldest one that waits, so a scheduler with a strict
    queue binds it too."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 2, gpus="devices")
        env.create(devices.claim_template(TEMPLATE, devices.claim_spec()))
        first, self.first = devices.gang(env, "first", 3, TEMPLATE)
        too_large, self.too_large = devices.gang(env, "too-large", 6, TEMPLATE)
        waiting, self.waiting = devices.gang(env, "waiting", 4, TEMPLATE)
        small, self.small = devices.gang(env, "small", 1, TEMPLATE)

        env.create(first)
        env.wait_for("gang with free devices is ready", predicates.is_available("first", 1))
        env.create(waiting)
        env.quiet(1.2, real=True)  # creation times are in whole seconds, and tell which gang is the older one
        env.create(too_large)
        env.wait_for("gangs without devices ungated", predicates.all_ungated([*self.too_large, *self.waiting]))
        env.create(small)
        env.settle("gang that needs the last device bound", predicates.all_bound(self.small), 60)
        env.quiet(1)
        env.mark("no device free")
        env.delete("podcliquesets", "small")
        env.delete("podcliquesets", "first")
        env.settle("waiting gang bound on freed devices", predicates.all_bound(self.waiting), 60)
        env.settle("waiting gang is ready", predicates.is_available("waiting", 1), 60)
        env.quiet(1)
        env.mark("devices freed")


@requirement("DEV-001", reaches="gang with free devices is ready")
def test_a_gang_with_free_devices_runs(run: Recorded[GangsThatCompeteForDevices]) -> None:
    """The claims are allocated and reserved, as the kubelet demands of each pod that is Ready."""
    view = run.at("gang with free devices is ready")
    pods = [pod for clique in run.scene.first for pod in predicates.pods_of(view, clique.name)]
    claims = devices.claims_of(view, pods)
    allocated = {claim for claim, resource in claims.items() if resource and devices.allocated_devices(resource)}
    run.expect("claims with a device", set(claims), allocated)


@requirement("DEV-002")
def test_no_device_is_allocated_twice(run: Recorded[GangsThatCompeteForDevices]) -> None:
    run.always("no device is in two allocations", devices.are_allocated_once(), until="devices freed")


@requirement("DEV-003")
def test_a_gang_without_devices_is_not_bound(run: Recorded[GangsThatCompeteForDevices]) -> None:
    """Once nothing moves, no pod of a gang that lacks devices is bound, whether or not another gang has the devices."""
    for clique in (*run.scene.too_large, *run.scene.waiting):
        count = predicates.bound_counts(run.at("no device free"), [clique])[clique.name]
        run.expect(f"bound pods of {clique.name}", 0, count)
    (too_large,) = run.scene.too_large
    count = predicates.bound_counts(run.at("devices freed"), [too_large])[too_large.name]
    run.expect(f"bound pods of {too_large.name} once the others have devices", 0, count)


@requirement("DEV-004", reaches="gang that needs the last device bound")
def test_waiting_gangs_hold_no_device(run: Recorded[GangsThatCompeteForDevices]) -> None: ...


@requirement("DEV-005", reaches=("waiting gang bound on freed devices", "waiting gang is ready"))
def test_freed_devices_are_used_again(run: Recorded[GangsThatCompeteForDevices]) -> None: ...


test_invariants = invariants(GangsThatCompeteForDevices, "INV-003", "INV-010")
