"""Tests that RollingRecreate replaces pods and replicas in order, and each pod only once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from conformance.grove import labels
from conformance.grove.fields import label
from conformance.history.record import Record
from conformance.testing import predicates, replay
from conformance.testing.scene import Recorded, invariants, requirement
from conformance.tests.update import changes
from conformance.tests.update.rolling import (
    CHANGES,
    REPLICAS,
    SetUpdatedThreeTimes,
    Update,
    hash_by_clique,
    replica_of,
    replica_of_group,
)

STANDALONE = [f"s-{index}-a" for index in range(REPLICAS)]
"""The standalone cliques that the first change affects."""
GROUP_REPLICAS = [f"s-{index}-g-{j}" for index in range(REPLICAS) for j in range(2)]
"""The scaling group replicas that the second change affects."""
REPLACED_CLIQUES = {
    "standalone": STANDALONE,
    "member": [f"{group_replica}-{clique}" for group_replica in GROUP_REPLICAS for clique in "bc"],
}
"""Change → the cliques whose pods it replaces. The last change replaces all pods."""


@requirement("UPD-001")
def test_replicas_of_a_set_are_updated_one_at_a_time(run: Recorded[SetUpdatedThreeTimes]) -> None:
    """A replica that is being updated lacks Ready pods, because pods are deleted before they are replaced."""
    span = Update(run, "standalone").span
    run.expect(
        "moments at which two replicas lacked Ready pods",
        [],
        replay.concurrent_losses(span, run.scene.sizes, replica_of),
    )
    order = [replica_of(replay.clique_name(record)) for record in replay.deletions(span)]
    turns = [index for at, index in enumerate(order) if index not in order[at - 1 : at]]
    run.expect("replicas that lost pods again after another one", [], [t for t in turns if turns.count(t) > 1])


@requirement("UPD-053")
def test_replicas_of_a_set_are_updated_in_order(run: Recorded[SetUpdatedThreeTimes]) -> None:
    """No replica is unplaced or breached. Such a replica would be updated first (UPD-029, UPD-030)."""
    order = [replica_of(replay.clique_name(record)) for record in replay.deletions(Update(run, "standalone").span)]
    run.expect("replicas of the deleted pods, in order", sorted(order), order)


@requirement("UPD-053")
def test_replicas_of_a_group_are_recreated_in_order(run: Recorded[SetUpdatedThreeTimes]) -> None:
    """The groups of different set replicas may be updated in any order in this test."""
    order = replay.parts_by_first_loss(Update(run, "member").span, replica_of_group)
    for index in range(REPLICAS):
        of_replica = [group_replica for group_replica in order if group_replica.startswith(f"s-{index}-")]
        run.expect(f"replicas of the group of replica {index}, in order", sorted(of_replica), of_replica)


@requirement("UPD-002")
def test_pods_of_a_standalone_clique_are_replaced_one_at_a_time(run: Recorded[SetUpdatedThreeTimes]) -> None:
    """The clique needs both of its pods, and maxUnavailable is not set."""
    run.expect("cliques that lacked more than one pod", {}, _shortfalls_above_one(Update(run, "standalone")))


@requirement("UPD-003")
@pytest.mark.parametrize("change", CHANGES)
def test_what_has_not_changed_keeps_its_pods(run: Recorded[SetUpdatedThreeTimes], change: str) -> None:
    """The last change affects all cliques, so for that change the test only finds pods of other cliques."""
    span, replaced = Update(run, change).span, REPLACED_CLIQUES.get(change, list(run.scene.sizes))
    run.expect(
        "cliques with new pods that must keep theirs", [], sorted(set(replay.creation_counts(span)) - set(replaced))
    )


@requirement("UPD-004")
def test_replicas_of_a_group_are_recreated_one_at_a_time(run: Recorded[SetUpdatedThreeTimes]) -> None:
    """One of the two cliques of the group is changed. Groups of two set replicas may lack pods at the same time."""
    span = Update(run, "member").span
    for index in range(REPLICAS):
        together = replay.concurrent_losses(span, run.scene.sizes, _group_part(f"s-{index}-g"))
        run.expect(f"moments at which two replicas of s-{index}-g lacked Ready pods", [], together)
    lost = {replay.clique_name(record) for record in replay.deletions(span)}
    run.expect("cliques of the group that kept their pods", [], sorted(set(REPLACED_CLIQUES["member"]) - lost))


@requirement("UPD-005")
@pytest.mark.parametrize("change", REPLACED_CLIQUES)
def test_each_pod_is_replaced_once_in_its_place(run: Recorded[SetUpdatedThreeTimes], change: str) -> None:
    """As many pods are created as existed before, so no pod of the new template was replaced."""
    _expect_replaced_once(run, change, {})


@requirement("UPD-012")
def test_the_oldest_ready_pod_is_replaced_first(run: Recorded[SetUpdatedThreeTimes]) -> None:
    """The pod with the lower index was deleted and recreated before the change, so it is the younger pod."""
    run.given("deleted pod replaced", "replacement counted as Ready")
    lost = [
        record
        for record in replay.deletions(Update(run, "standalone").span)
        if replay.clique_name(record) == STANDALONE[0]
    ]
    indices = [label(record.object, labels.POD_INDEX) for record in lost]
    run.expect("indices of the deleted pods", ["1", "0"], indices)


@requirement("UPD-013", reaches="all: update ended")
def test_a_killed_operator_replaces_nothing_twice(run: Recorded[SetUpdatedThreeTimes]) -> None:
    """The operator is killed twice, at random times during the update. If it is killed between the cliques of a scaling
    group replica, the replica has both outdated and new Pods, and may be recreated as a whole."""
    span = Update(run, "all").span
    redone = replay.deletions_beside_outdated(span, replica_of_group, _is_outdated)
    _expect_replaced_once(run, "all", Counter(map(replay.clique_name, redone)))


@requirement("UPD-013")
def test_a_killed_operator_replaces_no_more_at_a_time(run: Recorded[SetUpdatedThreeTimes]) -> None:
    """The same rules apply as without a kill (UPD-002 and UPD-004)."""
    update, sizes = Update(run, "all"), run.scene.sizes
    for index in range(REPLICAS):
        together = replay.concurrent_losses(update.span, sizes, _group_part(f"s-{index}-g"))
        run.expect(f"moments at which two replicas of s-{index}-g lacked Ready pods", [], together)
    run.expect("cliques that lacked more than one pod", {}, _shortfalls_above_one(update))


test_invariants = invariants(SetUpdatedThreeTimes, "INV-001", "INV-004", "INV-005")


def _is_outdated(record: Record) -> bool:
    """Return whether a pod has an older template than that of the last change."""
    return changes.image_tag(record.object) != CHANGES["all"].tag


def _expect_replaced_once(run: Recorded[SetUpdatedThreeTimes], change: str, redone: Mapping[str, int]) -> None:
    """Expect that each pod that a change affects was replaced once, with the same index. `redone` is the number of
    permitted repetitions per clique."""
    span, sizes = Update(run, change).span, run.scene.sizes
    expected = {clique: sizes[clique] for clique in REPLACED_CLIQUES.get(change, sizes)}
    created, view = replay.creation_counts(span), span.view()
    created_once = {clique: created.get(clique, 0) - redone.get(clique, 0) for clique in expected}
    run.same("new pods by clique", expected, created_once)
    run.same(
        "indices and host names", replay.hosts_by_clique(span.start_view(), sizes), replay.hosts_by_clique(view, sizes)
    )
    before, now = hash_by_clique(span.start_view(), sizes), hash_by_clique(view, sizes)
    changed = [clique for clique in sizes if clique.rpartition("-")[2] in CHANGES[change].cliques]
    run.expect(
        "changed cliques with the hash of before", [], [clique for clique in changed if now[clique] == before[clique]]
    )
    of_pods = {clique: {changes.template_hash(pod) for pod in predicates.pods_of(view, clique)} for clique in expected}
    run.same("template hashes of the pods", {clique: {now[clique]} for clique in expected}, of_pods)


def _shortfalls_above_one(update: Update) -> dict[str, int]:
    """Return standalone clique → number of Ready pods that it lacked, for the cliques with two pods that lacked more
    than one pod at some time during an update."""
    sizes = {clique: size for clique, size in update.run.scene.sizes.items() if clique.endswith("-a")}
    return {clique: count for clique, count in replay.max_shortfalls(update.span, sizes).items() if count > 1}


def _group_part(group: str) -> replay.Part:
    """Return a function from a clique to the replica of this group to which the clique belongs."""
    return lambda clique: replica_of_group(clique) if clique.startswith(f"{group}-") else ""
