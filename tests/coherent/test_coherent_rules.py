"""Tests of the invariants of coherent updates on simulated traces: each holds for all traces, and each is seen
broken."""

from __future__ import annotations

import dataclasses

import pytest

from conformance import invariants
from conformance.grove import labels
from conformance.grove.coherent import traces
from conformance.grove.coherent.model import Component, Entry, Key
from conformance.grove.coherent.traces import Sub, Trace
from conformance.invariants.result import RuleResult
from tests.coherent.playing import Fault, Played
from tests.history.scripted import Scripted
from tests.history.story import Story

TRACES = {trace.name: trace for trace in traces.traces()}
ALL, GROUPS = TRACES["all-components"], TRACES["groups-only"]
IDS = [*(f"INV-{number:03}" for number in range(11, 24)), "COHR-109"]


def verdicts(played: Played) -> dict[str, RuleResult]:
    return {verdict.id: verdict for verdict in invariants.judge(played.story.history, IDS)}


@pytest.mark.parametrize("name", [name for name, trace in TRACES.items() if trace.whole])
def test_worked_traces_break_nothing(name: str) -> None:
    results = verdicts(Played(TRACES[name], replicas=2).play())
    assert {id: str(verdict) for id, verdict in results.items() if verdict.holds is False} == {}
    silent = {id for id, verdict in results.items() if verdict.holds is None}
    loose = any(component.unavailable > component.minimum for component in TRACES[name].components)
    grouped = any(component.key.kind == "group" for component in TRACES[name].in_scope)
    permitted = {"INV-015", "INV-023", *(["INV-012"] if loose or not grouped else [])}
    assert silent <= permitted, {id: results[id].reason for id in silent}
    assert ("INV-015" in silent) == (len(TRACES[name].changed) == len(TRACES[name].components))


F, P = Key("clique", "F"), Key("group", "P")


def delete(played: Played, key: str, clique: str, count: int) -> None:
    for name in played.of(key, clique)[:count]:
        played.delete(name)


def no_unit(played: Played) -> None:
    delete(played, "M1", "F", 1)
    delete(played, "B0", "F", 2)


def half_a_map(played: Played) -> None:
    played.write(tuple(entry for entry in played.layout[0] if entry.key != "B3"))


def pod(played: Played, entry: str, key: Key, clique: str, *, generation: str = "", gang: str = "") -> str:
    target: Entry = next(candidate for candidate in played.layout[played.index] if candidate.key == entry)
    return played.create(target, key, f"s-{played.index}-{clique}", generation=generation, gang=gang)


def of_first_replica(played: Played) -> None:
    played.index = 0
    delete(played, "M2", "F", 1)
    played.index = 1


def gang(name: str, generation: str, pods: int, *replicas: int, anchor: bool = True) -> Entry:
    return Entry(name, generation, {"F": pods} if pods else {}, {"P": replicas} if replicas else {}, anchor, not anchor)


OLD = gang("B0", "v0", 4, 0), gang("B1", "v0", 0, 1, anchor=False)
COMPONENTS_IN_TURN = Trace(
    name="components-in-turn",
    source=("COH-I02",),
    about="First all pods of F are replaced, then all replicas of P; the budget is kept.",
    components=(Component(F, 4, 2, 2), Component(P, 2, 1, 1)),
    changed=(F, P),
    writes=(
        Sub(OLD, "", {}),
        Sub((gang("B0", "v0", 2, 0), OLD[1], gang("M1", "v1", 2)), "v1", {}),
        Sub((gang("B0", "v0", 0, 0), OLD[1], gang("M1", "v1", 2), gang("M2", "v1", 2)), "", {}),
    ),
    whole=False,
)


FAULTS: dict[str, tuple[str, Played]] = {
    "INV-011": (
        "after the deletion of pod",
        Played(ALL, after={1: lambda p: delete(p, "B0", "F", 3)}),
    ),
    "INV-012": ("the new one lacks F; the old one lacks F", Played(ALL, after={1: no_unit})),
    "INV-013": ("entries hold replicas [0, 1, 2] of P", Played(ALL, after={1: half_a_map})),
    "INV-014": (
        "has template hash F-v1",
        Played(ALL, after={1: lambda p: pod(p, "B0", F, "F", generation="v1")}),
    ),
    "INV-015": (
        "and the update is of D, P",
        Played(GROUPS, after={1: lambda p: delete(p, "B0", "F", 1)}),
    ),
    "INV-016": (
        "of replica 0 is deleted after",
        Played(ALL, replicas=2, after={1: of_first_replica}),
    ),
    "INV-017": ("was never scheduled", Played(ALL, ["gang-not-ready"])),
    "COHR-109": ("was never Ready", Played(ALL, ["gang-not-ready"])),
    "INV-018": ("is bound, and its anchor", Played(ALL, ["tail-first"])),
    "INV-019": (
        "6 pods of s-0-F are bound",
        Played(ALL, after={1: lambda p: p.bind(pod(p, "M1", F, "F"))}),
    ),
    "INV-020": (
        "which no entry names",
        Played(ALL, after={1: lambda p: pod(p, "M1", F, "F", gang="elsewhere")}),
    ),
    "INV-021": (
        "the pods of replica 1 of P are in gangs",
        Played(ALL, after={1: lambda p: pod(p, "M1", P, "P-1-p")}),
    ),
    "INV-022": (
        "gang s-0-X is in no entry",
        Played(ALL, after={5: lambda p: p.gang(Entry("X", "v0", {}, {"P": (9,)}, False), ready=True)}),
    ),
}


@pytest.mark.parametrize("id", FAULTS)
def test_each_rule_is_seen_broken(id: str) -> None:
    reason, played = FAULTS[id]
    result = verdicts(played.play())[id]
    assert result.holds is False
    assert reason in result.reason


def test_the_budget_and_the_serving_unit_are_judged_apart() -> None:
    """Each of the two rules is broken in a history in which the other rule holds."""
    over_budget = verdicts(Played(ALL, after={1: lambda p: delete(p, "B0", "F", 3)}).play())
    assert (over_budget["INV-011"].holds, over_budget["INV-012"].holds) == (False, True)
    in_turn = verdicts(Played(COMPONENTS_IN_TURN).play())
    assert (in_turn["INV-011"].holds, in_turn["INV-012"].holds) == (True, False)
    assert "the new one lacks P; the old one lacks F" in in_turn["INV-012"].reason


def test_no_serving_unit_is_demanded_of_standalone_cliques_alone() -> None:
    """For such updates, the latest text plans a single step."""
    assert verdicts(Played(TRACES["standalone-only"], after={1: no_unit}).play())["INV-012"].holds is None


@pytest.mark.parametrize(
    ("by_others", "updating", "holds"), [(True, True, True), (False, True, False), (True, False, False)]
)
def test_a_pod_that_others_delete_may_return_with_the_newest_version_where_the_update_is_waited_for(
    by_others: bool, updating: bool, holds: bool
) -> None:
    def returned(played: Played) -> None:
        if updating:
            played.begin("v1")
        played.index = 1
        lost = played.of("B0", "F")[0]
        if by_others:
            played.story.history.origins.excused.add(played.story.history.records("pods", lost)[0].uid)
        played.delete(lost)
        pod(played, "B0", F, "F", generation="v1")

    played = Played(ALL, replicas=2)
    played.before_updates = returned
    assert verdicts(played.play())["INV-014"].holds is holds


def test_what_an_update_should_have_replaced_is_not_left() -> None:
    """The update ends before its last sub-steps."""
    result = verdicts(Played(dataclasses.replace(ALL, writes=ALL.writes[:3])).play())["INV-022"]
    assert "of an old generation holds" in result.reason


def test_pods_that_join_an_anchor_are_waited_for() -> None:
    """COH-151: the gang is Ready because it has its minimum, but the pods that it has taken over are not Ready."""
    trace = TRACES["floor-and-absorb"]
    played = Played(trace, after={1: lambda p: p.faults.add("never-ready")})
    results = verdicts(played.play())
    assert "pods of F in gang s-0-M1 were Ready" in results["COHR-109"].reason
    assert results["INV-017"].holds is True, "they are bound"


def test_nothing_is_said_of_sets_with_another_strategy() -> None:
    played = Played(TRACES["all-components"])
    played.strategy = "RollingRecreate"
    results = verdicts(played.play())
    assert {verdict.holds for verdict in results.values()} == {None}
    assert {verdict.reason for verdict in results.values()} == {"no set has the strategy Coherent"}


@pytest.mark.parametrize(("epoch", "holds"), [("17", True), ("18", False)])
def test_where_entries_have_epochs_a_gang_that_comes_after_its_pods_says_to_which_entry_they_belong(
    epoch: str, holds: bool
) -> None:
    log = Scripted()
    story, tags = Story(log), {labels.PART_OF: "s", labels.SET_INDEX: "0"}
    cliques = [{"name": "f", "spec": {"replicas": 1, "minAvailable": 1}}]
    spec = {"replicas": 1, "updateStrategy": {"type": "Coherent"}, "template": {"cliques": cliques}}
    story.record("podcliquesets", "s", {"spec": spec, "status": {"currentGenerationHash": "v0"}})
    story.record("podcliques", "s-0-f", {"metadata": {"labels": tags}, "spec": {"replicas": 1, "minAvailable": 1}})
    entry = {"epoch": "17", "role": "Anchor", "podCliqueSetGenerationHash": "v0", "podCliques": {"f": 1}}
    spec = {"podCliqueSetReplicaIndex": 0, "entries": [entry]}
    story.record("podgangmaps", "s-0", {"metadata": {"labels": tags}, "spec": spec})
    story.pod("pod", gang="s-0-a", clique="s-0-f", extra={**tags, labels.TEMPLATE_HASH: "x"}, gated=True)
    gang_labels = {**tags, labels.EPOCH: epoch, labels.GANG_ROLE: labels.ANCHOR_ROLE}
    story.record("podgangs", "s-0-a", {"metadata": {"labels": gang_labels}, "spec": {"podgroups": []}})
    [result] = [candidate for candidate in invariants.judge(story.history, ["INV-020"]) if candidate.id == "INV-020"]
    assert result.holds is holds, result


def test_a_deleted_map_accuses_no_pod() -> None:
    """A separate SHOULD requirement judges that a map which a user deletes is restored."""
    played = Played(ALL, after={5: lambda p: p.story.delete("podgangmaps", "s-0")})
    result = verdicts(played.play())["INV-020"]
    assert result.holds is not False, result


def switched(played: Played, *, followed: bool) -> None:
    """Switch the strategy to Coherent during another update, and then delete three pods of F; with `followed`, the
    operator has acted on the switch before."""
    for strategy in ("RollingRecreate", "Coherent"):
        played.strategy = strategy
        played.begin(played.generation)
    if followed:
        played.write(played.layout[0])
    delete(played, "B0", "F", 3)


def joined(faults: dict[int, Fault] | None = None) -> dict[str, RuleResult]:
    """Return the verdicts on an update of all components of a set that was created with RollingRecreate and then
    switched to Coherent."""
    played = Played(ALL, after=faults)
    played.strategy = "RollingRecreate"

    def switch(played: Played) -> None:
        played.strategy = "Coherent"
        played.set()

    played.before_updates = switch
    return verdicts(played.play())


def test_pods_that_are_older_than_a_switch_to_coherent_are_known() -> None:
    """Deleting such pods is not seen as creating them, and counts against the budget."""
    assert {id: str(verdict) for id, verdict in joined().items() if verdict.holds is False} == {}
    assert joined({1: no_unit})["INV-012"].holds is False
    assert "of F" in joined({1: lambda p: delete(p, "B0", "F", 3)})["INV-011"].reason


@pytest.mark.parametrize("followed", [False, True])
def test_a_strategy_that_changes_in_the_middle_of_an_update_binds_once_the_operator_follows(followed: bool) -> None:
    result = verdicts(Played(ALL, after={1: lambda p: switched(p, followed=followed)}).play())["INV-011"]
    assert (result.holds is False) == followed, result


@pytest.mark.parametrize("name", ["broken-then-fixed", "reverted"])
def test_changes_in_the_middle_of_an_update(name: str) -> None:
    """The first version never becomes Ready, or is reverted; nothing that follows breaks another rule."""
    trace = TRACES[name]
    played = Played(trace)
    played.frozen = frozenset({"v1"} if name == "broken-then-fixed" else ())
    results = verdicts(played.play())
    assert {id: str(verdict) for id, verdict in results.items() if verdict.holds is False} == {}


def test_pods_of_a_deleted_clique_are_in_nobodys_way() -> None:
    """The garbage collector deletes them only after the next clique of that name has its pods."""

    def recreated(played: Played) -> None:
        story = played.story
        story.delete("podcliques", "s-0-P-1-p")
        story.owned("podcliques", "s-0-P-1-p", None, replicas=1)
        pod(played, "M1", P, "P-1-p")

    assert verdicts(Played(ALL, after={5: recreated}, owners=True).play())["INV-021"].holds is True


def test_a_pod_that_has_failed_does_not_count_as_bound() -> None:
    def evicted(played: Played) -> None:
        played._pod(played.of("M1", "F")[0], node="n", phase="Failed")
        played.bind(pod(played, "M1", F, "F"))

    assert verdicts(Played(ALL, after={1: evicted}).play())["INV-019"].holds is True


def test_an_update_is_not_blamed_for_a_clique_that_was_deleted_before_it() -> None:
    """The garbage collector lags and deletes pods of the clique during an update that does not change the clique."""

    def deleted_early(played: Played) -> None:
        played.story.delete("podcliques", "s-0-F")

    def collected_late(played: Played) -> None:
        delete(played, "B0", "F", 1)

    late_collection = Played(GROUPS, after={1: collected_late}, owners=True)
    assert verdicts(late_collection.play())["INV-015"].holds is False
    late_collection = Played(GROUPS, after={1: collected_late}, owners=True)
    late_collection.before_updates = deleted_early
    result = verdicts(late_collection.play())["INV-015"]
    assert result.holds is True, result


def test_a_clique_that_an_update_deletes_is_judged_before_the_garbage_collector_comes() -> None:
    results = verdicts(Played(GROUPS, after={1: lambda p: p.story.delete("podcliques", "s-0-F")}, owners=True).play())
    assert results["INV-015"].holds is False
    assert "and the update is of D, P" in results["INV-015"].reason


def scaled(played: Played) -> None:
    """Scale F as if the request had been admitted just before the update: the map follows, although the sub-step's gang
    is not Ready."""
    played.scale("F", 7)
    grown = [dataclasses.replace(e, cliques={"F": e.size(F) + 2}) if e.key == "B0" else e for e in played.layout[0]]
    played.write(tuple(grown))


def in_two_writes(played: Played) -> None:
    """Write the next sub-step in two writes: first a map that also has its new gang, then a map without the members
    that the gang took over."""
    later = ALL.writes[2].layout
    played.write(tuple({e.key: e for e in (*later, *played.layout[0])}.values()))
    played.write(later)


def test_a_scale_is_no_sub_step_and_a_sub_step_in_two_writes_is_seen_by_what_is_held_twice() -> None:
    unready = ["gang-not-ready"]
    only_first = dataclasses.replace(ALL, writes=ALL.writes[:2], whole=False)
    results = verdicts(Played(only_first, unready, after={1: scaled}).play())
    assert results["INV-017"].holds is not False, results["INV-017"]
    assert verdicts(Played(only_first, unready, after={1: in_two_writes}).play())["INV-013"].holds is False
    in_one_write = Played(only_first, unready, after={1: lambda p: p.write(ALL.writes[2].layout)})
    assert verdicts(in_one_write.play())["INV-017"].holds is False


def test_a_replica_that_a_map_holds_twice_between_two_writes_is_in_one_gang() -> None:
    def twice(played: Played) -> None:
        later = {entry.key: entry for entry in (*ALL.writes[2].layout, *played.layout[0])}
        played.map(tuple(later.values()))

    assert verdicts(Played(ALL, after={1: twice}).play())["INV-021"].holds is True


def test_an_update_that_began_under_another_strategy_need_not_keep_a_version_whole() -> None:
    def taken_over(played: Played) -> None:
        for strategy in ("RollingRecreate", "Coherent"):
            played.strategy = strategy
            played.begin(played.generation)
        played.write(played.layout[0])
        no_unit(played)

    assert verdicts(Played(ALL, after={1: no_unit}).play())["INV-012"].holds is False
    result = verdicts(Played(ALL, after={1: taken_over}).play())["INV-012"]
    assert result.holds is not False, result


def test_bound_pods_of_a_deleted_clique_count() -> None:
    """The clique's pods were left to a lagging garbage collector, and their successors are bound without waiting."""

    def recreated(played: Played) -> None:
        story = played.story
        story.delete("podcliques", "s-0-P-2-p")
        story.owned("podcliques", "s-0-P-2-p", None, replicas=1)
        played.bind(pod(played, "B2", P, "P-2-p"))

    result = verdicts(Played(ALL, after={1: recreated}, owners=True).play())["INV-019"]
    assert result.holds is False and "2 pods of s-0-P-2-p are bound" in result.reason


FIRST_TEXT = Trace(
    "first-text",
    ("COH-168",),
    "F5/2 P4/1 D3/1 as the first text of the proposal updates it",
    ALL.components,
    ALL.changed,
    tuple(
        Sub(traces.layout(gangs.split(" | ")), begins, {})
        for begins, gangs in (
            ("", "B0*@v0: F5 P[0] D[0] | B1@v0: P[1] | B2@v0: P[2] | B3@v0: P[3] | B4@v0: D[1] | B5@v0: D[2]"),
            (
                "v1",
                "B0*@v0: F3 | B1@v0: P[1] | B2@v0: P[2] | B3@v0: P[3] | B4@v0: D[1] | B5@v0: D[2] "
                "| M1*@v1: F2 P[0] D[0]",
            ),
            ("", "B2@v0: P[2] | B3@v0: P[3] | B5@v0: D[2] | M1*@v1: F2 P[0] D[0] | M2*@v1: F3 P[1] D[1]"),
            ("", "M1*@v1: F2 P[0] D[0] | M2*@v1: F3 P[1] D[1] | T1@v1: P[2] | T2@v1: P[3] | T3@v1: D[2]"),
        )
    ),
    False,
)


def test_the_layout_of_the_first_text_may_take_down_what_it_says() -> None:
    results = verdicts(Played(FIRST_TEXT, budgets=False).play())
    assert results["INV-023"].holds is True, results["INV-023"].reason
    assert results["INV-011"].holds is None
    assert verdicts(Played(FIRST_TEXT).play())["INV-011"].holds is False


def unready(played: Played) -> None:
    """Let no pod that is created from now on become Ready."""
    played.faults |= {"never-ready", "gang-not-ready"}


def two_replicas(played: Played) -> None:
    delete(played, "B1", "P-1-p", 1)
    delete(played, "B2", "P-2-p", 1)


EXCESSES: dict[str, dict[int, Fault]] = {
    "three pods beside the first anchor": {1: lambda p: delete(p, "B0", "F", 3)},
    "two replicas beside the first anchor": {1: two_replicas},
    "a replica before the last anchor is Ready": {1: unready, 2: lambda p: delete(p, "B2", "P-2-p", 1)},
}


@pytest.mark.parametrize("excess", EXCESSES)
def test_the_first_text_is_seen_broken(excess: str) -> None:
    result = verdicts(Played(FIRST_TEXT, budgets=False, after=EXCESSES[excess]).play())["INV-023"]
    assert result.holds is False
    assert "are unavailable" in result.reason


@pytest.mark.parametrize(
    ("users", "holds"), [([], False), (["operator"], False), (["gang-scheduler"], True), (["kwok-admin"], True)]
)
def test_a_pod_that_calls_itself_disrupted_is_not_excused_by_that(users: list[str], holds: bool) -> None:
    def first_replica_disrupted(played: Played) -> None:
        played.index = 0
        [name, *_] = played.of("M2", "F")
        document = dict(played.story.history.view().get("pods", name) or {})
        status = {"conditions": [*document["status"]["conditions"], {"type": "DisruptionTarget", "status": "True"}]}
        metadata = {**document["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
        played.story.record("pods", name, {**document, "metadata": metadata, "status": status})
        played.story.history.origins.deleted_by = {name: users}
        played.delete(name)
        played.index = 1

    result = verdicts(Played(ALL, replicas=2, after={1: first_replica_disrupted}).play())["INV-016"]
    assert (result.holds is not False) is holds
