"""Tests of shards: together they run every test once, each scene on one machine, and they take about the same time."""

from __future__ import annotations

from pathlib import Path

import costs
import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from conformance.errors import UsageError
from conformance.run import launch
from conformance.suite.outcomes import ledger
from conformance.suite.session import shards
from conformance.suite.settings import RunSettings

SCENES = st.dictionaries(st.text(min_size=1, max_size=4), st.sampled_from("abcdefgh"), max_size=40)
COSTS = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 80), max_size=6)


@given(scenes=SCENES, number=st.integers(1, 9), costs=COSTS)
def test_every_test_is_in_exactly_one_shard(scenes: dict[str, str], number: int, costs: dict[str, float]) -> None:
    parts = shards.divide(scenes, number, costs)
    assert len(parts) == number
    assert sorted(test for part in parts for test in part) == sorted(scenes)


@given(scenes=SCENES, number=st.integers(1, 9), costs=COSTS)
def test_a_scene_is_never_divided(scenes: dict[str, str], number: int, costs: dict[str, float]) -> None:
    for part in shards.divide(scenes, number, costs):
        part_scenes = {scenes[test] for test in part}
        assert part_scenes.isdisjoint(scenes[test] for test in scenes if test not in part)


@given(scenes=SCENES, number=st.integers(1, 9), costs=COSTS)
def test_every_machine_computes_the_same(scenes: dict[str, str], number: int, costs: dict[str, float]) -> None:
    """The order in which a machine has collected the tests does not matter."""
    backwards = dict(reversed(scenes.items()))
    assert shards.divide(backwards, number, costs) == shards.divide(scenes, number, costs)


@given(costs=st.dictionaries(st.text("ab", max_size=4), st.integers(1, 80), min_size=1), number=st.integers(1, 6))
def test_no_shard_has_more_than_one_scene_more_to_do_than_another(costs: dict[str, float], number: int) -> None:
    scenes = {f"test of {name}": name for name in costs}
    loads = [sum(costs[scenes[test]] for test in part) for part in shards.divide(scenes, number, costs)]
    assert max(loads) - min(loads) <= max(costs.values())


def test_a_scene_without_a_cost_counts_as_the_median() -> None:
    parts = shards.divide({"t": "cheap", "u": "usual", "v": "dear", "w": "new"}, 2, {"cheap": 1, "usual": 5, "dear": 9})
    assert parts == [{"t", "v"}, {"u", "w"}]


def test_each_repetition_of_a_scene_has_the_cost_of_the_scene() -> None:
    scenes = {f"t[{n} of 3]": f"f.py::Scene[{n} of 3]" for n in (1, 2, 3)} | {"u": "f.py::Other"}
    parts = shards.divide(scenes, 2, {"f.py::Scene": 2, "f.py::Other": 6}, repeat=3)
    assert parts == [{"u"}, {"t[1 of 3]", "t[2 of 3]", "t[3 of 3]"}]


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "1/0", "a/b", "1/2/3", "-1/3", "1/ 3", "²/3"])
def test_an_invalid_shard_is_reported(text: str) -> None:
    with pytest.raises(UsageError, match=r"--shard: .* is not a shard — give i/n, from 1/n to n/n"):
        shards.parse(text)


def test_a_shard_is_spelled_as_it_is_read() -> None:
    assert str(shards.parse("2/5")) == "2/5"


def test_the_costs_are_those_of_the_suite(tmp_path: Path) -> None:
    """A scene without a cost is not a mistake; a cost without a scene is one."""
    features = ("authorizer", "coherent", "component-updates", "grove-hashes", "kai", "leader-election", "mnnvl")
    features += (
        "preemption",
        "scale-to-zero",
        "single-anchor",
        "topology",
        "upgrade",
        "waiting-reasons",
        "zero-minimum",
    )
    settings = RunSettings(run="r", directory=str(tmp_path), implementation="reference", features=features)
    plan = launch.collect(settings)
    scenes, costs = set(plan.groups.values()), shards.costs()
    assert sorted(set(costs) - scenes) == [], "remove them from fixtures/costs/scenes.yaml"
    assert len(scenes & set(costs)) > 0.8 * len(scenes)
    parts = [plan.part(tests) for tests in shards.divide(plan.groups, 4, costs)]
    assert sorted(test for part in parts for test in part.selected) == sorted(plan.selected)
    loads = [sum(costs.get(scene, 0) for scene in set(part.groups.values())) for part in parts]
    assert max(loads) < 1.2 * min(loads), loads


def test_costs_are_medians_of_complete_scenes() -> None:
    played = [
        ledger.ScenePlayed(
            scene="a.py::Scene", worker="w", seconds=duration, steps={}, ended_by=end, cpu=duration / 2.2
        )
        for duration, end in ((2.2, ""), (8.4, ""), (7.7, ""), (500.0, "pods Ready"))
    ]
    without_scene = ledger.TestFinished(
        test="b.py::t[x]", outcome="passed", worker="w", seconds={"setup": 1.0, "call": 2.2}
    )
    judged = ledger.TestFinished(test="a.py::t", outcome="passed", worker="w", scene="a.py::Scene", seconds={"call": 9})
    measured = costs.Measured()
    measured.add([*played, without_scene, judged])
    text = costs.document({"a.py::Scene": 1, "c.py::Unmeasured": 4}, {"c.py::Unmeasured": 9.5}, measured)
    assert yaml.safe_load(text)["seconds"] == {"a.py": {"Scene": 8}, "b.py": {"t[x]": 3}, "c.py": {"Unmeasured": 4}}
    assert yaml.safe_load(text)["cpu"] == {"a.py": {"Scene": 3.5}, "c.py": {"Unmeasured": 9.5}}
    assert text.startswith("# How long each scene")


def test_a_scene_that_costs_twice_as_much_as_recorded_is_named() -> None:
    recorded = {f"s{number}": 3.0 + number for number in range(30)}
    slow_machine = {scene: [1.9 * seconds, 1.7 * seconds] for scene, seconds in recorded.items()}
    assert costs.excesses(recorded, slow_machine) == []
    doubled = slow_machine | {"s7": [2.2 * 1.8 * recorded["s7"]]}
    assert costs.excesses(recorded, doubled) == ["s7: 39.6 CPU seconds, 2.2 times the recorded 10.0"]
    assert costs.excesses({"s": 0.1, "t": 4.0}, {"s": [1.5], "new": [9.0], "t": [8.1]}) == [
        "t: 8.1 CPU seconds, 2.0 times the recorded 4.0"
    ]


def test_runs_are_checked_against_the_recorded_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(costs, "recorded_cpu", lambda: {"a.py::Scene": 3.0})
    event = ledger.ScenePlayed(scene="a.py::Scene", worker="w", seconds=9, steps={}, cpu=5.9)
    folder = tmp_path / "run" / "ledger"
    folder.mkdir(parents=True)
    (folder / "run.jsonl").write_bytes(msgspec.json.encode(event) + b"\n")
    assert costs.main(["--check", str(tmp_path)]) == 0
    (folder / "run.jsonl").write_bytes(msgspec.json.encode(msgspec.structs.replace(event, cpu=6.1)) + b"\n")
    assert costs.main(["--check", str(tmp_path)]) == 1
    assert "a.py::Scene: 6.1 CPU seconds, 2.0 times the recorded 3.0" in capsys.readouterr().out
    assert costs.main(["--check", str(tmp_path / "none")]) == 1, "nothing was measured"
