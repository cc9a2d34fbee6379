"""Tests of comparisons of invented results: rounds, validity, resuming, verdicts, gates and tables."""

from __future__ import annotations

import copy
import io
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import orjson
import psutil
import pytest
from rich.console import Console

from conformance import drawing
from conformance.data import PROJECT
from conformance.errors import Exit, HarnessError, UsageError
from conformance.scale import results
from conformance.scale.compare import comparison, page, rounds, session, sides, tables, validity
from conformance.scale.compare.comparison import Question
from conformance.scale.compare.rounds import Side
from conformance.scale.compare.session import ComparisonPlan, Session
from conformance.scale.compare.sides import MeasuredSide
from conformance.scale.results import Result
from tests.scale.sample_results import DIGEST, result

LIMITS = validity.Limits()
OTHER = "sha256:" + "1" * 64


def sample_rounds(count: int, effect: float = 1.0, writes: float = 1.0) -> list[rounds.Round]:
    chance = random.Random(1)
    played_rounds = []
    for number in range(1, count + 1):
        base = result(ready=20 + chance.random(), writes=5000 + number)
        head = result(ready=(20 + chance.random()) * effect, writes=round((5000 - number) * writes), identity=OTHER)
        played_rounds.append(rounds.judged(number, base, head, LIMITS))
    return played_rounds


def compared(played_rounds: list[rounds.Round], **question: Any) -> dict[str, Any]:
    return comparison.compare(played_rounds, Question(**question), ("main", "branch"))


def test_a_slower_head_is_called_slower_and_fails_only_beyond_a_threshold() -> None:
    document = compared(sample_rounds(6, 1.25))
    assert document["verdict"] == "slower" and document["question"]["metric"] == "deploy/pods-ready"
    assert document["primary"]["estimate"]["ratio"] == pytest.approx(1.25, rel=0.05)
    assert comparison.exit_code(document) == Exit.CONFORMANT
    assert comparison.exit_code(compared(sample_rounds(6, 1.25), threshold=0.1)) == Exit.NOT_CONFORMANT
    assert comparison.exit_code(compared(sample_rounds(6, 1.25), threshold=0.4)) == Exit.CONFORMANT
    assert comparison.exit_code(compared(sample_rounds(6, 0.8), threshold=0.1)) == Exit.CONFORMANT


def test_a_tenth_more_writes_fail_after_three_rounds() -> None:
    document = compared(sample_rounds(3, writes=1.2))
    assert document["verdict"] == "inconclusive" and document["counts"]["writes"]["verdict"] == "more"
    assert document["gate"] == ["12.4% more writes, beyond the threshold of 5%"]
    assert comparison.exit_code(document) == Exit.NOT_CONFORMANT
    assert comparison.exit_code(compared(sample_rounds(3, writes=1.2), count_threshold=None)) == Exit.CONFORMANT
    assert compared(sample_rounds(3))["gate"] == []


def test_another_metric_is_tested_only_if_it_is_named_before() -> None:
    assert compared(sample_rounds(6), metric="delete/all-deleted")["verdict"] == "no difference seen"
    with pytest.raises(UsageError, match="pods-ready"):
        compared(sample_rounds(6), metric="deploy/pods-raedy")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda r: r["phases"][0].update(uncertainRecords=3), "3 events were missed"),
        (lambda r: r["phases"][1].update(throttled=2), "throttled 2 requests"),
        (lambda r: r["phases"][0]["machine"].update(foreignShare=0.3), "other processes used 30% of the CPU"),
        (lambda r: r["phases"][0]["machine"].update(clockJumpSeconds=-2.0), "the clock jumped by -2.0 s"),
        (lambda r: r["phases"][0].update(finalCheck=["19 pods instead of 20"]), "final check: 19 pods"),
        (lambda r: r.update(complete=False, reason="deploy: not over"), "not complete: deploy: not over"),
        (lambda r: r["floors"].update(after={**r["floors"]["after"], "markers": {"pods-ready": 12}}), "raw floors"),
    ],
)
def test_an_invalid_run_says_why_and_is_not_used(spoil: Callable[[Result], None], reason: str) -> None:
    played_rounds = sample_rounds(7)
    spoiled = copy.deepcopy(played_rounds[2].base)
    spoil(spoiled)
    played_rounds[2] = rounds.judged(3, spoiled, played_rounds[2].head, LIMITS)
    document = compared(played_rounds)
    [unused] = document["rounds"]["unused"]
    assert unused["round"] == 3 and reason in unused["reasons"][0] and unused["reasons"][0].startswith("base: ")
    assert document["rounds"]["used"] == 6


@pytest.mark.parametrize(("after", "valid"), [(1.6, True), (2.3, False)])
def test_short_floors_may_differ_by_a_second(after: float, valid: bool) -> None:
    run = result()
    run["floors"] = {
        "before": {**run["floors"]["before"], "markers": {"pods-ready": 1.2}},
        "after": {**run["floors"]["after"], "markers": {"pods-ready": after}},
    }
    assert (not validity.disturbances(run, LIMITS)) is valid


def test_a_head_that_fails_its_final_check_fails_the_comparison() -> None:
    played_rounds = sample_rounds(1)
    head = copy.deepcopy(played_rounds[0].head)
    head["phases"][0]["finalCheck"] = ["19 pods instead of 20"]
    document = compared([rounds.judged(1, played_rounds[0].base, head, LIMITS)])
    assert document["verdict"] == "invalid" and comparison.exit_code(document) == Exit.NOT_CONFORMANT


def test_disturbed_rounds_alone_are_not_an_answer() -> None:
    base = result()
    base["phases"][0]["machine"]["foreignShare"] = 0.9
    document = compared([rounds.judged(1, base, result(), LIMITS)])
    assert (document["verdict"], document["why"]) == ("invalid", "no round is valid")
    assert comparison.exit_code(document) == Exit.NO_ANSWER


def test_counts_are_an_answer_where_times_are_disturbed() -> None:
    played_rounds = []
    for round_ in sample_rounds(3):
        base = copy.deepcopy(round_.base)
        base["phases"][0]["machine"]["foreignShare"] = 0.9
        played_rounds.append(rounds.judged(round_.number, base, round_.head, LIMITS))
    assert compared(played_rounds)["verdict"] == "invalid"
    assert comparison.exit_code(compared(played_rounds)) == Exit.CONFORMANT
    assert comparison.exit_code(compared(played_rounds, threshold=0.1)) == Exit.NO_ANSWER, "times were asked for"
    assert "times of 0 of 3 rounds" in tables.title(compared(played_rounds))
    counted = "counts: writes within noise (1.00), reads within noise (1.00), cpu-ms within noise (1.00)"
    assert tables.headline(compared(played_rounds)) == f"invalid: no usable time of deploy/pods-ready; {counted}"


def test_more_cpu_of_the_operator_is_counted_and_fails_nothing() -> None:
    played_rounds = sample_rounds(3)
    for round_ in played_rounds:
        round_.head["phases"][0]["processes"]["operator"]["cpuSeconds"] *= 1.5
        round_.head["phases"][0]["processes"]["etcd"] = {"cpuSeconds": 90.0, "memoryMiB": 1}
    counted = compared(played_rounds)["counts"]["cpu-ms"]
    assert (counted["base"], counted["head"]) == ([10.0] * 3, [12.5] * 3), "milliseconds per pod, of its programs alone"
    assert counted["verdict"] == "more" and comparison.exit_code(compared(played_rounds)) == Exit.CONFORMANT


def test_which_writes_have_changed() -> None:
    document = compared(sample_rounds(3, writes=1.2))
    assert [change["request"] for change in document["changedWrites"]] == ["deploy: create pods"]
    assert "deploy: create pods: 5.00 per pod in the base, 6.00 in the head (+1.00)" in list(tables.notes(document))
    assert not any("create pods" in note for note in tables.notes(compared(sample_rounds(3))))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r["scenario"].update(digest=OTHER), "scenario: "),
        (lambda r: r["environment"].update(cpuModel="another"), "cpuModel: a model and another"),
        (lambda r: r["environment"]["versions"].update(kubernetes="1.35.0"), "version of kubernetes"),
        (lambda r: r["environment"].update(features=["--features", "workload-api"]), "features: "),
        (lambda r: r["implementation"].update(identity=DIGEST), "head: the implementation changed"),
    ],
)
def test_what_differs_is_not_compared_without_force(change: Callable[[Result], None], message: str) -> None:
    played_rounds = sample_rounds(6)
    change(played_rounds[5].head)
    with pytest.raises(UsageError, match="--force") as caught:
        compared(played_rounds)
    assert message in str(caught.value)
    assert message in compared(played_rounds, force=True)["warnings"][0]


def test_each_side_begins_as_often_as_the_other() -> None:
    orders = rounds.order(6, seed=3)
    assert orders == rounds.order(6, seed=3) and len({tuple(rounds.order(6, seed)) for seed in range(20)}) > 1
    for first, second in zip(orders[::2], orders[1::2], strict=True):
        assert {first[0], second[0]} == {Side.BASE, Side.HEAD}


def test_runs_that_do_not_alternate_are_noticed() -> None:
    at = [{**result(), "startedAt": f"2026-01-01T00:0{minute}:00+00:00"} for minute in range(4)]
    assert rounds.interleaved([at[0], at[3]], [at[1], at[2]]) and not rounds.interleaved(at[:2], at[2:])


PLAN = ComparisonPlan(
    base=MeasuredSide("a", {}, "a"),
    head=MeasuredSide("b", {"qps": "5"}, "b qps=5"),
    scenario="scale-20",
    scheduler="kube",
    rounds=3,
    warm_up=1,
    spare=2,
    seed=0,
    digest=DIGEST,
)


class Runner:
    """Writes sample results instead of measuring. It is killed after `lives` runs. Runs whose file names are in
    `disturbed` are disturbed, and those in `failing` fail."""

    def __init__(self, lives: int = 100, disturbed: tuple[str, ...] = (), failing: tuple[str, ...] = ()) -> None:
        self.runs: list[str] = []
        self._lives, self._disturbed, self._failing = lives, disturbed, failing

    def __call__(self, side: MeasuredSide, path: Path) -> None:
        if len(self.runs) == self._lives:
            raise KeyboardInterrupt
        self.runs.append(path.stem)
        document = result(identity=DIGEST if side.name == "a" else OTHER)
        if path.stem in self._disturbed:
            document["phases"][0]["machine"]["foreignShare"] = 0.5
        if path.stem in self._failing:
            document |= {"complete": False, "reason": "deploy: not over after 600 s"}
        results.write(document, path)


def play(folder: Path, runner: Runner) -> tuple[list[rounds.Round], list[str]]:
    lines: list[str] = []
    session.remember(PLAN, folder)
    played_rounds = Session(
        PLAN, folder, runner, LIMITS, lambda subject, step: lines.append(f"{subject}: {step}")
    ).play()
    return played_rounds, lines


def test_rounds_are_played_after_a_warm_up(tmp_path: Path) -> None:
    runner = Runner()
    played_rounds, lines = play(tmp_path / "new", runner)
    assert [round_.number for round_ in played_rounds] == [1, 2, 3] and len(runner.runs) == 8
    assert all(name.startswith("warm-up") for name in runner.runs[:2])
    assert {runner.runs[2], runner.runs[4]} == {"round-01-base", "round-02-head"} or {
        runner.runs[2],
        runner.runs[4],
    } == {"round-01-head", "round-02-base"}
    assert lines[0].startswith("warm-up 1 of 1: ") and "less than a minute left" in lines[-1]


def pairs(*stems: str) -> tuple[str, ...]:
    return tuple(f"{stem}-{side}" for stem in stems for side in Side)


def test_a_machine_that_others_use_ends_the_comparison_after_one_round_and_says_so_in_a_line(tmp_path: Path) -> None:
    runner = Runner(disturbed=pairs("warm-up-01", *(f"round-{number:02}" for number in range(1, 6))))
    played_rounds, lines = play(tmp_path, runner)
    assert len(played_rounds) == 1 and len(runner.runs) == 4
    assert lines[-1].startswith("the comparison ends here: other processes use 50% of the CPU")
    assert f"go on with --counts --rounds 3 --dir {tmp_path}" in lines[-1] and "\n" not in lines[-1]


def test_what_ended_early_goes_on_by_counts_alone(tmp_path: Path) -> None:
    runner = Runner(disturbed=pairs("warm-up-01", *(f"round-{number:02}" for number in range(1, 6))))
    play(tmp_path, runner)
    plan = replace(PLAN, rounds=3)
    session.remember(plan, tmp_path)
    played_rounds = Session(plan, tmp_path, runner, LIMITS, lambda *_: None, counts_only=True).play()
    assert [round_.number for round_ in played_rounds] == [1, 2, 3]
    assert len(runner.runs) == 8, "the warm-up and the first round are not played again"


def test_a_disturbed_beginning_that_does_not_last_ends_nothing(tmp_path: Path) -> None:
    runner = Runner(disturbed=pairs("warm-up-01", "round-02", "round-03"))
    played_rounds, lines = play(tmp_path, runner)
    assert len(played_rounds) == 5
    unused = [line for line in lines if "times not used" in line]
    assert unused == [
        f"round {number}: times not used: base: deploy: other processes used 50% of the CPU (and 1 more)"
        for number in (2, 3)
    ]
    assert "more if further rounds are disturbed" in lines[-1]


def test_counts_alone_do_not_care_about_others(tmp_path: Path) -> None:
    runner = Runner(disturbed=pairs("warm-up-01", *(f"round-{number:02}" for number in range(1, 6))))
    session.remember(PLAN, tmp_path)
    played_rounds = Session(PLAN, tmp_path, runner, LIMITS, lambda *_: None, counts_only=True).play()
    assert [round_.number for round_ in played_rounds] == [1, 2, 3]


def test_one_round_has_no_interval_and_no_estimate() -> None:
    document = compared(sample_rounds(1, 1.25))
    assert (document["verdict"], document["why"]) == ("inconclusive", "one round says nothing; 6 can")
    assert document["primary"]["estimate"] is None and len(document["primary"]["base"]) == 1
    name, base, head, ratio, _ = next(tables.rows(document))
    assert base.endswith(" s") and head.endswith(" s") and ratio == "-", name
    assert tables.headline(document) == "inconclusive: one usable time of deploy/pods-ready"
    assert "<svg" in page.page(document, "command")


def test_a_side_of_many_results_has_a_short_name(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"run-{number:02}.json") for number in range(18)]
    for path in paths:
        results.write(result(), Path(path))
    assert sides.stored(paths).name == "18 results (run-00.json, …)"
    assert sides.stored([str(tmp_path)]).name == str(tmp_path)


def test_a_kill_loses_no_finished_round(tmp_path: Path) -> None:
    first, second = Runner(lives=5), Runner()
    with pytest.raises(KeyboardInterrupt):
        play(tmp_path, first)
    played_rounds, _ = play(tmp_path, second)
    assert len(played_rounds) == 3 and len(second.runs) == 4  # both runs of the half-done round 2 are repeated
    third = Runner()
    assert len(play(tmp_path, third)[0]) == 3 and third.runs == []


def test_a_disturbed_round_is_replaced_while_there_are_spare_ones(tmp_path: Path) -> None:
    played_rounds, lines = play(tmp_path / "one", Runner(disturbed=("round-02-head",)))
    assert [bool(round_.unused) for round_ in played_rounds] == [False, True, False, False]
    assert any("not used: head: deploy: other processes" in line for line in lines)
    every = tuple(f"round-{number:02}-base" for number in range(1, 9))
    assert len(play(tmp_path / "all", Runner(disturbed=every))[0]) == 5


@pytest.mark.parametrize("side", ["base", "head"])
def test_a_side_that_cannot_work_ends_the_comparison_with_its_first_pair(side: str, tmp_path: Path) -> None:
    runner = Runner(failing=(f"warm-up-01-{side}",))
    played_rounds, lines = play(tmp_path / "one", runner)
    assert len(played_rounds) == 1 and len(runner.runs) == 2
    assert f"warm-up 1: the comparison ends here: {side}: not complete: deploy: not over after 600 s" in lines
    assert comparison.exit_code(compared(played_rounds)) == (Exit.NOT_CONFORMANT if side == "head" else Exit.NO_ANSWER)
    later, _ = play(tmp_path / "two", Runner(failing=("round-02-base",)))
    assert len(later) == 4, "a failure in a later round leaves the others"


def test_a_folder_of_another_comparison_is_not_continued(tmp_path: Path) -> None:
    session.remember(PLAN, tmp_path)
    session.remember(PLAN, tmp_path)
    changed = ComparisonPlan(**{**vars(PLAN), "scenario": "scale-1000"})
    with pytest.raises(UsageError, match="another scenario"):
        session.remember(changed, tmp_path)
    (tmp_path / "plan.json").write_text("{")
    with pytest.raises(UsageError, match="is not JSON"):
        session.remember(PLAN, tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(UsageError, match="is not empty"):
        session.remember(PLAN, tmp_path / "other")


def test_more_rounds_may_be_asked_of_the_same_folder(tmp_path: Path) -> None:
    session.remember(PLAN, tmp_path)
    session.remember(ComparisonPlan(**{**vars(PLAN), "rounds": 8}), tmp_path)


def test_a_run_without_a_result_ends_the_comparison_with_its_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_command", lambda *arguments: ["/bin/false"])
    with pytest.raises(HarnessError, match=r"round-01-base\.log"):
        session.subprocess_runner("scale-20", "kube")(PLAN.head, tmp_path / "round-01-base.json")
    assert PLAN.head.arguments() == ["--implementation", "b", "--set=qps=5"]


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


COMPARING = """
import sys
from pathlib import Path
from conformance.scale.compare import session
from conformance.scale.compare.sides import MeasuredSide
session._command = lambda *given: ["/bin/sh", "-c", "echo $$ > pid; read -r line < fifo"]
session.subprocess_runner("scale-20", "kube")(MeasuredSide("b", {}, "b"), Path("round-01-base.json"))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_ends_with_the_comparison(tmp_path: Path, number: signal.Signals) -> None:
    os.mkfifo(tmp_path / "fifo")
    paths = {**os.environ, "PYTHONPATH": str(PROJECT)}
    comparing = subprocess.Popen([sys.executable, "-c", COMPARING], cwd=tmp_path, env=paths, stderr=subprocess.DEVNULL)
    try:
        until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith("\n"))
        run = int((tmp_path / "pid").read_text())
        comparing.send_signal(number)
        assert comparing.wait(60) != 0
        until(lambda: not psutil.pid_exists(run))
    finally:
        comparing.kill()
        comparing.wait()


def test_stored_sides_are_files_or_folders(tmp_path: Path) -> None:
    for number in (2, 1):
        document = {**result(), "startedAt": f"2026-01-01T00:0{number}:00+00:00"}
        results.write(document, tmp_path / f"{number}.json")
    side = sides.stored([str(tmp_path)])
    assert [document["startedAt"][15] for document in side.results] == ["1", "2"]
    assert sides.is_stored(str(tmp_path)) and sides.is_stored("x.json") and not sides.is_stored("reference")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="has no result"):
        sides.stored([str(tmp_path / "empty")])


def test_the_tables_have_the_verdict_first_and_the_command_last() -> None:
    document = orjson.loads(orjson.dumps(compared(sample_rounds(6, 1.25), threshold=0.1)))
    text = tables.markdown(document, "grove-conformance scale compare --base a --head b")
    lines = text.splitlines()
    assert lines[0] == "### Made: main (base) and branch (head), 6 rounds, 2026-01-02"
    answer = (
        "branch is slower than main: deploy/pods-ready 25.55 s instead of 20.57 s, 1.25 times as long "
        "(95 % interval 1.22 to 1.28)"
    )
    assert (lines[2], lines[4]) == (f"**{answer}**", "p = 0.031 in 6 rounds")
    assert "**fails**" in text and "| deploy/pods-ready |" in text and "| writes per pod |" in text
    assert lines[-1] == "    grove-conformance scale compare --base a --head b"
    output = io.StringIO()
    tables.show(document, Console(file=output, width=200))
    assert answer in output.getvalue() and "2 × a model, 23 GiB" in output.getvalue()


def test_the_page_needs_no_network_and_escapes_names() -> None:
    document = orjson.loads(orjson.dumps(compared(sample_rounds(6, 1.25))))
    document["head"]["name"] = "<script>alert(1)</script> & $x^2$"
    text = page.page(document, "scale compare --head '<b>'")
    assert "<script>alert" not in text and "<b>" not in text and "&lt;script&gt;alert" in text
    assert " is slower than main: deploy/pods-ready " in text
    assert text.count("<svg") == 2 and "prefers-color-scheme: dark" in text
    links = re.findall(r'(?:src|href)="([^"]*)"', text)
    assert links and all(link.startswith("#") for link in links)
    for color in drawing.COLORS:
        assert color not in text
    assert page.page(document, "x") == page.page(document, "x")


def test_a_comparison_without_usable_rounds_has_a_page() -> None:
    base = result()
    base["phases"][0]["machine"]["foreignShare"] = 0.9
    document = compared([rounds.judged(1, base, result(), LIMITS)])
    text = page.page(document, "x")
    assert "invalid: no usable time of deploy/pods-ready" in text and "no round is valid" in text
    assert "<svg" not in text and "Ratios of the rounds" not in text
    assert "<td>-</td>" not in text and "deploy/pods-ready</td>" not in text


def test_a_comparison_of_which_nothing_was_measured_has_no_table() -> None:
    base = result()
    base["complete"], base["reason"] = False, "1 pod is missing"
    document = compared([rounds.judged(1, base, result(), LIMITS)])
    assert list(tables.rows(document)) == []
    text = page.page(document, "x")
    assert "<table" not in text and "1 pod is missing" in text
    assert "|---|" not in tables.markdown(document, "x")


@pytest.mark.parametrize(
    ("base", "head", "names"),
    [
        (("op", "1"), ("other", "1"), ("op", "other")),
        (("op", "1"), ("op", "2"), ("op 1", "op 2")),
        (("op", "1"), ("op", "1"), ("main", "branch")),
    ],
)
def test_sides_have_the_names_of_their_descriptors(
    base: tuple[str, str], head: tuple[str, str], names: tuple[str, str]
) -> None:
    document = compared(sample_rounds(6, 1.25))
    for side, (name, version) in (("base", base), ("head", head)):
        implementation = {**document[side]["implementation"], "name": name, "version": version}
        document[side] = {**document[side], "implementation": implementation}
    assert tables.names(document) == names


@pytest.mark.parametrize("count", [1, 3, 6])
def test_the_document_has_its_schema(count: int) -> None:
    document = orjson.loads(orjson.dumps(compared(sample_rounds(count, 1.25), threshold=0.1)))
    schema = Path(comparison.__file__).with_name("comparison.schema.json")
    jsonschema.validate(document, orjson.loads(schema.read_bytes()))
