"""Tests of generated histories on the reference's planner, and on its operator with an API server in memory. The
suite's rules, which share no code with the reference, judge the histories.

Other tests plant the defects of other implementations. The rules detect these defects, and Hypothesis shrinks the
histories that show them.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest
import yaml
from hypothesis import HealthCheck, Phase, find, given, settings

from mutants.profiles import coherent as planning
from mutants.profiles import coherent_steady as scaling
from mutants.profiles import lifecycle
from mutants.profiles import update_interrupted as interrupted
from reference_impl.control import maps as control
from reference_impl.control.ownership import Adoption
from reference_impl.control.writer import Writer
from reference_impl.plan.coherent import planner
from tests.coherent.histories import model, reproduction
from tests.coherent.histories.drawing import draw_histories, draw_switches
from tests.coherent.histories.in_memory import run_histories
from tests.coherent.histories.simulated import problems
from tests.reference.coherent import simulation

HISTORY_COUNT = int(os.environ.get("HISTORIES", "100"))
"""The number of histories that are drawn."""


P = model.Part("p", is_group=True, replicas=4, minimum=1, budget=1)
COUNTED_PROGRESS = model.GeneratedHistory(
    (P,), 1, (model.Change(("p",), 2), model.Proceed(2), model.Revert(), model.Settle())
)
INDEX_GAPS = model.GeneratedHistory((P,), 1, (model.Scale("p", 3), model.Settle()))
KEPT_OLD_PODS = model.GeneratedHistory((P,), 1, (model.PauseCollector(), model.Change(("p",), 2), model.Settle()))
"""Histories that show the planted defects."""


@settings(max_examples=HISTORY_COUNT, deadline=None, suppress_health_check=list(HealthCheck))
@given(model.histories())
def test_no_history_breaks_a_rule(history: model.GeneratedHistory) -> None:
    assert problems(history) == []


def find_smallest_history(folder: Path) -> tuple[model.GeneratedHistory, str]:
    """Return the smallest history that breaks a rule, and the commands that reproduce it."""
    limits = settings(max_examples=2000, deadline=None, database=None, phases=[Phase.generate, Phase.shrink])
    example = find(model.histories(), lambda history: bool(problems(history)), settings=limits, random=Random(1))
    return example, (reproduction.write(folder, example, problems(example)) / "commands.sh").read_text(encoding="utf-8")


def test_counted_progress_is_detected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """After a revert, the remaining replicas are not the replicas with the highest indices (COH-D03)."""
    monkeypatch.setattr(planner, "slots", planning.progress_by_count)
    history, commands = find_smallest_history(tmp_path)
    action_types = [type(action) for action in history.actions]
    assert action_types.count(model.Change) in (1, 2) and len(action_types) <= 4, history
    assert [part.is_group for part in history.parts] == [True]
    assert "kubectl patch pcs s" in commands


def test_gaps_between_indices_are_detected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A scale-in that removes the oldest gangs first leaves gaps between the indices (COH-D05)."""
    monkeypatch.setattr(simulation, "fitted_layout", scaling.fitted_with_gaps)
    history, commands = find_smallest_history(tmp_path)
    assert {type(action) for action in history.actions} == {model.Scale} and len(history.actions) <= 2, history
    assert "kubectl scale podcliquescalinggroups/s-0-" in commands


async def test_no_history_breaks_an_invariant_in_memory() -> None:
    """`HISTORY_COUNT` is the number of histories for the planner. The operator runs an eighth of that number, and a
    48th for each direction of switches."""
    drawn_histories = [*draw_histories(max(1, HISTORY_COUNT // 8)), *draw_switches(max(1, HISTORY_COUNT // 48))]
    failing_histories = [
        str(history)
        for history, errors in zip(drawn_histories, await run_histories(drawn_histories), strict=True)
        if errors
    ]
    assert not failing_histories


def parse_history(
    text: str, *actions: model.Action, replicas: int = 1, strategy: str = model.COHERENT
) -> model.GeneratedHistory:
    """Return a history. In `text`, `f4/1/1` is a part with its replicas, minAvailable and maxUnavailable."""
    sizes = {word[0]: map(int, word[1:].split("/")) for word in text.split()}
    parts = tuple(model.Part(name, name in "pd", *size) for name, size in sizes.items())
    return model.GeneratedHistory(parts, replicas, actions, strategy)


FORMER_FAILURES = {
    "converged-component": parse_history(
        "f4/1/1 p3/1/1", model.Change(("p",), 2), model.Proceed(3), model.Change(("f",), 5, works=False), replicas=2
    ),
    "converged-replica": parse_history(
        "h1/1/1 p1/1/2", model.Change(("h", "p"), 2), model.Proceed(1), model.Change(("h",), 1), replicas=2
    ),
    "scaled-in-before": parse_history("f2/1/1 p3/1/1", model.Scale("p", 2), model.Change(("f",), 2)),
    "scaled-out-before": parse_history("d1/1/2 h4/1/1", model.Scale("d", 4), model.Change(("d", "h"), 2)),
    "rolled-back": parse_history(
        "p3/1/2",
        model.Change(("p",), 5, works=False),
        model.SwitchStrategy(model.ROLLING),
        model.Settle(),
        model.Change(("p",), 1),
        model.SwitchStrategy(model.COHERENT),
    ),
    "taken-over": parse_history(
        "f2/1/1 h4/2/2 p2/1/1",
        model.SwitchStrategy(model.ROLLING),
        model.Change(("f", "h", "p"), 2),
        model.Replace(1),
        model.SwitchStrategy(model.COHERENT),
        model.Settle(),
    ),
    "never-coherent-before": parse_history(
        "f2/1/1 p2/1/1",
        model.Change(("f", "p"), 2),
        model.Replace(1),
        model.SwitchStrategy(model.COHERENT),
        model.Settle(),
        strategy=model.ROLLING,
    ),
}
"""Histories that failed in the past because an invariant was too strict or the operator left old pods."""


@pytest.mark.parametrize("name", FORMER_FAILURES)
async def test_former_failures_do_not_return(name: str) -> None:
    assert await run_histories([FORMER_FAILURES[name]] * 2) == [[], []]


@pytest.mark.parametrize("has_defects", [False, True])
async def test_planted_defects_are_detected_in_memory(has_defects: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if has_defects:
        monkeypatch.setattr(planner, "slots", planning.progress_by_count)
        monkeypatch.setattr(control, "fitted_layout", scaling.fitted_with_gaps)
        monkeypatch.setattr(control, "fits", scaling.fits_by_count)
    assert [bool(errors) for errors in await run_histories([COUNTED_PROGRESS, INDEX_GAPS])] == [
        has_defects,
        has_defects,
    ]


async def test_pods_that_are_left_to_the_garbage_collector_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await run_histories([KEPT_OLD_PODS]) == [[]]
    monkeypatch.setattr(Writer, "release", interrupted.left_to_collector)
    monkeypatch.setattr(Adoption, "_adopt", lifecycle.adopt_nothing)
    [errors] = await run_histories([KEPT_OLD_PODS])
    assert any(error.startswith("INV-019 broken") for error in errors)
    assert any(error.startswith("INV-024 broken") for error in errors)


def test_commands_repeat_a_history(tmp_path: Path) -> None:
    part = model.Part("f", is_group=False, replicas=2, minimum=1, budget=1)
    actions = (
        model.Change(("f",), 4, works=False),
        model.Proceed(1),
        model.LosePod(3),
        model.FailNode(),
        model.Restart(),
        model.SwitchStrategy(model.ROLLING),
        model.Revert(),
    )
    history = model.GeneratedHistory((part,), 2, actions)
    folder = reproduction.write(tmp_path, history, ["something"])
    assert (folder / "problems.txt").read_text(encoding="utf-8").endswith("something\n")
    lines = (folder / "commands.sh").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "kubectl apply -f set.yaml"
    patches = [line for line in lines if line.startswith("kubectl patch pcs s")]
    assert len(patches) == 4 and '"type": "Coherent"' in patches[-1]
    assert yaml.safe_load((folder / "set.yaml").read_text(encoding="utf-8"))["spec"]["replicas"] == 2
