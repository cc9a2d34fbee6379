"""What a set, its cliques and its groups report of an update, while it is under way and in the end."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from conformance.grove import updates
from conformance.grove.fields import condition, number, text
from conformance.history.record import Record
from conformance.testing import replay
from conformance.testing.disruption import BREACHED
from conformance.testing.scene import Recorded, requirement
from conformance.tests.update import changes
from conformance.tests.update.changes import CLIQUES, GROUPS, SETS
from conformance.tests.update.rolling import (
    CHANGES,
    CLIQUES_ALONE,
    REPLICAS,
    SIZES_OF_GROUPS,
    SetUpdatedThreeTimes,
    Update,
    behind,
    breaches,
    hashes,
    updated_replicas,
)

TOTALS = {"totalPodCliquesCount": len(CLIQUES_ALONE), "totalPodCliqueScalingGroupsCount": len(SIZES_OF_GROUPS)}
CLIQUES_OF_GROUPS = {"g": 4, "h": 1}
"""The number of PodCliques of all replicas of a group."""

each_change = pytest.mark.parametrize("change", CHANGES)


@requirement("UPD-006")
@each_change
def test_a_running_update_names_one_replica(run: Recorded[SetUpdatedThreeTimes], change: str) -> None:
    """While a PodCliqueSet is being updated, its updateProgress MUST name the one replica that is being updated.

    It MUST have a start time, and MUST NOT have an end time.
    """
    records = Update(run, change).of_set()
    running = [record for record in records if updates.running(record.object)]
    run.expect("updates that started", 1, len({updates.started(record.object) for record in records}))
    run.holds("the update was reported to be running", bool(running))
    many = [str(record) for record in records if len(updates.turns(record.object)) > 1]
    run.expect("states with several replicas at once", [], many)
    turns: list[int | None] = []
    for record in running:
        turns += [turn for turn in updates.turns(record.object) if turn not in turns[-1:]]
    run.expect("replicas that had their turn", list(range(REPLICAS)), turns)
    first = next((n for n, record in enumerate(records) if updates.ended(record.object)), len(records))
    again = [str(record) for record in records[first:] if updates.running(record.object)]
    run.expect("states after the end in which the update is running again", [], again)


@requirement("UPD-007", reaches="{change}: update ended")
@each_change
def test_an_update_ends(run: Recorded[SetUpdatedThreeTimes], change: str) -> None:
    """When an update ends, updateEndedAt MUST be set, and all counters MUST equal their totals.

    No replica is named as being updated any more, and updatedReplicas is the number of replicas.
    """
    run.given("set available")
    found = Update(run, change).span.view().get(SETS, "s")
    run.expect("replicas that are named as being updated", [], updates.turns(found))
    run.expect("updatedReplicas", REPLICAS, number(found, "status", "updatedReplicas"))
    counts = updates.counts(found)
    for updated, total in updates.COUNTERS:
        run.expect(f"{updated} in the end", TOTALS[total], counts[updated])


@requirement("UPD-008")
@each_change
def test_totals_of_a_set(run: Recorded[SetUpdatedThreeTimes], change: str) -> None:
    """The totals of a set MUST be the numbers of its standalone PodCliques and groups over all replicas.

    A counter MUST NOT exceed its total.
    """
    run.unbroken()
    update = Update(run, change)
    wrong = [_counts(record) for record in update.of_set() if not _fits(record, TOTALS)]
    run.expect("counters above their totals, or wrong totals", [], wrong)
    counts = updates.counts(update.span.view().get(SETS, "s"))
    for _, total in updates.COUNTERS:
        run.expect(f"{total} in the end", TOTALS[total], counts[total])


@requirement("UPD-008")
@each_change
def test_totals_of_groups(run: Recorded[SetUpdatedThreeTimes], change: str) -> None:
    """The total of a PodCliqueScalingGroup MUST be the number of PodCliques of its replicas.

    A counter MUST NOT exceed its total.
    """
    run.unbroken()
    span = Update(run, change).span
    for group, total in CLIQUES_OF_GROUPS.items():
        totals = {"totalPodCliquesCount": total, "totalPodCliqueScalingGroupsCount": 0}
        for each in (f"s-{index}-{group}" for index in range(REPLICAS)):
            wrong = [_counts(record) for record in span.records(GROUPS, each) if not _fits(record, totals)]
            run.expect(f"counters of {each} above their total, or a wrong total", [], wrong)
            end = updates.counts(span.view().get(GROUPS, each))
            seen = [end["updatedPodCliquesCount"], end["totalPodCliquesCount"]]
            run.expect(f"updated cliques of {each}, and all", [total, total], seen)


@requirement("UPD-009")
@each_change
def test_the_end_is_reported_when_pods_are_updated(run: Recorded[SetUpdatedThreeTimes], change: str) -> None:
    """When the end of an update is reported, all Pods MUST have the new template, and enough of them MUST be Ready."""
    update, sizes = Update(run, change), run.scene.sizes
    run.given(f"{change}: update ended")
    end = update.end()
    if not run.holds("the end is reported", end is not None) or end is None:
        return
    pods = replay.surviving(run.history, end.revision)
    of = hashes(update.span.view(), sizes)
    old = [record.name for record in pods if changes.hash_of(record.object) != of.get(replay.owner(record))]
    run.expect("pods of an old template when the end was reported", [], old)
    ready = replay.serving({record.uid: record for record in pods})
    run.same("Ready pods when the end was reported", sizes, {clique: ready.get(clique, 0) for clique in sizes})


@requirement("UPD-010")
def test_cliques_name_the_selected_pod(run: Recorded[SetUpdatedThreeTimes]) -> None:
    """The updateProgress of each standalone PodClique MUST name the Ready Pod that is selected."""
    update = Update(run, "standalone")
    lost = [record.name for record in replay.deleted(update.span) if replay.owner(record) == "s-0-a"]
    run.expect("pods that were reported to be selected", lost, update.selected(CLIQUES, "s-0-a"))


@requirement("UPD-010")
def test_groups_name_the_selected_replica(run: Recorded[SetUpdatedThreeTimes]) -> None:
    """The updateProgress of each PodCliqueScalingGroup MUST name the available replica that is selected."""
    update = Update(run, "member")
    for group in (f"s-{index}-g" for index in range(REPLICAS)):
        run.expect(f"replicas of {group} that were reported to be selected", [0, 1], update.selected(GROUPS, group))


@requirement("UPD-010")
@each_change
def test_cliques_and_groups_report_the_end(run: Recorded[SetUpdatedThreeTimes], change: str) -> None:
    """After its update a PodClique or PodCliqueScalingGroup MUST report the end, and MUST NOT have a selection.

    Its status MUST have the hashes that the progress names, whether or not anything had to change.
    """
    view = Update(run, change).span.view()
    run.same("updatedReplicas of the groups", SIZES_OF_GROUPS, updated_replicas(view))
    run.expect("what cliques and groups report wrongly in the end", [], behind(view))


@requirement("UPD-011")
@pytest.mark.parametrize(("change", "resource", "part"), [("standalone", CLIQUES, "a"), ("member", GROUPS, "g")])
def test_a_breach_is_unknown_during_an_update(
    run: Recorded[SetUpdatedThreeTimes], change: str, resource: str, part: str
) -> None:
    """During its update MinAvailableBreached of a clique or group MUST be Unknown, with reason UpdateInProgress."""
    span = Update(run, change).span
    for each in (f"s-{index}-{part}" for index in range(REPLICAS)):
        running = [record.object for record in span.records(resource, each) if updates.running(record.object)]
        reported = [condition(found, BREACHED) for found in running]
        so = any((text(one, "status"), text(one, "reason")) == ("Unknown", "UpdateInProgress") for one in reported)
        run.holds(f"{each} reports Unknown, UpdateInProgress while it is updated", so)


@requirement("UPD-011")
@each_change
def test_a_breach_is_reported_again_after_an_update(run: Recorded[SetUpdatedThreeTimes], change: str) -> None:
    """After an update, the MinAvailableBreached condition of a PodClique MUST say again whether it is breached."""
    view = Update(run, change).span.view()
    run.same(f"{BREACHED} in the end", dict.fromkeys(CLIQUES_ALONE, "False"), breaches(view))


def _fits(record: Record, totals: Mapping[str, int]) -> bool:
    """Whether no counter of a progress is above its total, and the totals are right or not counted yet."""
    counts = updates.counts(record.object)
    return all(counts[one] <= counts[total] and counts[total] in (0, totals[total]) for one, total in updates.COUNTERS)


def _counts(record: Record) -> str:
    return f"{record}: {updates.counts(record.object)}"
