"""Tests of `report combine`: which runs belong together, and the verdict on the combined run."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from conformance import cli
from conformance.errors import Exit, UsageError
from conformance.report import combining, document, evidence, model
from conformance.run.preparation import suite_digest
from conformance.suite.outcomes import ledger_file
from conformance.suite.outcomes.ledger import (
    AnyEvent,
    Check,
    HarnessFault,
    Implementation,
    PlannedTest,
    RunFinished,
    RunStarted,
    TestFinished,
    TestStarted,
)
from conformance.suite.registry import requirement

IDS = ("NODE-001", "NODE-003", "NODE-004")
"""Ids of requirements of one profile."""
IMPLEMENTATION = Implementation(name="mine", version="1", roles=("operator",), features=(), digest="sha256:i")


def run(number: int, outcomes: dict[str, str], *, ended: bool = True, **settings: Any) -> list[AnyEvent]:
    """Return the events of a run with one test for each id, which ends with this outcome. If not `ended`, the run was
    killed."""
    run_started = RunStarted(
        wall=10.0 * number,
        run=f"r{number}",
        suite_version="1",
        suite_digest=suite_digest(),
        implementation=IMPLEMENTATION,
        profiles=(),
        ids=IDS,
        plan=tuple(PlannedTest(f"t.py::{id}", (id,)) for id in outcomes),
        workers=1,
        time_scale=1,
        seed=7,
        reproduce="grove-conformance run --profile nodes --seed 7",
        environment={"kubernetes": "1.36.3", "cpus": str(number)},
    )
    events: list[AnyEvent] = [msgspec.structs.replace(run_started, **settings)]
    for id, outcome in outcomes.items():
        test = f"t.py::{id}"
        events.append(TestStarted(wall=10.0 * number + 1, test=test, ids=(id,), worker="gw0"))
        if outcome in ("passed", "failed"):
            check: Any = {"test": test, "id": id, "what": "w", "outcome": outcome, "expected": 1, "seen": 2}
            events.append(Check(wall=10.0 * number + 2, **check))
        bundle = "" if outcome == "passed" else f"bundles/{id}"
        end: Any = {"test": test, "outcome": outcome, "worker": "gw0", "bundle": bundle}
        events.append(TestFinished(wall=10.0 * number + 3, reason="why", **end))
    done = RunFinished(wall=10.0 * number + 9, interrupted=False, status=0)
    return [*events, done] if ended else events


def combined(*runs: list[AnyEvent]) -> model.Report:
    parts = [combining.partial_run(f"run {number}", events) for number, events in enumerate(runs, 1)]
    events = combining.combine(parts)
    last = events[-1].wall
    assert sorted(event.wall for event in events)[-1] == last
    return model.judge(requirement.load(), events, model.date(2026, 11, 27))


def outcomes(report: model.Report) -> list[str]:
    by_id = {result.requirement.id: str(result.outcome) for result in report.results}
    return [by_id[id] for id in IDS]


def shards(*outcome_maps: dict[str, str]) -> list[list[AnyEvent]]:
    return [run(n, outcome_by_id, shard=f"{n}/{len(outcome_maps)}") for n, outcome_by_id in enumerate(outcome_maps, 1)]


def test_shards_are_judged_like_one_run() -> None:
    one, two, three = ({id: "passed"} for id in IDS)
    report = combined(*shards(one, two, three))
    assert outcomes(report) == ["passed"] * 3
    assert report.exit is Exit.CONFORMANT
    assert (report.started.run, report.started.shard, report.started.workers) == ("r1+r2+r3", "", 3)
    assert report.started.environment == {"kubernetes": "1.36.3", "cpus": "1, 2, 3"}
    assert [test.worker for test in report.tests] == ["1-gw0", "2-gw0", "3-gw0"]
    all_events = run(1, one | two | three)
    single_run = model.judge(requirement.load(), all_events, model.date(2026, 11, 27))
    assert document.document(report)["verdict"] == document.document(single_run)["verdict"]


def test_tests_elsewhere_that_could_judge_an_invariant_are_counted_again() -> None:
    """Shards of one run leave out the same tests, but another selection may have run the tests that the first one left
    out."""
    one, two, three = ({id: "passed"} for id in IDS)
    left_out = {"elsewhere": {IDS[0]: 4}}
    halves = [run(n, outcome_by_id, shard=f"{n}/2", **left_out) for n, outcome_by_id in ((1, one), (2, two))]
    assert combined(*halves).started.elsewhere == {IDS[0]: 4}
    second_run = [
        msgspec.structs.replace(event, test="t.py::again") if hasattr(event, "test") else event for event in run(2, one)
    ]
    second_run[0] = msgspec.structs.replace(second_run[0], plan=(PlannedTest("t.py::again", (IDS[0],)),))  # type: ignore[call-arg]
    assert combined(run(1, one, **left_out), second_run).started.elsewhere == {IDS[0]: 3}
    assert combined(run(1, one, elsewhere={IDS[0]: 1}), second_run, run(3, three)).started.elsewhere == {}


def test_a_failure_in_one_shard_fails_all() -> None:
    report = combined(*shards({IDS[0]: "passed"}, {IDS[1]: "failed"}, {IDS[2]: "passed"}))
    assert outcomes(report) == ["passed", "failed", "passed"]
    assert report.exit is Exit.NOT_CONFORMANT
    (failed,) = [result for result in report.results if result.failures]
    assert failed.failures[0].bundle == f"bundles/r2/{IDS[1]}"


def test_a_missing_shard_leaves_no_verdict() -> None:
    one, _, three = shards({IDS[0]: "passed"}, {IDS[1]: "passed"}, {IDS[2]: "passed"})
    report = combined(one, three)
    assert report.faults == ("shard 2/3 is missing",)
    assert report.exit is Exit.HARNESS
    assert outcomes(report) == ["passed", "not-run", "passed"]


def test_a_killed_part_makes_the_whole_incomplete() -> None:
    report = combined(run(1, {IDS[0]: "passed"}), run(2, {IDS[1]: "passed"}, ended=False))
    assert (report.complete, report.exit) == (False, Exit.INTERRUPTED)


@pytest.mark.parametrize("other", ["failed", "harness-error", "blocked"])
@pytest.mark.parametrize("first", [True, False])
def test_the_worse_of_two_runs_of_a_test_counts(other: str, first: bool) -> None:
    runs = [{IDS[0]: other}, {IDS[0]: "passed"}]
    report = combined(*(run(n, outcome_by_id) for n, outcome_by_id in enumerate(runs if first else runs[::-1], 1)))
    assert outcomes(report)[0] == other


def test_selections_add_up() -> None:
    nodes = run(1, {}, profiles=("nodes",), ids=())
    core = run(2, {}, profiles=("core",), ids=())
    report = combined(nodes, core)
    assert (report.started.profiles, report.started.ids) == (("core", "nodes"), ())
    assert report.started.reproduce == "grove-conformance run --seed 7 --profile core --profile nodes"
    assert combined(nodes, run(3, {}, ids=())).started.profiles == ()
    assert combined(run(1, {}, ids=IDS[:1]), run(2, {}, ids=IDS[1:])).started.ids == IDS


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seed": 8}, "the seed is 8, and there 7 — give all runs the same --seed"),
        ({"suite_digest": "sha256:x"}, "the suite digest is sha256:x, and there"),
        ({"time_scale": 2}, "the time scale is 2"),
        ({"environment": {"kubernetes": "1.37.2"}}, "the kubernetes is 1.37.2, and there 1.36.3"),
        ({"environment": {}}, "the kubernetes is none, and there 1.36.3"),
        (
            {"implementation": msgspec.structs.replace(IMPLEMENTATION, version="2")},
            "the version of the implementation is 2",
        ),
        (
            {"implementation": msgspec.structs.replace(IMPLEMENTATION, digest="d")},
            "the digest of the implementation is d",
        ),
        (
            {"reproduce": "grove-conformance run --set mutant=x --id NODE-001 --seed 7"},
            "the option is --set mutant=x, and there none",
        ),
        ({"run": "r1"}, "was given twice"),
        ({"ids": ()}, "only one of them selects requirements by their ids"),
        ({"profiles": ("nodes",)}, "only one of them selects profiles beside ids"),
        ({"shard": "2/3"}, "is shard 2/3, and others are no shards"),
    ],
)
def test_runs_that_do_not_belong_together_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as error:
        combined(run(1, {IDS[0]: "passed"}), run(2, {IDS[1]: "passed"}, **settings))
    assert message in str(error.value)
    assert str(error.value).startswith("run 2: ")


@pytest.mark.parametrize(
    ("shard", "settings", "message"),
    [
        ("1/2", {}, "is shard 1/2, as is run 1"),
        ("2/3", {}, "is shard 2/3, and others are no shards, or shards of another number"),
        ("2/2", {"ids": IDS[:2]}, "selects other requirements than run 1"),
    ],
)
def test_shards_of_different_runs_are_refused(shard: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        combined(run(1, {}, shard="1/2"), run(2, {}, shard=shard, **settings))


def test_events_without_a_beginning_are_refused() -> None:
    with pytest.raises(UsageError, match="does not have the beginning"):
        combining.partial_run("run 1", [HarnessFault(worker="run", what="w")])


# -- the command -----------------------------------------------------------------------------------------------------


@pytest.fixture
def halves(tmp_path: Path) -> list[Path]:
    """The folders of two shards, the second of which found a failure."""
    folders = []
    for number, events in enumerate(shards({IDS[0]: "passed"}, {IDS[1]: "failed", IDS[2]: "passed"}), 1):
        folder = tmp_path / f"r{number}"
        ledger_file.save(folder / "ledger", events)
        if number == 2:
            (folder / "bundles" / IDS[1]).mkdir(parents=True)
            (folder / "bundles" / IDS[1] / "history.jsonl").write_text("{}\n")
        sums = evidence.checksum_list(folder)
        document.save(folder / evidence.FILE, sums)
        report = model.judge(requirement.load(), events, model.date(2026, 11, 27))
        document.write(folder / "report.yaml", report, evidence.digest(sums))
        folders.append(folder)
    return folders


def call(*arguments: object) -> int:
    return cli.run(lambda: cli.app(["report", *map(str, arguments)], standalone_mode=False))


def test_shards_become_one_folder_with_everything(halves: list[Path], tmp_path: Path) -> None:
    to = tmp_path / "all"
    assert call("combine", *halves, "--to", to) == Exit.NOT_CONFORMANT
    verdict = yaml.safe_load((to / "report.yaml").read_text("utf-8"))["verdict"]
    (failed,) = [entry for entry in verdict["requirements"] if entry["outcome"] == "failed"]
    assert (to / failed["failures"][0]["bundle"] / "history.jsonl").read_text() == "{}\n"
    assert (to / "report.html").is_file() and (to / "junit.xml").is_file() and to.stat().st_mode & 0o777 == 0o700
    assert call("verify", to) == Exit.CONFORMANT


def test_a_combined_run_is_a_run(halves: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("combine", *halves, "--to", tmp_path / "all") == Exit.NOT_CONFORMANT
    assert call("compare", halves[0], tmp_path / "all") == Exit.CONFORMANT
    assert f"  {IDS[1]} (MUST, nodes)" in capsys.readouterr().out


def test_the_id_of_a_run_gets_a_hint(
    halves: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(halves[0], tmp_path / "reports" / "r1129-205815-96b8")
    monkeypatch.chdir(tmp_path)
    for command in (("compare", halves[0]), ("baseline",), ("recover",)):
        assert call(*command, "r1129-205815-96b8") == Exit.USAGE
        assert capsys.readouterr().err.endswith('did you mean "reports/r1129-205815-96b8"?\n')


def test_a_path_that_is_not_a_report_gets_a_hint(
    halves: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(path: Path) -> str:
        assert call("compare", path, halves[0]) == Exit.USAGE
        (line,) = capsys.readouterr().err.splitlines()
        return line.partition(" — ")[2]

    newest = max(halves)
    assert refused(tmp_path) == f'did you mean "{newest}"?'
    assert refused(tmp_path / "x" / "y") == "give the folder of a run, or its report.yaml"
    (newest / "report.yaml").unlink()
    assert refused(newest) == f"see grove-conformance report recover {newest}"
    assert call("recover", tmp_path) == Exit.USAGE
    assert capsys.readouterr().err.endswith(f'has no ledger/run.jsonl — did you mean "{newest}"?\n')


def test_runs_that_cannot_be_combined_are_reported_in_one_line(
    halves: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*folders: Path, to: Path = tmp_path / "all") -> str:
        assert call("combine", *folders, "--to", to) == Exit.USAGE
        (line,) = capsys.readouterr().err.splitlines()
        assert not (tmp_path / "all").exists()
        return line

    assert "exists already" in refused(*halves, to=halves[0])
    newest = max(halves)
    assert refused(tmp_path).endswith(f'has no ledger/run.jsonl — did you mean "{newest}"?')
    assert refused(newest / "report.yaml").endswith(f'has no ledger/run.jsonl — did you mean "{newest}"?')
    (tmp_path / "empty").mkdir()
    assert refused(tmp_path / "empty").endswith("has no ledger/run.jsonl — give the folder of a run, with its ledger")
    report = (halves[0] / "report.yaml").read_text("utf-8")
    (halves[0] / "report.yaml").write_text(report.replace("sha256:i", "sha256:j"), "utf-8")
    assert "is not what was written: the part `verdict` does not have" in refused(*halves)
    (halves[0] / "report.yaml").write_text(report.replace(suite_digest(), f"sha256:{0:064}"), "utf-8")
    assert "was made by another version of the suite" in refused(*halves)
    (halves[0] / "report.yaml").unlink()
    assert "has no report.yaml — see grove-conformance report recover" in refused(*halves)
