"""The rules about coherent updates over played traces: each holds for all of them, and each is seen broken."""

from __future__ import annotations

import pytest

from conformance import invariants
from conformance.grove.coherent import traces
from conformance.grove.coherent.model import Entry, Key
from conformance.invariants.result import RuleResult
from tests.coherent.playing import Played

TRACES = {each.name: each for each in traces.traces()}
ALL, GROUPS = TRACES["all-components"], TRACES["groups-only"]
IDS = [f"INV-{number:03}" for number in range(11, 23)]


def verdicts(played: Played) -> dict[str, RuleResult]:
    return {verdict.id: verdict for verdict in invariants.judge(played.story.history, IDS)}


@pytest.mark.parametrize("name", [name for name, trace in TRACES.items() if trace.whole])
def test_worked_traces_break_nothing(name: str) -> None:
    found = verdicts(Played(TRACES[name], replicas=2).play())
    assert {id: str(verdict) for id, verdict in found.items() if verdict.holds is False} == {}
    silent = {id for id, verdict in found.items() if verdict.holds is None}
    assert silent <= {"INV-015"}, {id: found[id].reason for id in silent}
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
    found: Entry = next(each for each in played.layout[played.index] if each.key == entry)
    return played.create(found, key, f"s-{played.index}-{clique}", generation=generation, gang=gang)


def of_first_replica(played: Played) -> None:
    played.index = 0
    delete(played, "M2", "F", 1)
    played.index = 1


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
    "INV-017": ("was never Ready", Played(ALL, ["gang-not-ready"])),
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
    what, played = FAULTS[id]
    found = verdicts(played.play())[id]
    assert found.holds is False
    assert what in found.reason


def test_pods_that_join_an_anchor_are_waited_for() -> None:
    """COH-151: the gang is Ready with its minimum, and the pods that it has taken over are not."""
    trace = TRACES["floor-and-absorb"]
    played = Played(trace, after={1: lambda p: p.faults.add("never-ready")})
    assert "pods of F in gang s-0-M1 were Ready" in verdicts(played.play())["INV-017"].reason


def test_nothing_is_said_of_sets_with_another_strategy() -> None:
    played = Played(TRACES["all-components"])
    played.strategy = "RollingRecreate"
    found = verdicts(played.play())
    assert {verdict.holds for verdict in found.values()} == {None}
    assert {verdict.reason for verdict in found.values()} == {"no set has the strategy Coherent"}


@pytest.mark.parametrize("name", ["broken-then-fixed", "reverted"])
def test_changes_in_the_middle_of_an_update(name: str) -> None:
    """The first version never becomes Ready, or is taken back: nothing else is broken by what follows."""
    trace = TRACES[name]
    played = Played(trace)
    played.frozen = frozenset({"v1"} if name == "broken-then-fixed" else ())
    found = verdicts(played.play())
    assert {id: str(verdict) for id, verdict in found.items() if verdict.holds is False} == {}


def test_pods_of_a_deleted_clique_are_in_nobodys_way() -> None:
    """The garbage collector deletes them when the next clique of that name has its pods already."""

    def recreated(played: Played) -> None:
        story = played.story
        story.gone("podcliques", "s-0-P-1-p")
        story.owned("podcliques", "s-0-P-1-p", None, replicas=1)
        pod(played, "M1", P, "P-1-p")

    assert verdicts(Played(ALL, after={5: recreated}, owners=True).play())["INV-021"].holds is True
