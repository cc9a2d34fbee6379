"""Tests of comparisons, with sample results: rounds, validity, resumed sessions, verdicts, gates and tables."""

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

DEFAULT_LIMITS = validity.Limits()
OTHER_DIGEST = "sha256:" + "1" * 64


def sample_rounds(count: int, effect: float = 1.0, writes: float = 1.0) -> list[rounds.Round]:
    random_source = random.Random(1)
    judged_rounds = []
    for number in range(1, count + 1):
        base = result(ready=20 + random_source.random(), writes=5000 + number)
        head = result(
            ready=(20 + random_source.random()) * effect, writes=round((5000 - number) * writes), identity=OTHER_DIGEST
        )
        judged_rounds.append(rounds.judge_round(number, base, head, DEFAULT_LIMITS))
    return judged_rounds


def compare_rounds(judged_rounds: list[rounds.Round], **question: Any) -> dict[str, Any]:
    return comparison.compare(judged_rounds, Question(**question), ("main", "branch"))


def test_a_slower_head_fails_only_above_the_threshold() -> None:
    document = compare_rounds(sample_rounds(6, 1.25))
    assert document["verdict"] == "slower" and document["question"]["metric"] == "deploy/pods-ready"
    assert document["primary"]["estimate"]["ratio"] == pytest.approx(1.25, rel=0.05)
    assert comparison.exit_code(document) == Exit.CONFORMANT
    assert comparison.exit_code(compare_rounds(sample_rounds(6, 1.25), threshold=0.1)) == Exit.NOT_CONFORMANT
    assert comparison.exit_code(compare_rounds(sample_rounds(6, 1.25), threshold=0.4)) == Exit.CONFORMANT
    assert comparison.exit_code(compare_rounds(sample_rounds(6, 0.8), threshold=0.1)) == Exit.CONFORMANT


def test_more_writes_fail_after_three_rounds() -> None:
    document = compare_rounds(sample_rounds(3, writes=1.2))
    assert document["verdict"] == "inconclusive" and document["counts"]["writes"]["verdict"] == "more"
    assert document["gate"] == ["12.4% more writes, beyond the threshold of 5%"]
    assert comparison.exit_code(document) == Exit.NOT_CONFORMANT
    assert comparison.exit_code(compare_rounds(sample_rounds(3, writes=1.2), count_threshold=None)) == Exit.CONFORMANT
    assert compare_rounds(sample_rounds(3))["gate"] == []


def test_only_the_requested_metric_is_tested() -> None:
    assert compare_rounds(sample_rounds(6), metric="delete/all-deleted")["verdict"] == "no difference seen"
    with pytest.raises(UsageError, match="pods-ready"):
        compare_rounds(sample_rounds(6), metric="deploy/pods-raedy")


@pytest.mark.parametrize(
    ("disturb", "reason"),
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
def test_an_invalid_run_is_explained_and_not_used(disturb: Callable[[Result], None], reason: str) -> None:
    judged_rounds = sample_rounds(7)
    disturbed_result = copy.deepcopy(judged_rounds[2].base)
    disturb(disturbed_result)
    judged_rounds[2] = rounds.judge_round(3, disturbed_result, judged_rounds[2].head, DEFAULT_LIMITS)
    document = compare_rounds(judged_rounds)
    [unused_round] = document["rounds"]["unused"]
    assert (
        unused_round["round"] == 3
        and reason in unused_round["reasons"][0]
        and unused_round["reasons"][0].startswith("base: ")
    )
    assert document["rounds"]["used"] == 6


@pytest.mark.parametrize(("floor_after", "is_valid"), [(1.6, True), (2.3, False)])
def test_short_floors_may_differ_by_a_second(floor_after: float, is_valid: bool) -> None:
    run = result()
    run["floors"] = {
        "before": {**run["floors"]["before"], "markers": {"pods-ready": 1.2}},
        "after": {**run["floors"]["after"], "markers": {"pods-ready": floor_after}},
    }
    assert (not validity.disturbances(run, DEFAULT_LIMITS)) is is_valid


def test_a_head_that_fails_its_final_check_fails_the_comparison() -> None:
    judged_rounds = sample_rounds(1)
    head = copy.deepcopy(judged_rounds[0].head)
    head["phases"][0]["finalCheck"] = ["19 pods instead of 20"]
    document = compare_rounds([rounds.judge_round(1, judged_rounds[0].base, head, DEFAULT_LIMITS)])
    assert document["verdict"] == "invalid" and comparison.exit_code(document) == Exit.NOT_CONFORMANT


def test_disturbed_rounds_alone_are_not_an_answer() -> None:
    base = result()
    base["phases"][0]["machine"]["foreignShare"] = 0.9
    document = compare_rounds([rounds.judge_round(1, base, result(), DEFAULT_LIMITS)])
    assert (document["verdict"], document["why"]) == ("invalid", "no round is valid")
    assert comparison.exit_code(document) == Exit.NO_ANSWER


def test_counts_are_an_answer_even_if_times_are_disturbed() -> None:
    judged_rounds = []
    for round_ in sample_rounds(3):
        base = copy.deepcopy(round_.base)
        base["phases"][0]["machine"]["foreignShare"] = 0.9
        judged_rounds.append(rounds.judge_round(round_.number, base, round_.head, DEFAULT_LIMITS))
    assert compare_rounds(judged_rounds)["verdict"] == "invalid"
    assert comparison.exit_code(compare_rounds(judged_rounds)) == Exit.CONFORMANT
    assert comparison.exit_code(compare_rounds(judged_rounds, threshold=0.1)) == Exit.NO_ANSWER, "times were asked for"
    assert "times of 0 of 3 rounds" in tables.title(compare_rounds(judged_rounds))
    counts_text = "counts: writes within noise (1.00), reads within noise (1.00), cpu-ms within noise (1.00)"
    assert (
        tables.headline(compare_rounds(judged_rounds)) == f"invalid: no usable time of deploy/pods-ready; {counts_text}"
    )


def test_more_cpu_of_the_operator_is_reported_without_failure() -> None:
    judged_rounds = sample_rounds(3)
    for round_ in judged_rounds:
        round_.head["phases"][0]["processes"]["operator"]["cpuSeconds"] *= 1.5
        round_.head["phases"][0]["processes"]["etcd"] = {"cpuSeconds": 90.0, "memoryMiB": 1}
    cpu_counts = compare_rounds(judged_rounds)["counts"]["cpu-ms"]
    assert (cpu_counts["base"], cpu_counts["head"]) == ([10.0] * 3, [12.5] * 3), (
        "milliseconds per pod, of its programs alone"
    )
    assert cpu_counts["verdict"] == "more" and comparison.exit_code(compare_rounds(judged_rounds)) == Exit.CONFORMANT


def test_changed_writes_are_listed() -> None:
    document = compare_rounds(sample_rounds(3, writes=1.2))
    assert [change["request"] for change in document["changedWrites"]] == ["deploy: create pods"]
    assert "deploy: create pods: 5.00 per pod in the base, 6.00 in the head (+1.00)" in list(tables.notes(document))
    assert not any("create pods" in note for note in tables.notes(compare_rounds(sample_rounds(3))))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r["scenario"].update(digest=OTHER_DIGEST), "scenario: "),
        (lambda r: r["environment"].update(cpuModel="another"), "cpuModel: a model and another"),
        (lambda r: r["environment"]["versions"].update(kubernetes="1.35.0"), "version of kubernetes"),
        (lambda r: r["environment"].update(features=["--features", "workload-api"]), "features: "),
        (lambda r: r["implementation"].update(identity=DIGEST), "head: the implementation changed"),
    ],
)
def test_runs_that_differ_are_not_compared_without_force(change: Callable[[Result], None], message: str) -> None:
    judged_rounds = sample_rounds(6)
    change(judged_rounds[5].head)
    with pytest.raises(UsageError, match="--force") as caught:
        compare_rounds(judged_rounds)
    assert message in str(caught.value)
    assert message in compare_rounds(judged_rounds, force=True)["warnings"][0]


def test_each_side_starts_equally_often() -> None:
    round_orders = rounds.side_order(6, seed=3)
    assert (
        round_orders == rounds.side_order(6, seed=3)
        and len({tuple(rounds.side_order(6, seed)) for seed in range(20)}) > 1
    )
    for first_order, second_order in zip(round_orders[::2], round_orders[1::2], strict=True):
        assert {first_order[0], second_order[0]} == {Side.BASE, Side.HEAD}


def test_runs_that_do_not_alternate_are_detected() -> None:
    timed_results = [{**result(), "startedAt": f"2026-01-01T00:0{minute}:00+00:00"} for minute in range(4)]
    assert rounds.are_interleaved(
        [timed_results[0], timed_results[3]], [timed_results[1], timed_results[2]]
    ) and not rounds.are_interleaved(timed_results[:2], timed_results[2:])


COMPARISON_PLAN = ComparisonPlan(
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


class FakeRunner:
    """A runner that writes sample results instead of measuring. It is interrupted after `max_runs` runs. Runs whose
    file names are in `disturbed_runs` are disturbed, and runs whose file names are in `failing_runs` fail."""

    def __init__(
        self, max_runs: int = 100, disturbed_runs: tuple[str, ...] = (), failing_runs: tuple[str, ...] = ()
    ) -> None:
        self.runs: list[str] = []
        self._max_runs, self._disturbed_runs, self._failing_runs = max_runs, disturbed_runs, failing_runs

    def __call__(self, side: MeasuredSide, path: Path) -> None:
        if len(self.runs) == self._max_runs:
            raise KeyboardInterrupt
        self.runs.append(path.stem)
        document = result(identity=DIGEST if side.name == "a" else OTHER_DIGEST)
        if path.stem in self._disturbed_runs:
            document["phases"][0]["machine"]["foreignShare"] = 0.5
        if path.stem in self._failing_runs:
            document |= {"complete": False, "reason": "deploy: not over after 600 s"}
        results.write(document, path)


def run_session(folder: Path, runner: FakeRunner) -> tuple[list[rounds.Round], list[str]]:
    lines: list[str] = []
    session.save_plan(COMPARISON_PLAN, folder)
    judged_rounds = Session(
        COMPARISON_PLAN, folder, runner, DEFAULT_LIMITS, lambda subject, step: lines.append(f"{subject}: {step}")
    ).play()
    return judged_rounds, lines


def test_rounds_run_after_a_warm_up(tmp_path: Path) -> None:
    runner = FakeRunner()
    judged_rounds, lines = run_session(tmp_path / "new", runner)
    assert [round_.number for round_ in judged_rounds] == [1, 2, 3] and len(runner.runs) == 8
    assert all(name.startswith("warm-up") for name in runner.runs[:2])
    assert {runner.runs[2], runner.runs[4]} == {"round-01-base", "round-02-head"} or {
        runner.runs[2],
        runner.runs[4],
    } == {"round-01-head", "round-02-base"}
    assert lines[0].startswith("warm-up 1 of 1: ") and "less than a minute left" in lines[-1]


def run_names(*stems: str) -> tuple[str, ...]:
    return tuple(f"{stem}-{side}" for stem in stems for side in Side)


def test_a_comparison_on_a_busy_machine_ends_after_one_round_with_one_line(tmp_path: Path) -> None:
    runner = FakeRunner(disturbed_runs=run_names("warm-up-01", *(f"round-{number:02}" for number in range(1, 6))))
    judged_rounds, lines = run_session(tmp_path, runner)
    assert len(judged_rounds) == 1 and len(runner.runs) == 4
    assert lines[-1].startswith("the comparison ends here: other processes use 50% of the CPU")
    assert f"go on with --counts --rounds 3 --dir {tmp_path}" in lines[-1] and "\n" not in lines[-1]


def test_a_comparison_that_ended_early_can_continue_with_counts_only(tmp_path: Path) -> None:
    runner = FakeRunner(disturbed_runs=run_names("warm-up-01", *(f"round-{number:02}" for number in range(1, 6))))
    run_session(tmp_path, runner)
    plan = replace(COMPARISON_PLAN, rounds=3)
    session.save_plan(plan, tmp_path)
    judged_rounds = Session(plan, tmp_path, runner, DEFAULT_LIMITS, lambda *_: None, counts_only=True).play()
    assert [round_.number for round_ in judged_rounds] == [1, 2, 3]
    assert len(runner.runs) == 8, "the warm-up and the first round are not played again"


def test_a_temporary_disturbance_does_not_end_the_comparison(tmp_path: Path) -> None:
    runner = FakeRunner(disturbed_runs=run_names("warm-up-01", "round-02", "round-03"))
    judged_rounds, lines = run_session(tmp_path, runner)
    assert len(judged_rounds) == 5
    unused_lines = [line for line in lines if "times not used" in line]
    assert unused_lines == [
        f"round {number}: times not used: base: deploy: other processes used 50% of the CPU (and 1 more)"
        for number in (2, 3)
    ]
    assert "more if further rounds are disturbed" in lines[-1]


def test_a_busy_machine_does_not_disturb_counts(tmp_path: Path) -> None:
    runner = FakeRunner(disturbed_runs=run_names("warm-up-01", *(f"round-{number:02}" for number in range(1, 6))))
    session.save_plan(COMPARISON_PLAN, tmp_path)
    judged_rounds = Session(COMPARISON_PLAN, tmp_path, runner, DEFAULT_LIMITS, lambda *_: None, counts_only=True).play()
    assert [round_.number for round_ in judged_rounds] == [1, 2, 3]


def test_one_round_yields_no_interval_and_no_estimate() -> None:
    document = compare_rounds(sample_rounds(1, 1.25))
    assert (document["verdict"], document["why"]) == ("inconclusive", "one round says nothing; 6 can")
    assert document["primary"]["estimate"] is None and len(document["primary"]["base"]) == 1
    name, base, head, ratio, _ = next(tables.rows(document))
    assert base.endswith(" s") and head.endswith(" s") and ratio == "-", name
    assert tables.headline(document) == "inconclusive: one usable time of deploy/pods-ready"
    assert "<svg" in page.page(document, "command")


def test_a_side_with_many_results_has_a_short_name(tmp_path: Path) -> None:
    environment = [str(tmp_path / f"run-{number:02}.json") for number in range(18)]
    for path in environment:
        results.write(result(), Path(path))
    assert sides.load_stored(environment).name == "18 results (run-00.json, …)"
    assert sides.load_stored([str(tmp_path)]).name == str(tmp_path)


def test_a_kill_loses_no_finished_round(tmp_path: Path) -> None:
    killed_runner, second_runner = FakeRunner(max_runs=5), FakeRunner()
    with pytest.raises(KeyboardInterrupt):
        run_session(tmp_path, killed_runner)
    judged_rounds, _ = run_session(tmp_path, second_runner)
    assert len(judged_rounds) == 3 and len(second_runner.runs) == 4  # both runs of the incomplete round 2 are repeated
    third_runner = FakeRunner()
    assert len(run_session(tmp_path, third_runner)[0]) == 3 and third_runner.runs == []


def test_a_disturbed_round_is_replaced_while_spare_rounds_are_left(tmp_path: Path) -> None:
    judged_rounds, lines = run_session(tmp_path / "one", FakeRunner(disturbed_runs=("round-02-head",)))
    assert [bool(round_.unused) for round_ in judged_rounds] == [False, True, False, False]
    assert any("not used: head: deploy: other processes" in line for line in lines)
    all_runs = tuple(f"round-{number:02}-base" for number in range(1, 9))
    assert len(run_session(tmp_path / "all", FakeRunner(disturbed_runs=all_runs))[0]) == 5


@pytest.mark.parametrize("side", ["base", "head"])
def test_a_side_that_fails_in_the_first_pair_ends_the_comparison(side: str, tmp_path: Path) -> None:
    runner = FakeRunner(failing_runs=(f"warm-up-01-{side}",))
    judged_rounds, lines = run_session(tmp_path / "one", runner)
    assert len(judged_rounds) == 1 and len(runner.runs) == 2
    assert f"warm-up 1: the comparison ends here: {side}: not complete: deploy: not over after 600 s" in lines
    assert comparison.exit_code(compare_rounds(judged_rounds)) == (
        Exit.NOT_CONFORMANT if side == "head" else Exit.NO_ANSWER
    )
    later_rounds, _ = run_session(tmp_path / "two", FakeRunner(failing_runs=("round-02-base",)))
    assert len(later_rounds) == 4, "a failure in a later round leaves the others"


def test_a_folder_of_another_comparison_is_not_continued(tmp_path: Path) -> None:
    session.save_plan(COMPARISON_PLAN, tmp_path)
    session.save_plan(COMPARISON_PLAN, tmp_path)
    changed_plan = ComparisonPlan(**{**vars(COMPARISON_PLAN), "scenario": "scale-1000"})
    with pytest.raises(UsageError, match="another scenario"):
        session.save_plan(changed_plan, tmp_path)
    (tmp_path / "plan.json").write_text("{")
    with pytest.raises(UsageError, match="is not JSON"):
        session.save_plan(COMPARISON_PLAN, tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(UsageError, match="is not empty"):
        session.save_plan(COMPARISON_PLAN, tmp_path / "other")


def test_more_rounds_may_be_requested_for_the_same_folder(tmp_path: Path) -> None:
    session.save_plan(COMPARISON_PLAN, tmp_path)
    session.save_plan(ComparisonPlan(**{**vars(COMPARISON_PLAN), "rounds": 8}), tmp_path)


def test_a_run_without_a_result_ends_the_comparison_with_its_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_command", lambda *arguments: ["/bin/false"])
    with pytest.raises(HarnessError, match=r"round-01-base\.log"):
        session.subprocess_runner("scale-20", "kube")(COMPARISON_PLAN.head, tmp_path / "round-01-base.json")
    assert COMPARISON_PLAN.head.arguments() == ["--implementation", "b", "--set=qps=5"]


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


COMPARISON_SOURCE = """
import sys
from pathlib import Path
from conformance.scale.compare import session
from conformance.scale.compare.sides import MeasuredSide
session._command = lambda *given: ["/bin/sh", "-c", "echo $$ > pid; read -r line < fifo"]
session.subprocess_runner("scale-20", "kube")(MeasuredSide("b", {}, "b"), Path("round-01-base.json"))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_ends_when_its_comparison_ends(tmp_path: Path, number: signal.Signals) -> None:
    os.mkfifo(tmp_path / "fifo")
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    comparison_process = subprocess.Popen(
        [sys.executable, "-c", COMPARISON_SOURCE], cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith("\n"))
        run_pid = int((tmp_path / "pid").read_text())
        comparison_process.send_signal(number)
        assert comparison_process.wait(60) != 0
        wait_until(lambda: not psutil.pid_exists(run_pid))
    finally:
        comparison_process.kill()
        comparison_process.wait()


def test_stored_sides_are_files_or_folders(tmp_path: Path) -> None:
    for number in (2, 1):
        document = {**result(), "startedAt": f"2026-01-01T00:0{number}:00+00:00"}
        results.write(document, tmp_path / f"{number}.json")
    side = sides.load_stored([str(tmp_path)])
    assert [document["startedAt"][15] for document in side.results] == ["1", "2"]
    assert sides.is_stored(str(tmp_path)) and sides.is_stored("x.json") and not sides.is_stored("reference")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="has no result"):
        sides.load_stored([str(tmp_path / "empty")])


def test_the_tables_start_with_the_verdict_and_end_with_the_command() -> None:
    document = orjson.loads(orjson.dumps(compare_rounds(sample_rounds(6, 1.25), threshold=0.1)))
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
    document = orjson.loads(orjson.dumps(compare_rounds(sample_rounds(6, 1.25))))
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
    document = compare_rounds([rounds.judge_round(1, base, result(), DEFAULT_LIMITS)])
    text = page.page(document, "x")
    assert "invalid: no usable time of deploy/pods-ready" in text and "no round is valid" in text
    assert "<svg" not in text and "Ratios of the rounds" not in text
    assert "<td>-</td>" not in text and "deploy/pods-ready</td>" not in text


def test_a_comparison_without_measurements_has_no_table() -> None:
    base = result()
    base["complete"], base["reason"] = False, "1 pod is missing"
    document = compare_rounds([rounds.judge_round(1, base, result(), DEFAULT_LIMITS)])
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
def test_sides_are_named_after_their_descriptors(
    base: tuple[str, str], head: tuple[str, str], names: tuple[str, str]
) -> None:
    document = compare_rounds(sample_rounds(6, 1.25))
    for side, (name, version) in (("base", base), ("head", head)):
        implementation = {**document[side]["implementation"], "name": name, "version": version}
        document[side] = {**document[side], "implementation": implementation}
    assert tables.names(document) == names


@pytest.mark.parametrize("count", [1, 3, 6])
def test_the_document_matches_its_schema(count: int) -> None:
    document = orjson.loads(orjson.dumps(compare_rounds(sample_rounds(count, 1.25), threshold=0.1)))
    schema = Path(comparison.__file__).with_name("comparison.schema.json")
    jsonschema.validate(document, orjson.loads(schema.read_bytes()))
