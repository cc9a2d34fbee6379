"""Tests of the reference's planner on generated sets and histories, which the suite's oracle judges.

The planner runs on simulated members. The oracle, which shares no code with the planner, judges each layout that the
planner writes as a step of an update.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace
from typing import Any

import pytest

from conformance.grove.coherent import change, plan
from reference_impl.plan.coherent import planner
from reference_impl.plan.coherent.planner import Advance, Complete
from tests.coherent.histories.simulated import read, sizes, sub_step
from tests.reference.coherent import simulation
from tests.reference.coherent.simulation import Replica, components, named

HISTORIES = int(os.environ.get("HISTORIES", "500"))
"""The number of histories; 500 take a few seconds."""
BROKEN = "x"
"""A version whose pods never become Ready."""


def drawn(rng: random.Random) -> str:
    """Draw a set in the notation of the simulation: `F5/2/3 P4/1/1`."""
    words = []
    for letter in rng.sample("FGPD", rng.randint(1, 3)):
        minimum = rng.randint(1, 3)
        replicas = minimum * rng.randint(1, 4) + rng.randint(0, 2)
        words.append(f"{letter}{replicas}/{minimum}/{minimum + rng.randint(0, 2)}")
    return " ".join(words)


def test_updates_without_failures_follow_the_plan() -> None:
    rng = random.Random(393)
    for _ in range(HISTORIES // 2):
        text = drawn(rng)
        replica = Replica(components(text)).deploy()
        letters = [word[0] for word in text.split()]
        changed = rng.sample(letters, rng.randint(1, len(letters)))
        replica.change("v1", [named(letter) for letter in changed])
        expected = [[str(batch) for batch in reading] for reading in plan.readings(sizes(replica, scope=True))]
        old, batches = {entry.key for entry in read(replica.layout)}, []
        for _ in range(200):
            before = read(replica.layout)
            step, wrong = sub_step(replica, old)
            assert wrong == [], text
            if isinstance(step, Complete):
                break
            batches.append(str(change.LayoutChange(before, read(replica.layout)).batch))
            replica.settle()
        assert batches in expected, text


def test_changes_reverts_and_lost_members_break_no_rule() -> None:
    rng = random.Random(394)
    for number in range(HISTORIES // 2):
        assert history(rng) == [], number


def history(rng: random.Random) -> list[str]:
    """Apply changes, reverts, losses and sub-steps to a set in random order; return the problems of the first bad
    step."""
    replica = Replica(components(drawn(rng))).deploy()
    replica.works = lambda _, version: version != BROKEN
    replica.retarget(dict.fromkeys(replica.versions, "0"))
    replica.scope.clear()
    old: set[str] = set()
    for _ in range(rng.randint(4, 16)):
        match rng.choice(["change", "lose", "step", "step", "settle", "settle"]):
            case "change":
                key = rng.choice(list(replica.versions))
                before = replica.generation
                replica.retarget({key: rng.choice(["0", "1", "2", BROKEN])})
                if replica.generation != before:
                    old = {entry.key for entry in read(replica.layout)}
            case "lose":
                candidates = [(key, member) for key, members in replica.members.items() for member in members]
                key, member = rng.choice(candidates) if candidates else (None, None)
                if key is not None and member is not None:
                    replica.members[key].remove(member)
                    replica.act()
            case "step":
                _, wrong = sub_step(replica, old)
                if wrong:
                    return wrong
            case "settle":
                replica.settle()
    return []


def test_a_planner_that_takes_replicas_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner that counts progress instead of looking it up (COH-D03) puts replicas that an old gang holds into a new
    gang too."""
    original = planner.next_step

    def next_step(*given: Any) -> Any:
        step = original(*given)
        holding = [entry for entry in given[0] if entry.groups]
        if not isinstance(step, Advance) or not holding:
            return step
        last = step.layout[-1]
        return replace(step, layout=(*step.layout[:-1], replace(last, groups={**last.groups, **holding[0].groups})))

    monkeypatch.setattr(simulation, "next_step", next_step)
    rng = random.Random(1)
    assert any(history(rng) for _ in range(50))
