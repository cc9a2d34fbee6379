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
from tests.coherent.histories.simulated import component_sizes, convert_layout, run_sub_step
from tests.reference.coherent import simulation
from tests.reference.coherent.simulation import Replica, components, named

HISTORY_COUNT = int(os.environ.get("HISTORIES", "500"))
"""The number of histories. 500 histories take a few seconds."""
BROKEN_VERSION = "x"
"""A version whose pods never become Ready."""


def draw_set(rng: random.Random) -> str:
    """Draw a set in the notation of the simulation: `F5/2/3 P4/1/1`."""
    words = []
    for letter in rng.sample("FGPD", rng.randint(1, 3)):
        minimum = rng.randint(1, 3)
        replicas = minimum * rng.randint(1, 4) + rng.randint(0, 2)
        words.append(f"{letter}{replicas}/{minimum}/{minimum + rng.randint(0, 2)}")
    return " ".join(words)


def test_updates_without_failures_follow_the_plan() -> None:
    rng = random.Random(393)
    for _ in range(HISTORY_COUNT // 2):
        text = draw_set(rng)
        replica = Replica(components(text)).deploy()
        letters = [word[0] for word in text.split()]
        changed_letters = rng.sample(letters, rng.randint(1, len(letters)))
        replica.change("v1", [named(letter) for letter in changed_letters])
        expected = [
            [str(batch) for batch in reading] for reading in plan.readings(component_sizes(replica, scope=True))
        ]
        old_keys, batches = {entry.key for entry in convert_layout(replica.layout)}, []
        for _ in range(200):
            layout_before = convert_layout(replica.layout)
            step, errors = run_sub_step(replica, old_keys)
            assert errors == [], text
            if isinstance(step, Complete):
                break
            batches.append(str(change.LayoutChange(layout_before, convert_layout(replica.layout)).batch))
            replica.settle()
        assert batches in expected, text


def test_changes_reverts_and_losses_of_members_break_no_rule() -> None:
    rng = random.Random(394)
    for number in range(HISTORY_COUNT // 2):
        assert find_problems(rng) == [], number


def find_problems(rng: random.Random) -> list[str]:
    """Apply changes, reverts, losses and sub-steps to a set in random order, and return the problems of the first wrong
    step."""
    replica = Replica(components(draw_set(rng))).deploy()
    replica.works = lambda _, version: version != BROKEN_VERSION
    replica.retarget(dict.fromkeys(replica.versions, "0"))
    replica.scope.clear()
    old_keys: set[str] = set()
    for _ in range(rng.randint(4, 16)):
        match rng.choice(["change", "lose", "step", "step", "settle", "settle"]):
            case "change":
                key = rng.choice(list(replica.versions))
                generation_before = replica.generation
                replica.retarget({key: rng.choice(["0", "1", "2", BROKEN_VERSION])})
                if replica.generation != generation_before:
                    old_keys = {entry.key for entry in convert_layout(replica.layout)}
            case "lose":
                candidates = [(key, member) for key, members in replica.members.items() for member in members]
                key, member = rng.choice(candidates) if candidates else (None, None)
                if key is not None and member is not None:
                    replica.members[key].remove(member)
                    replica.act()
            case "step":
                _, errors = run_sub_step(replica, old_keys)
                if errors:
                    return errors
            case "settle":
                replica.settle()
    return []


def test_a_planner_that_takes_replicas_twice_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner that counts progress instead of reading it (COH-D03) adds replicas to a new gang that an old gang still
    contains."""
    original_next_step = planner.next_step

    def next_step(*arguments: Any) -> Any:
        step = original_next_step(*arguments)
        entries_with_groups = [entry for entry in arguments[0] if entry.groups]
        if not isinstance(step, Advance) or not entries_with_groups:
            return step
        last_entry = step.layout[-1]
        return replace(
            step,
            layout=(
                *step.layout[:-1],
                replace(last_entry, groups={**last_entry.groups, **entries_with_groups[0].groups}),
            ),
        )

    monkeypatch.setattr(simulation, "next_step", next_step)
    rng = random.Random(1)
    assert any(find_problems(rng) for _ in range(50))
