"""Tests of gangs that need partitions of a card, or a whole card. Shared counters tell which of them are free."""

from __future__ import annotations

from conformance.testing import devices, predicates
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement

PARTITION, CARD = "one-partition", "whole-card"
PROFILE = "1g.2gb"
"""The smallest partition, of which a card has seven."""


class GangsOnOneCard(Scene):
    """One node with one card, which can be split into seven small partitions at any places. A gang of four pods with a
    partition each runs; a second such gang waits, because three partitions are left. The first gang is deleted, so
    that the second one fits. Then a pod waits for the whole card until the second gang is deleted, too, and a pod that
    needs a partition waits while the whole card is allocated. At no time do two gangs wait, so their order does not
    matter."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("single-mig", 1, gpus="devices")
        selector = {"cel": {"expression": f'device.attributes["gpu.nvidia.com"].profile == "{PROFILE}"'}}
        partition = {"deviceClassName": devices.PARTITION_CLASS, "selectors": [selector]}
        env.create(devices.claim_template(PARTITION, devices.claim_spec({"name": "mig", "exactly": partition})))
        env.create(devices.claim_template(CARD, devices.claim_spec()))
        first, _ = devices.gang(env, "first", 4, PARTITION)
        second, self.second = devices.gang(env, "second", 4, PARTITION)
        whole, self.whole = devices.gang(env, "whole", 1, CARD)
        small, self.small = devices.gang(env, "small", 1, PARTITION)

        env.create(first)
        env.wait_for("gang with partitions is ready", predicates.is_available("first", 1))
        env.create(second)
        env.wait_for("gang without partitions ungated", predicates.all_ungated(self.second))
        env.quiet(1)
        env.mark("three partitions free")
        env.delete("podcliquesets", "first")
        env.settle("waiting gang bound to freed partitions", predicates.all_bound(self.second), 60)
        env.create(whole)
        env.wait_for("gang without a card ungated", predicates.all_ungated(self.whole))
        env.quiet(1)
        env.mark("card split")
        env.delete("podcliquesets", "second")
        env.settle("gang with the whole card bound", predicates.all_bound(self.whole), 60)
        env.create(small)
        env.wait_for("gang that needs a partition ungated", predicates.all_ungated(self.small))
        env.quiet(1)
        env.mark("card taken")


@requirement(
    "DEV-021",
    reaches=(
        "gang with partitions is ready",
        "waiting gang bound to freed partitions",
        "gang with the whole card bound",
    ),
)
def test_partitions_are_allocated_as_far_as_counters_reach(run: Recorded[GangsOnOneCard]) -> None: ...


@requirement("DEV-020")
def test_counters_are_not_exceeded(run: Recorded[GangsOnOneCard]) -> None:
    run.always("allocated devices consume what their counters have", devices.counters_suffice(), until="card taken")


@requirement("DEV-003")
def test_a_gang_that_lacks_a_partition_is_not_bound(run: Recorded[GangsOnOneCard]) -> None:
    """Each wait is judged once nothing moves."""
    for step, cliques in (
        ("three partitions free", run.scene.second),
        ("card split", run.scene.whole),
        ("card taken", run.scene.small),
    ):
        count = sum(predicates.bound_counts(run.at(step), cliques).values())
        run.expect(f"bound pods of {cliques[0].name}", 0, count)


test_invariants = invariants(GangsOnOneCard, "INV-003", "INV-010")
