"""Tests of the reports of a set, its cliques and its groups about an update, both during the update and at its end."""

from __future__ import annotations

from collections import Counter
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
    GROUP_SIZES,
    REPLICAS,
    STANDALONE_CLIQUES,
    SetUpdatedThreeTimes,
    Update,
    behind,
    breaches,
    concerned,
    hash_by_clique,
    selecting,
    updated_replicas,
)

TOTALS = {"totalPodCliquesCount": len(STANDALONE_CLIQUES), "totalPodCliqueScalingGroupsCount": len(GROUP_SIZES)}
CLIQUES_PER_GROUP = {"g": 4, "h": 1}
"""Scaling group → the number of PodCliques in all of its replicas."""

each_change = pytest.mark.parametrize("change", CHANGES)


@requirement("UPD-001")
@each_change
def test_no_update_names_several_replicas_at_once(run: Recorded[SetUpdatedThreeTimes], change: str) -> None:
    records = Update(run, change).of_set()
    with_several = [str(record) for record in records if len(updates.updating_replicas(record.object)) > 1]
    run.expect("states with several replicas at once", [], with_several)


@requirement("UPD-006")
@each_change
def test_a_running_update_names_its_replicas(run: Recorded[SetUpdatedThreeTimes], change: str) -> None:
    """The order of the replicas is not judged."""
    records = Update(run, change).of_set()
    running = [record for record in records if updates.is_running(record.object)]
    run.expect("updates that started", 1, len({updates.start_time(record.object) for record in records}))
    run.holds("the update was reported to be running", bool(running))
    turns = {turn for record in running for turn in updates.updating_replicas(record.object)}
    run.expect("replicas that had their turn", set(range(REPLICAS)), turns)
    first = next((n for n, record in enumerate(records) if updates.has_ended(record.object)), len(records))
    restarted = [str(record) for record in records[first:] if updates.is_running(record.object)]
    run.expect("states after the end in which the update is running again", [], restarted)


@requirement("UPD-007", reaches="{change}: update ended")
@each_change
def test_an_update_ends(run: Recorded[SetUpdatedThreeTimes], change: str) -> None:
    """The totals are covered by UPD-008 and UPD-054."""
    run.given("set available")
    pcs = Update(run, change).span.view().get(SETS, "s")
    run.expect("replicas that are named as being updated", [], updates.updating_replicas(pcs))
    run.expect("updatedReplicas", REPLICAS, number(pcs, "status", "updatedReplicas"))
    run.same("updatedReplicas of the groups", GROUP_SIZES, updated_replicas(Update(run, change).span.view()))
    counts = updates.counts(pcs)
    for updated, total in updates.COUNTERS:
        run.expect(f"{updated} in the end", counts[total], counts[updated])


@requirement("UPD-008")
@each_change
def test_totals_of_a_set(run: Recorded[SetUpdatedThreeTimes], change: str) -> None:
    """The total of PodCliques may count only the set's standalone cliques or all its cliques (see UPD-054)."""
    run.judge_violation()
    update = Update(run, change)
    permitted = (TOTALS, {**TOTALS, "totalPodCliquesCount": len(run.scene.sizes)})
    wrong = [
        _counts_text(record)
        for record in update.of_set()
        if not any(_matches_totals(record, totals) for totals in permitted)
    ]
    run.expect("counters above their totals, or wrong totals", [], wrong)
    counts = updates.counts(update.span.view().get(SETS, "s"))
    groups = "totalPodCliqueScalingGroupsCount"
    run.expect(f"{groups} in the end", TOTALS[groups], counts[groups])


@requirement("UPD-054")
@each_change
def test_a_set_counts_its_standalone_cliques(run: Recorded[SetUpdatedThreeTimes], change: str) -> None:
    """A total that has not been counted yet is permitted."""
    update = Update(run, change)
    wrong = [_counts_text(record) for record in update.of_set() if not _matches_totals(record, TOTALS)]
    run.expect("states with another total of PodCliques", [], wrong)


@requirement("UPD-008")
@each_change
def test_totals_of_groups(run: Recorded[SetUpdatedThreeTimes], change: str) -> None:
    """All PodCliques in all replicas of the group count. Groups that the change does not affect need not report an
    update (see UPD-056)."""
    run.judge_violation()
    span, changed = Update(run, change).span, concerned(change)
    for group, total in CLIQUES_PER_GROUP.items():
        totals = {"totalPodCliquesCount": total, "totalPodCliqueScalingGroupsCount": 0}
        for group_name in (f"s-{index}-{group}" for index in range(REPLICAS)):
            wrong = [
                _counts_text(record)
                for record in span.records(GROUPS, group_name)
                if not _matches_totals(record, totals)
            ]
            run.expect(f"counters of {group_name} above their total, or a wrong total", [], wrong)
            if group_name in changed:
                end = updates.counts(span.view().get(GROUPS, group_name))
                actual = [end["updatedPodCliquesCount"], end["totalPodCliquesCount"]]
                run.expect(f"updated cliques of {group_name}, and all", [total, total], actual)


@requirement("UPD-009")
@each_change
def test_the_end_is_reported_when_pods_are_updated(run: Recorded[SetUpdatedThreeTimes], change: str) -> None:
    """The cliques of this scene keep their sizes, so the number of pods stays the same."""
    sizes, pods = run.scene.sizes, _pods_at_the_end(run, change)
    of = hash_by_clique(Update(run, change).span.view(), sizes)
    old = [record.name for record in pods if changes.template_hash(record.object) != of.get(replay.clique_name(record))]
    run.expect("pods of an old template when the end was reported", [], old)
    owners = Counter(
        replay.clique_name(record) for record in pods if text(record.object, "status", "phase") == "Running"
    )
    run.same("running pods when the end was reported", sizes, {clique: owners[clique] for clique in sizes})


@requirement("UPD-055")
@each_change
def test_the_end_is_reported_when_pods_are_ready(run: Recorded[SetUpdatedThreeTimes], change: str) -> None:
    """The cliques of this scene need all their pods."""
    sizes = run.scene.sizes
    ready = replay.ready_counts({record.uid: record for record in _pods_at_the_end(run, change)})
    run.same("Ready pods when the end was reported", sizes, {clique: ready.get(clique, 0) for clique in sizes})


@requirement("UPD-010")
def test_cliques_name_the_selected_pod(run: Recorded[SetUpdatedThreeTimes]) -> None:
    """All pods are Ready before the change, so each of them is selected at some time."""
    update = Update(run, "standalone")
    lost = {record.name for record in replay.deletions(update.span) if replay.clique_name(record) == "s-0-a"}
    run.expect("replaced pods that no state named", set(), lost - update.reported_selections(CLIQUES, "s-0-a"))


@requirement("UPD-010")
def test_groups_name_the_selected_replica(run: Recorded[SetUpdatedThreeTimes]) -> None:
    """All replicas are available before the change, so each of them is selected at some time."""
    update = Update(run, "member")
    for group in (f"s-{index}-g" for index in range(REPLICAS)):
        unreported = {0, 1} - update.reported_selections(GROUPS, group)
        run.expect(f"replicas of {group} that no state named", set(), unreported)


@requirement("UPD-010")
@each_change
def test_cliques_and_groups_report_the_end(run: Recorded[SetUpdatedThreeTimes], change: str) -> None:
    """Only cliques and groups that the change affects are judged."""
    view = Update(run, change).span.view()
    run.expect("what cliques and groups report wrongly in the end", [], behind(view, concerned(change)))


@requirement("UPD-056")
@each_change
def test_nothing_is_selected_in_the_end(run: Recorded[SetUpdatedThreeTimes], change: str) -> None:
    """Cliques and groups that the change does not affect also report an update that has ended."""
    view = Update(run, change).span.view()
    run.expect("what reports a selection in the end", [], selecting(view))
    run.expect("what cliques and groups report wrongly in the end", [], behind(view))


@requirement("UPD-011")
@pytest.mark.parametrize(("change", "resource", "part"), [("standalone", CLIQUES, "a"), ("member", GROUPS, "g")])
def test_a_breach_is_unknown_during_an_update(
    run: Recorded[SetUpdatedThreeTimes], change: str, resource: str, part: str
) -> None:
    """One such state for each clique and group is enough, because statuses may be written late."""
    span = Update(run, change).span
    for part_name in (f"s-{index}-{part}" for index in range(REPLICAS)):
        running = [record.object for record in span.records(resource, part_name) if updates.is_running(record.object)]
        reported = [condition(state, BREACHED) for state in running]
        is_unknown = any(
            (text(breach, "status"), text(breach, "reason")) == ("Unknown", "UpdateInProgress") for breach in reported
        )
        run.holds(f"{part_name} reports Unknown, UpdateInProgress while it is updated", is_unknown)


@requirement("UPD-057")
@pytest.mark.parametrize("change", ["standalone", "all"])
def test_a_breach_is_reported_again_after_an_update(run: Recorded[SetUpdatedThreeTimes], change: str) -> None:
    """All pods are Ready when the update has ended, so nothing is breached."""
    expected = dict.fromkeys((clique for clique in concerned(change) if clique in STANDALONE_CLIQUES), "False")
    statuses = breaches(Update(run, change).span.view())
    run.same(f"{BREACHED} in the end", expected, {clique: statuses[clique] for clique in expected})


def _pods_at_the_end(run: Recorded[SetUpdatedThreeTimes], change: str) -> list[Record]:
    """Return the pods that existed when the end of an update was reported."""
    run.given(f"{change}: update ended")
    end = Update(run, change).end()
    run.holds("the end is reported", end is not None)
    return replay.pods_at_revision(run.history, end.revision) if end is not None else []


def _matches_totals(record: Record, totals: Mapping[str, int]) -> bool:
    """Return whether all counters of a progress are at most their totals, and each total is either correct or not
    counted yet."""
    counts = updates.counts(record.object)
    return all(
        counts[counter] <= counts[total] and counts[total] in (0, totals[total]) for counter, total in updates.COUNTERS
    )


def _counts_text(record: Record) -> str:
    return f"{record}: {updates.counts(record.object)}"
