"""Tests that gangs that have lost pods and cannot replace them are recreated, but only once and no more gangs than
necessary."""

from __future__ import annotations

from conformance.grove import labels
from conformance.grove.fields import condition_is, label, number
from conformance.history.record import Record
from conformance.testing import disruption, incarnations, predicates
from conformance.testing.disruption import CLIQUES, GANGS, GROUPS
from conformance.testing.scene import Recorded, invariants, requirement
from conformance.tests.termination import delays
from conformance.tests.termination.scenes import (
    BREACHED_GROUPS,
    DELAY_SECONDS,
    LAST_PODS,
    LOOSE_LOST,
    PAIR_LOST,
    RECREATED,
    STRICT_LOST,
    TERMINATED_GROUP,
    TORN_LOST,
    LostGangs,
)

INCARNATIONS_STEP = "cliques that each name has had"
OTHER_GROUPS = ("pair-0-g", "loose-0-g")
"""Groups whose set replicas need not be terminated."""
OTHER_REPLICA = "pair-0"
"""The name prefix of the replica of the same set that is not terminated."""


@requirement("TERM-001", reaches="set replica of a breached clique recreated")
def test_all_of_a_breached_set_replica_is_recreated(run: Recorded[LostGangs]) -> None:
    """A standalone clique is breached, and everything else is healthy."""
    run.given("cliques breached")


@requirement("TERM-025", reaches="breached replicas of breached groups recreated")
def test_breached_replicas_of_a_breached_group_are_recreated(run: Recorded[LostGangs]) -> None:
    """In one set, two of three replicas are breached. In the other set, both replicas that ever ran are breached."""
    run.given("group that lost two of three replicas breached", "group without replicas breached")


@requirement("TERM-002")
def test_nothing_is_terminated_before_the_delay_is_over(run: Recorded[LostGangs]) -> None:
    """At first the delay is an hour. Later it is short, and part of it has already passed."""
    within = run.until("delay shortened")
    early = [name for name in incarnations.deletions(within, CLIQUES) if name in run.scene.cliques]
    run.expect("cliques deleted within the hour", [], early)
    names = incarnations.uids(within.view(), CLIQUES)
    causes = {name: delays.breaches(within, name, LAST_PODS) for name in names}
    ends = incarnations.deletions(run.until("set replicas of breached groups recreated"), CLIQUES)
    recreated = (*PAIR_LOST, *STRICT_LOST, *LOOSE_LOST, *TORN_LOST)
    deleted = {name: ends[name] for name in recreated if name in ends}
    early = delays.early_deletions(causes, deleted, DELAY_SECONDS, run.scene.began_at)
    run.expect(f"cliques deleted before {DELAY_SECONDS} s were over", [], early)


@requirement("TERM-003")
def test_a_termination_spares_everything_else(run: Recorded[LostGangs]) -> None:
    """One of the two replicas of a set is terminated. The gangs and the Service of that replica may be recreated as
    well."""
    other = [name for name in run.scene.cliques if name.startswith(OTHER_REPLICA)]
    _expect_counts(run, "cliques of the other replica", dict.fromkeys(other, 1))
    _expect_same_objects(run, GROUPS)
    for resource in (GANGS, "services"):
        _expect_same_objects(run, resource, OTHER_REPLICA)


@requirement("TERM-022")
def test_a_termination_spares_gangs_and_services(run: Recorded[LostGangs]) -> None:
    """All sets are judged, including the replicas that are terminated."""
    for resource in (GANGS, "services"):
        _expect_same_objects(run, resource)


def _expect_same_objects(run: Recorded[LostGangs], resource: str, head: str = "") -> None:
    """Expect that the objects with this name prefix are the same before and after the terminations."""
    before, after = (incarnations.uids(run.at(step), resource) for step in ("no room for pods", "nothing moves"))
    expected = {name: object_uid for name, object_uid in before.items() if name.startswith(head)}
    run.same(f"uids of {resource}", expected, {name: after.get(name, "") for name in expected})


@requirement("TERM-004")
def test_what_cannot_be_placed_is_terminated_once(run: Recorded[LostGangs]) -> None:
    """The only node is cordoned, and the delay is now a second. Only standalone cliques are counted, because the
    replicas of a group may have been terminated one by one, which is covered by TERM-023. The termination of a set
    replica because of a breached group is covered by TERM-011."""
    run.given("set replica of a breached clique recreated")
    had = disruption.incarnation_counts(
        run.until("nothing moves"), map(_standalone_clique, (TERMINATED_GROUP, "strict-0-g"))
    )
    run.expect("cliques terminated more than once", {}, {name: count for name, count in had.items() if count > 2})


@requirement(
    "TERM-005",
    reaches=(
        "termination in progress",
        "terminations no longer in progress",
        "later terminations no longer in progress",
    ),
)
def test_groups_report_a_termination_until_they_recover(run: Recorded[LostGangs]) -> None:
    """After the recovery the condition may be removed or False. A group that is itself breached is judged only if its
    whole set replica was terminated, which is covered by TERM-011. Whether a group with only one breached replica is
    terminated is covered by TERM-008."""
    span = run.until("nothing moves")
    view = span.view()
    had = disruption.incarnation_counts(span, map(_standalone_clique, (*BREACHED_GROUPS, *OTHER_GROUPS)))
    terminated = [TERMINATED_GROUP, *(group for group in BREACHED_GROUPS if had[_standalone_clique(group)] > 1)]
    reporting = {group: disruption.are_terminating([group])(view) is True for group in terminated}
    run.same("groups that report the termination", dict.fromkeys(terminated, True), reporting)
    spared = [group for group in OTHER_GROUPS if had[_standalone_clique(group)] == 1]
    unexpected = [str(record) for group in spared for record in span.records(GROUPS, group) if _is_in_progress(record)]
    run.expect("groups that report a termination and are not terminated", [], unexpected)
    gaps = []
    for group in terminated:
        records = span.records(GROUPS, group)
        first = next((n for n, record in enumerate(records) if _is_in_progress(record)), 0)
        gaps += [str(record) for record in records[first:] if not _is_in_progress(record)]
    run.expect("states in which it is no longer reported before the recovery", [], gaps)


def _standalone_clique(group: str) -> str:
    """Return the standalone clique in the same set replica as a scaling group."""
    return f"{group.removesuffix('-g')}-a"


@requirement("TERM-006", reaches="recovered replica recreated")
def test_a_recovered_replica_is_terminated_again(run: Recorded[LostGangs]) -> None:
    """As in the first breach, a pod is lost for good."""


@requirement("TERM-026", reaches="replica with an unready pod recreated")
def test_unready_pods_are_lost(run: Recorded[LostGangs]) -> None:
    """The containers of the pod have started, but the pod is not Ready."""


@requirement("TERM-007", reaches=("sets available again", "sets available once more"))
def test_terminated_replicas_become_available_again(run: Recorded[LostGangs]) -> None:
    """The recovery is judged after the first terminations, which had to wait for a node, and after the later
    terminations, which did not."""
    run.given("sets available", "pods Ready")


@requirement("TERM-008", reaches="replica of a group recreated")
def test_only_a_breached_replica_of_a_group_is_recreated(run: Recorded[LostGangs]) -> None:
    """One of two replicas has lost all pods of one clique. Nothing else of the set is recreated."""
    run.given("groups with enough other replicas not breached")
    cliques = [name for name in run.scene.cliques if name.startswith("loose-")]
    _expect_counts(run, INCARNATIONS_STEP, {name: 2 if name in LOOSE_LOST else 1 for name in cliques})


@requirement("TERM-009")
def test_a_clique_at_its_minimum_is_not_terminated(run: Recorded[LostGangs]) -> None:
    """The clique has lost one of two pods for good. A pod of another clique was replaced earlier."""
    run.given("deleted pod replaced")
    _expect_counts(run, INCARNATIONS_STEP, {"loose-0-a": 1})


@requirement("TERM-010")
def test_what_never_ran_is_not_terminated(run: Recorded[LostGangs]) -> None:
    """The set was created while the node was cordoned, and the replicas were added by a scale-out at that time."""
    one_each = dict.fromkeys(run.scene.never_ran, 1)
    _expect_counts(run, "cliques that never ran, without room for them", one_each)
    _expect_counts(run, "cliques that never ran, with room for them", one_each, until="recovered")


@requirement("TERM-011", reaches="set replicas of breached groups recreated")
def test_a_breached_group_has_its_set_replica_terminated(run: Recorded[LostGangs]) -> None:
    """The standalone clique is recreated only if the whole set replica is terminated."""
    run.given("group that lost two of three replicas breached", "group without replicas breached")
    _expect_counts(run, INCARNATIONS_STEP, dict.fromkeys(map(_standalone_clique, BREACHED_GROUPS), 2))


@requirement("TERM-023")
def test_a_breached_group_terminates_no_single_replicas(run: Recorded[LostGangs]) -> None:
    """One replica was breached before the other replicas, and never ran again."""
    run.given("group without replicas breached", "set replicas of breached groups recreated")
    _expect_counts(run, INCARNATIONS_STEP, dict.fromkeys(TORN_LOST, 2))


@requirement("TERM-012", reaches="recreated cliques have their pods")
def test_recreated_cliques_have_the_size_of_their_template(run: Recorded[LostGangs]) -> None:
    """A scaling group and one of its cliques were scaled manually before."""
    run.judge_violation()
    run.given("scaled group and clique have their pods")
    view = run.at("recovered")
    run.expect("replicas of the scaled group", 3, number(view.get(GROUPS, "strict-0-g"), "spec", "replicas"))
    indices = {n: sorted(label(pod, labels.POD_INDEX) for pod in predicates.pods_of(view, n)) for n in RECREATED}
    expected = {name: [str(index) for index in range(size)] for name, size in RECREATED.items()}
    run.same("indices of the pods of recreated cliques", expected, indices)


@requirement("TERM-013", reaches="replica with a crashed pod recreated")
def test_crashed_pods_are_lost(run: Recorded[LostGangs]) -> None:
    """The delay is a second, and the pod does not recover."""


@requirement("TERM-014", reaches="replica with a silent pod recreated")
def test_pods_of_silent_nodes_are_lost(run: Recorded[LostGangs]) -> None:
    """The pods' containers keep the last status that the kubelet has reported, which is started and ready."""


@requirement("TERM-015")
def test_recovered_pods_are_not_lost(run: Recorded[LostGangs]) -> None:
    """The clique has pods that have crashed before."""
    _expect_spared(run, "torn-")


@requirement("TERM-024")
def test_pods_that_start_again_are_not_lost(run: Recorded[LostGangs]) -> None:
    """Both pods of a standalone clique, and of a clique of a scaling group, start again."""
    _expect_spared(run, "loose-")


def _expect_spared(run: Recorded[LostGangs], head: str) -> None:
    """Expect that no clique of a set has been recreated since the set had recovered."""
    before = disruption.incarnation_counts(
        run.until("recovered"), [name for name in run.scene.clique_names if name.startswith(head)]
    )
    _expect_counts(run, INCARNATIONS_STEP, before, until="later terminations no longer in progress")


test_invariants = invariants(LostGangs, "INV-001", "INV-004", "INV-005")


def _expect_counts(
    run: Recorded[LostGangs], description: str, counts: dict[str, int], until: str = "nothing moves"
) -> None:
    """Expect that each of these names has had this number of cliques until a step."""
    run.same(description, counts, disruption.incarnation_counts(run.until(until), counts))


def _is_in_progress(record: Record) -> bool:
    return condition_is(record.object, disruption.IN_PROGRESS) == "True"
