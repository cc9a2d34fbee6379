"""Tests of the invariants of coherent updates on simulated traces: every invariant holds for all correct traces, and is
broken in a trace with a fault."""

from __future__ import annotations

import dataclasses

import pytest

from conformance import invariants
from conformance.grove import labels
from conformance.grove.coherent import traces
from conformance.grove.coherent.model import Component, Entry, Key
from conformance.grove.coherent.traces import Trace, TraceWrite
from conformance.invariants.result import RuleResult
from tests.coherent.trace_simulation import Fault, TraceSimulation
from tests.history.scripted import Scripted
from tests.history.story import Story

TRACES = {trace.name: trace for trace in traces.traces()}
ALL_COMPONENTS, GROUPS_ONLY = TRACES["all-components"], TRACES["groups-only"]
RULE_IDS = [*(f"INV-{number:03}" for number in range(11, 24)), "COHR-109"]


def verdicts(simulation: TraceSimulation) -> dict[str, RuleResult]:
    return {verdict.id: verdict for verdict in invariants.judge(simulation.story.history, RULE_IDS)}


@pytest.mark.parametrize("name", [name for name, trace in TRACES.items() if trace.whole])
def test_worked_traces_break_no_rule(name: str) -> None:
    results = verdicts(TraceSimulation(TRACES[name], replicas=2).run())
    assert {id: str(verdict) for id, verdict in results.items() if verdict.holds is False} == {}
    silent_ids = {id for id, verdict in results.items() if verdict.holds is None}
    has_loose_budget = any(component.unavailable > component.minimum for component in TRACES[name].components)
    has_groups = any(component.key.kind == "group" for component in TRACES[name].in_scope)
    permitted_ids = {"INV-015", "INV-023", *(["INV-012"] if has_loose_budget or not has_groups else [])}
    assert silent_ids <= permitted_ids, {id: results[id].reason for id in silent_ids}
    assert ("INV-015" in silent_ids) == (len(TRACES[name].changed) == len(TRACES[name].components))


F, P = Key("clique", "F"), Key("group", "P")


def delete_pods(simulation: TraceSimulation, key: str, clique: str, count: int) -> None:
    for name in simulation.pod_names(key, clique)[:count]:
        simulation.delete_pod(name)


def break_both_units(simulation: TraceSimulation) -> None:
    delete_pods(simulation, "M1", "F", 1)
    delete_pods(simulation, "B0", "F", 2)


def omit_an_entry(simulation: TraceSimulation) -> None:
    simulation.write(tuple(entry for entry in simulation.layout[0] if entry.key != "B3"))


def create_pod(
    simulation: TraceSimulation, entry: str, key: Key, clique: str, *, generation: str = "", gang: str = ""
) -> str:
    target: Entry = next(candidate for candidate in simulation.layout[simulation.index] if candidate.key == entry)
    return simulation.create_pod(target, key, f"s-{simulation.index}-{clique}", generation=generation, gang=gang)


def delete_pod_of_first_replica(simulation: TraceSimulation) -> None:
    simulation.index = 0
    delete_pods(simulation, "M2", "F", 1)
    simulation.index = 1


def gang(name: str, generation: str, pods: int, *replicas: int, anchor: bool = True) -> Entry:
    return Entry(name, generation, {"F": pods} if pods else {}, {"P": replicas} if replicas else {}, anchor, not anchor)


OLD_ENTRIES = gang("B0", "v0", 4, 0), gang("B1", "v0", 0, 1, anchor=False)
COMPONENTS_IN_TURN = Trace(
    name="components-in-turn",
    source=("COH-I02",),
    about="First all pods of F are replaced, then all replicas of P; the budget is kept.",
    components=(Component(F, 4, 2, 2), Component(P, 2, 1, 1)),
    changed=(F, P),
    writes=(
        TraceWrite(OLD_ENTRIES, "", {}),
        TraceWrite((gang("B0", "v0", 2, 0), OLD_ENTRIES[1], gang("M1", "v1", 2)), "v1", {}),
        TraceWrite((gang("B0", "v0", 0, 0), OLD_ENTRIES[1], gang("M1", "v1", 2), gang("M2", "v1", 2)), "", {}),
    ),
    whole=False,
)


FAULTS: dict[str, tuple[str, TraceSimulation]] = {
    "INV-011": (
        "after the deletion of pod",
        TraceSimulation(ALL_COMPONENTS, faults_by_write={1: lambda p: delete_pods(p, "B0", "F", 3)}),
    ),
    "INV-012": (
        "the new one lacks F; the old one lacks F",
        TraceSimulation(ALL_COMPONENTS, faults_by_write={1: break_both_units}),
    ),
    "INV-013": (
        "entries hold replicas [0, 1, 2] of P",
        TraceSimulation(ALL_COMPONENTS, faults_by_write={1: omit_an_entry}),
    ),
    "INV-014": (
        "has template hash F-v1",
        TraceSimulation(ALL_COMPONENTS, faults_by_write={1: lambda p: create_pod(p, "B0", F, "F", generation="v1")}),
    ),
    "INV-015": (
        "and the update is of D, P",
        TraceSimulation(GROUPS_ONLY, faults_by_write={1: lambda p: delete_pods(p, "B0", "F", 1)}),
    ),
    "INV-016": (
        "of replica 0 is deleted after",
        TraceSimulation(ALL_COMPONENTS, replicas=2, faults_by_write={1: delete_pod_of_first_replica}),
    ),
    "INV-017": ("was never scheduled", TraceSimulation(ALL_COMPONENTS, ["gang-not-ready"])),
    "COHR-109": ("was never Ready", TraceSimulation(ALL_COMPONENTS, ["gang-not-ready"])),
    "INV-018": ("is bound, and its anchor", TraceSimulation(ALL_COMPONENTS, ["tail-first"])),
    "INV-019": (
        "6 pods of s-0-F are bound",
        TraceSimulation(ALL_COMPONENTS, faults_by_write={1: lambda p: p.bind_pod(create_pod(p, "M1", F, "F"))}),
    ),
    "INV-020": (
        "which no entry names",
        TraceSimulation(ALL_COMPONENTS, faults_by_write={1: lambda p: create_pod(p, "M1", F, "F", gang="elsewhere")}),
    ),
    "INV-021": (
        "the pods of replica 1 of P are in gangs",
        TraceSimulation(ALL_COMPONENTS, faults_by_write={1: lambda p: create_pod(p, "M1", P, "P-1-p")}),
    ),
    "INV-022": (
        "gang s-0-X is in no entry",
        TraceSimulation(
            ALL_COMPONENTS,
            faults_by_write={5: lambda p: p.write_gang(Entry("X", "v0", {}, {"P": (9,)}, False), ready=True)},
        ),
    ),
}


@pytest.mark.parametrize("id", FAULTS)
def test_each_broken_rule_is_reported(id: str) -> None:
    reason, simulation = FAULTS[id]
    result = verdicts(simulation.run())[id]
    assert result.holds is False
    assert reason in result.reason


def test_the_budget_and_the_serving_unit_are_judged_separately() -> None:
    """Each of the two rules is broken in a history in which the other rule holds."""
    over_budget = verdicts(
        TraceSimulation(ALL_COMPONENTS, faults_by_write={1: lambda p: delete_pods(p, "B0", "F", 3)}).run()
    )
    assert (over_budget["INV-011"].holds, over_budget["INV-012"].holds) == (False, True)
    results_in_turn = verdicts(TraceSimulation(COMPONENTS_IN_TURN).run())
    assert (results_in_turn["INV-011"].holds, results_in_turn["INV-012"].holds) == (True, False)
    assert "the new one lacks P; the old one lacks F" in results_in_turn["INV-012"].reason


def test_no_serving_unit_is_required_if_only_standalone_cliques_are_updated() -> None:
    """For updates of standalone cliques only, the latest proposal plans a single step."""
    assert (
        verdicts(TraceSimulation(TRACES["standalone-only"], faults_by_write={1: break_both_units}).run())[
            "INV-012"
        ].holds
        is None
    )


@pytest.mark.parametrize(
    ("is_excused", "is_updating", "holds"), [(True, True, True), (False, True, False), (True, False, False)]
)
def test_a_pod_that_another_client_deletes_may_return_with_the_newest_version_during_an_update(
    is_excused: bool, is_updating: bool, holds: bool
) -> None:
    def replace_pod(simulation: TraceSimulation) -> None:
        if is_updating:
            simulation.start_update("v1")
        simulation.index = 1
        pod_name = simulation.pod_names("B0", "F")[0]
        if is_excused:
            simulation.story.history.origins.excused.add(simulation.story.history.records("pods", pod_name)[0].uid)
        simulation.delete_pod(pod_name)
        create_pod(simulation, "B0", F, "F", generation="v1")

    simulation = TraceSimulation(ALL_COMPONENTS, replicas=2)
    simulation.before_updates = replace_pod
    assert verdicts(simulation.run())["INV-014"].holds is holds


def test_members_that_an_update_has_not_replaced_are_reported() -> None:
    """The update ends before its last sub-steps."""
    result = verdicts(TraceSimulation(dataclasses.replace(ALL_COMPONENTS, writes=ALL_COMPONENTS.writes[:3])).run())[
        "INV-022"
    ]
    assert "of an old generation holds" in result.reason


def test_an_update_must_wait_for_pods_that_join_an_anchor() -> None:
    """COH-151: the gang is Ready because it has its minimum, but the pods that it has taken over are not Ready."""
    trace = TRACES["floor-and-absorb"]
    simulation = TraceSimulation(trace, faults_by_write={1: lambda p: p.faults.add("never-ready")})
    results = verdicts(simulation.run())
    assert "pods of F in gang s-0-M1 were Ready" in results["COHR-109"].reason
    assert results["INV-017"].holds is True, "they are bound"


def test_sets_with_another_strategy_are_not_judged() -> None:
    simulation = TraceSimulation(TRACES["all-components"])
    simulation.strategy = "RollingRecreate"
    results = verdicts(simulation.run())
    assert {verdict.holds for verdict in results.values()} == {None}
    assert {verdict.reason for verdict in results.values()} == {"no set has the strategy Coherent"}


@pytest.mark.parametrize(("epoch", "holds"), [("17", True), ("18", False)])
def test_the_epoch_of_a_gang_created_after_its_pods_names_the_entry_of_the_pods(epoch: str, holds: bool) -> None:
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


def test_no_pod_is_blamed_for_a_deleted_map() -> None:
    """A separate SHOULD requirement says that the operator restores a map that a user deletes."""
    simulation = TraceSimulation(ALL_COMPONENTS, faults_by_write={5: lambda p: p.story.delete("podgangmaps", "s-0")})
    result = verdicts(simulation.run())["INV-020"]
    assert result.holds is not False, result


def switch_to_coherent(simulation: TraceSimulation, *, has_acted: bool) -> None:
    """Switch the strategy to Coherent during another update, and then delete three pods of F. With `has_acted`, the
    operator acts on the switch before the deletion."""
    for strategy in ("RollingRecreate", "Coherent"):
        simulation.strategy = strategy
        simulation.start_update(simulation.generation)
    if has_acted:
        simulation.write(simulation.layout[0])
    delete_pods(simulation, "B0", "F", 3)


def verdicts_after_switch(faults: dict[int, Fault] | None = None) -> dict[str, RuleResult]:
    """Return the verdicts on an update of all components of a set that was created with RollingRecreate and then
    switched to Coherent."""
    simulation = TraceSimulation(ALL_COMPONENTS, faults_by_write=faults)
    simulation.strategy = "RollingRecreate"

    def switch(simulation: TraceSimulation) -> None:
        simulation.strategy = "Coherent"
        simulation.record_set()

    simulation.before_updates = switch
    return verdicts(simulation.run())


def test_pods_that_are_older_than_a_switch_to_coherent_are_recognized() -> None:
    """The deletion of such pods counts against the budget."""
    assert {id: str(verdict) for id, verdict in verdicts_after_switch().items() if verdict.holds is False} == {}
    assert verdicts_after_switch({1: break_both_units})["INV-012"].holds is False
    assert "of F" in verdicts_after_switch({1: lambda p: delete_pods(p, "B0", "F", 3)})["INV-011"].reason


@pytest.mark.parametrize("has_acted", [False, True])
def test_a_strategy_that_changes_during_an_update_applies_once_the_operator_has_acted_on_it(has_acted: bool) -> None:
    result = verdicts(
        TraceSimulation(ALL_COMPONENTS, faults_by_write={1: lambda p: switch_to_coherent(p, has_acted=has_acted)}).run()
    )["INV-011"]
    assert (result.holds is False) == has_acted, result


@pytest.mark.parametrize("name", ["broken-then-fixed", "reverted"])
def test_changes_during_an_update_break_no_rule(name: str) -> None:
    """The first version never becomes Ready, or is reverted. The next update breaks no rule."""
    trace = TRACES[name]
    simulation = TraceSimulation(trace)
    simulation.unready_generations = frozenset({"v1"} if name == "broken-then-fixed" else ())
    results = verdicts(simulation.run())
    assert {id: str(verdict) for id, verdict in results.items() if verdict.holds is False} == {}


def test_pods_of_a_deleted_clique_are_not_counted_with_their_successors() -> None:
    """The garbage collector deletes these pods only after the next clique with the same name has its pods."""

    def recreate_clique(simulation: TraceSimulation) -> None:
        story = simulation.story
        story.delete("podcliques", "s-0-P-1-p")
        story.owned("podcliques", "s-0-P-1-p", None, replicas=1)
        create_pod(simulation, "M1", P, "P-1-p")

    assert (
        verdicts(TraceSimulation(ALL_COMPONENTS, faults_by_write={5: recreate_clique}, owners=True).run())[
            "INV-021"
        ].holds
        is True
    )


def test_a_pod_that_has_failed_does_not_count_as_bound() -> None:
    def replace_failed_pod(simulation: TraceSimulation) -> None:
        simulation._record_pod(simulation.pod_names("M1", "F")[0], node="n", phase="Failed")
        simulation.bind_pod(create_pod(simulation, "M1", F, "F"))

    assert (
        verdicts(TraceSimulation(ALL_COMPONENTS, faults_by_write={1: replace_failed_pod}).run())["INV-019"].holds
        is True
    )


def test_an_update_is_not_blamed_for_a_clique_that_was_deleted_before_it() -> None:
    """The garbage collector lags and deletes pods of the clique during an update that does not change the clique."""

    def delete_clique(simulation: TraceSimulation) -> None:
        simulation.story.delete("podcliques", "s-0-F")

    def collect_pod(simulation: TraceSimulation) -> None:
        delete_pods(simulation, "B0", "F", 1)

    late_collection = TraceSimulation(GROUPS_ONLY, faults_by_write={1: collect_pod}, owners=True)
    assert verdicts(late_collection.run())["INV-015"].holds is False
    late_collection = TraceSimulation(GROUPS_ONLY, faults_by_write={1: collect_pod}, owners=True)
    late_collection.before_updates = delete_clique
    result = verdicts(late_collection.run())["INV-015"]
    assert result.holds is True, result


def test_the_deletion_of_a_clique_is_judged_before_its_pods_are_collected() -> None:
    results = verdicts(
        TraceSimulation(
            GROUPS_ONLY, faults_by_write={1: lambda p: p.story.delete("podcliques", "s-0-F")}, owners=True
        ).run()
    )
    assert results["INV-015"].holds is False
    assert "and the update is of D, P" in results["INV-015"].reason


def scale_before_update(simulation: TraceSimulation) -> None:
    """Scale F as if the request had been admitted just before the update. The map follows the scale, although the
    sub-step's gang is not Ready."""
    simulation.scale("F", 7)
    grown_layout = [
        dataclasses.replace(e, cliques={"F": e.size(F) + 2}) if e.key == "B0" else e for e in simulation.layout[0]
    ]
    simulation.write(tuple(grown_layout))


def write_sub_step_twice(simulation: TraceSimulation) -> None:
    """Write the next sub-step in two writes: first a map that also has the new gang, and then a map without the members
    that the gang has taken over."""
    next_layout = ALL_COMPONENTS.writes[2].layout
    simulation.write(tuple({e.key: e for e in (*next_layout, *simulation.layout[0])}.values()))
    simulation.write(next_layout)


def test_a_scale_is_not_a_sub_step_and_a_sub_step_in_two_writes_is_reported() -> None:
    faults = ["gang-not-ready"]
    first_sub_step = dataclasses.replace(ALL_COMPONENTS, writes=ALL_COMPONENTS.writes[:2], whole=False)
    results = verdicts(TraceSimulation(first_sub_step, faults, faults_by_write={1: scale_before_update}).run())
    assert results["INV-017"].holds is not False, results["INV-017"]
    assert (
        verdicts(TraceSimulation(first_sub_step, faults, faults_by_write={1: write_sub_step_twice}).run())[
            "INV-013"
        ].holds
        is False
    )
    in_one_write = TraceSimulation(
        first_sub_step, faults, faults_by_write={1: lambda p: p.write(ALL_COMPONENTS.writes[2].layout)}
    )
    assert verdicts(in_one_write.run())["INV-017"].holds is False


def test_a_replica_that_a_map_contains_twice_between_two_writes_is_in_one_gang() -> None:
    def write_replica_twice(simulation: TraceSimulation) -> None:
        next_layout = {entry.key: entry for entry in (*ALL_COMPONENTS.writes[2].layout, *simulation.layout[0])}
        simulation.write_map(tuple(next_layout.values()))

    assert (
        verdicts(TraceSimulation(ALL_COMPONENTS, faults_by_write={1: write_replica_twice}).run())["INV-021"].holds
        is True
    )


def test_an_update_that_started_under_another_strategy_need_not_keep_a_serving_unit() -> None:
    def take_over_update(simulation: TraceSimulation) -> None:
        for strategy in ("RollingRecreate", "Coherent"):
            simulation.strategy = strategy
            simulation.start_update(simulation.generation)
        simulation.write(simulation.layout[0])
        break_both_units(simulation)

    assert (
        verdicts(TraceSimulation(ALL_COMPONENTS, faults_by_write={1: break_both_units}).run())["INV-012"].holds is False
    )
    result = verdicts(TraceSimulation(ALL_COMPONENTS, faults_by_write={1: take_over_update}).run())["INV-012"]
    assert result.holds is not False, result


def test_bound_pods_of_a_deleted_clique_are_counted() -> None:
    """The clique's pods were left to a lagging garbage collector, and their successors are bound without waiting."""

    def recreate_clique(simulation: TraceSimulation) -> None:
        story = simulation.story
        story.delete("podcliques", "s-0-P-2-p")
        story.owned("podcliques", "s-0-P-2-p", None, replicas=1)
        simulation.bind_pod(create_pod(simulation, "B2", P, "P-2-p"))

    result = verdicts(TraceSimulation(ALL_COMPONENTS, faults_by_write={1: recreate_clique}, owners=True).run())[
        "INV-019"
    ]
    assert result.holds is False and "2 pods of s-0-P-2-p are bound" in result.reason


FIRST_PROPOSAL = Trace(
    "first-text",
    ("COH-168",),
    "F5/2 P4/1 D3/1 as the first text of the proposal updates it",
    ALL_COMPONENTS.components,
    ALL_COMPONENTS.changed,
    tuple(
        TraceWrite(traces.layout(gangs.split(" | ")), started_generation, {})
        for started_generation, gangs in (
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


def test_an_update_by_the_first_proposal_may_make_the_stated_members_unavailable() -> None:
    results = verdicts(TraceSimulation(FIRST_PROPOSAL, budgets=False).run())
    assert results["INV-023"].holds is True, results["INV-023"].reason
    assert results["INV-011"].holds is None
    assert verdicts(TraceSimulation(FIRST_PROPOSAL).run())["INV-011"].holds is False


def stop_readiness(simulation: TraceSimulation) -> None:
    """Keep all pods that are created from now on from becoming Ready."""
    simulation.faults |= {"never-ready", "gang-not-ready"}


def delete_pods_of_two_replicas(simulation: TraceSimulation) -> None:
    delete_pods(simulation, "B1", "P-1-p", 1)
    delete_pods(simulation, "B2", "P-2-p", 1)


EXCESSES: dict[str, dict[int, Fault]] = {
    "three pods beside the first anchor": {1: lambda p: delete_pods(p, "B0", "F", 3)},
    "two replicas beside the first anchor": {1: delete_pods_of_two_replicas},
    "a replica before the last anchor is Ready": {1: stop_readiness, 2: lambda p: delete_pods(p, "B2", "P-2-p", 1)},
}


@pytest.mark.parametrize("excess", EXCESSES)
def test_excesses_over_the_first_proposal_are_reported(excess: str) -> None:
    result = verdicts(TraceSimulation(FIRST_PROPOSAL, budgets=False, faults_by_write=EXCESSES[excess]).run())["INV-023"]
    assert result.holds is False
    assert "are unavailable" in result.reason


@pytest.mark.parametrize(
    ("users", "holds"), [([], False), (["operator"], False), (["gang-scheduler"], True), (["kwok-admin"], True)]
)
def test_a_disruption_condition_does_not_excuse_a_pod_that_the_operator_deletes(users: list[str], holds: bool) -> None:
    def disrupt_first_replica(simulation: TraceSimulation) -> None:
        simulation.index = 0
        [name, *_] = simulation.pod_names("M2", "F")
        document = dict(simulation.story.history.view().get("pods", name) or {})
        status = {"conditions": [*document["status"]["conditions"], {"type": "DisruptionTarget", "status": "True"}]}
        metadata = {**document["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
        simulation.story.record("pods", name, {**document, "metadata": metadata, "status": status})
        simulation.story.history.origins.deleted_by = {name: users}
        simulation.delete_pod(name)
        simulation.index = 1

    result = verdicts(TraceSimulation(ALL_COMPONENTS, replicas=2, faults_by_write={1: disrupt_first_replica}).run())[
        "INV-016"
    ]
    assert (result.holds is not False) is holds
