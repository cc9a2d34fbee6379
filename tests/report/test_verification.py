"""Tests of `report verify`: edited or replaced parts of a report contradict its other parts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace
from test_document import EVENTS, REGISTRY, sample_report

from conformance import cli
from conformance.errors import Exit, HarnessError
from conformance.publishing import verification
from conformance.report import document, evidence, model
from conformance.run import launch
from conformance.suite.outcomes import ledger_file
from conformance.suite.outcomes.ledger import Check, TestFinished

SUITE = "sha256:s"
Content = dict[str, Any]


def write_run(folder: Path) -> Content:
    """Write a run's folder with ledger, bundle, settings, report, and all files that are made from the report; return
    the report."""
    ledger_file.save(folder / "ledger", EVENTS)
    (folder / "bundles" / "one").mkdir(parents=True)
    (folder / "bundles" / "one" / "history.jsonl").write_text("{}\n")
    (folder / "run.json").write_text("{}\n")
    launch.write(folder / "report.yaml", sample_report())
    content: Content = yaml.safe_load((folder / "report.yaml").read_text("utf-8"))
    return content


def problems(content: Content, folder: Path) -> tuple[str, ...]:
    return verification.verify(content, folder, REGISTRY, SUITE).problems


def test_a_report_as_it_was_written_is_verified(tmp_path: Path) -> None:
    result = verification.verify(write_run(tmp_path), tmp_path, REGISTRY, SUITE)
    assert (result.problems, result.unchecked) == ((), ())
    assert "verdict of the ledger" in result.checked


def test_a_run_of_which_the_cluster_blocked_everything_is_verified(tmp_path: Path) -> None:
    blocked = {"outcome": "blocked", "reason": "exceeded quota", "cause": "circumstances"}
    blocked_events = [replace(event, **blocked) if isinstance(event, TestFinished) else event for event in EVENTS]
    events = [event for event in blocked_events if not isinstance(event, Check)]
    ledger_file.save(tmp_path / "ledger", events)
    content = document.write(tmp_path / "report.yaml", model.judge(REGISTRY, events, date(2026, 11, 21)))
    assert (content["verdict"]["result"], content["verdict"]["exitCode"]) == ("unknown", Exit.PARTIAL)
    assert problems(content, tmp_path) == ()


def forged(content: Content) -> None:
    """Turn the failed requirement into a passed one, with matching counts and verdicts."""
    verdict = content["verdict"]
    entry = next(candidate for candidate in verdict["requirements"] if candidate["outcome"] == "failed")
    entry["outcome"] = "passed"
    del entry["failures"]
    for counts in (verdict["counts"], verdict["profiles"][0]["counts"]):
        counts |= {"failed": 0, "passed": 2}
    verdict["profiles"][0]["verdict"] = verdict["result"] = "conformant"
    verdict["exitCode"] = 0


def edited(*path: str | int, value: object) -> Callable[[Content], None]:
    def edit(content: Content) -> None:
        part: Any = content
        for step in path[:-1]:
            part = part[step]
        part[path[-1]] = value

    return edit


@pytest.mark.parametrize("edit", [forged, edited("verdict", "implementation", "version", value="2")])
def test_an_edited_verdict_does_not_have_its_digest(tmp_path: Path, edit: Callable[[Content], None]) -> None:
    content = write_run(tmp_path)
    edit(content)
    assert "the part `verdict` does not have the digest of the report" in problems(content, tmp_path)


def test_an_edited_run_does_not_have_its_digest(tmp_path: Path) -> None:
    content = write_run(tmp_path)
    edited("run", "seconds", value=1.0)(content)
    assert problems(content, tmp_path) == ("the part `run` does not have the digest of the report",)


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (forged, "the ledger gives not-conformant, and another part `counts`, `exitCode`, `profiles`, `requirements`"),
        (edited("verdict", "requirements", 1, "outcome", value="passed"), "AA-002 is passed with a failed check"),
        (edited("verdict", "requirements", 0, "outcome", value="failed"), "AA-001 is failed without a failed check"),
        (edited("verdict", "requirements", 0, "checks", value=0), "AA-001 is passed without a check"),
        (edited("verdict", "requirements", 0, "id", value="AA-002"), "AA-002 occurs 2 times"),
        (edited("verdict", "requirements", 1, "level", value="MAY"), "AA-002 has another text, level or profile"),
        (edited("verdict", "requirements", 1, "id", value="AA-003"), "AA-003 is no requirement of this suite"),
        (edited("verdict", "counts", "failed", value=0), "0 are counted as failed, and 1 are"),
        (edited("verdict", "profiles", 0, "counts", "passed", value=5), "profile core: 5 are counted as passed"),
        (
            edited("verdict", "profiles", 0, "verdict", value="partial"),
            "profile core is partial although a MUST failed",
        ),
        (edited("verdict", "profiles", 0, "verdict", value="conformant"), "is conformant although a MUST is failed"),
        (
            edited("verdict", "result", value="conformant"),
            "the verdict is conformant, and those of the profiles are not",
        ),
        (edited("verdict", "result", value="partial"), "the verdict is partial, and those of the profiles are not-"),
        (edited("verdict", "exitCode", value=0), "the verdict is not-conformant, and the exit code 0"),
        (edited("verdict", "complete", value=False), "another part `complete`"),
    ],
)
def test_a_forged_report_with_new_digests_contradicts_itself(
    tmp_path: Path, edit: Callable[[Content], None], problem: str
) -> None:
    content = write_run(tmp_path)
    edit(content)
    content |= {"digest": document.digest(content["verdict"]), "runDigest": document.digest(content["run"])}
    assert any(problem in text for text in problems(content, tmp_path))


def test_an_interrupted_run_is_not_conformant(tmp_path: Path) -> None:
    content = write_run(tmp_path)
    forged(content)
    edited("verdict", "complete", value=False)(content)
    assert "the verdict is conformant, and the run was interrupted" in problems(content, tmp_path)


READABLE_FILES = ("report.html", "report.txt", "junit.xml", "run.json")
"""Files that people and CI systems read instead of the report."""


def rewrite(run: Path, name: str) -> None:
    text = (run / name).read_text("utf-8")
    (run / name).write_text(text.replace("not conformant", "conformant") + " ", "utf-8")


def link(path: Path) -> None:
    """Replace a file with a link to another file that has the same content."""
    path.rename(target := path.parents[1] / f"{path.name} of another")
    path.symlink_to(target)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda run: (run / "bundles/one/history.jsonl").write_text("[]\n"), "bundles/one/history.jsonl was changed"),
        (lambda run: (run / "bundles/one/history.jsonl").unlink(), "bundles/one/history.jsonl is missing"),
        (lambda run: (run / "bundles/two").write_text(""), "bundles/two was added"),
        *((partial(rewrite, name=name), f"{name} was changed") for name in READABLE_FILES),
        (lambda run: rewrite(run, "allure/environment.properties"), "allure/environment.properties was changed"),
        (lambda run: (run / "allure/a-result.json").write_text("{}"), "allure/a-result.json was added"),
        (lambda run: (run / "allure/categories.json").unlink(), "allure/categories.json is missing"),
        (lambda run: link(run / "report.html"), "report.html is missing"),
        (lambda run: (run / evidence.FILE).write_text(""), "SHA256SUMS is not the list of the report"),
        (lambda run: (run / evidence.FILE).unlink(), "SHA256SUMS is missing"),
    ],
)
def test_a_changed_file_is_found(tmp_path: Path, change: Callable[[Path], object], problem: str) -> None:
    content = write_run(tmp_path / "run")
    change(tmp_path / "run")
    assert problems(content, tmp_path / "run") == (problem,)


def unchecked(content: Content, folder: Path) -> tuple[str, ...]:
    """Assert that a report has no problems, and return the parts that were not checked."""
    result = verification.verify(content, folder, REGISTRY, SUITE)
    assert result.problems == ()
    return result.unchecked


def test_uncovered_files_are_named(tmp_path: Path) -> None:
    content = write_run(tmp_path)
    (tmp_path / "summary.html").write_text("conformant")
    (tmp_path / "allure" / "history").mkdir()
    (tmp_path / "allure" / "history" / "history.json").write_text("{}")
    os.truncate(open_new(tmp_path / "logs" / "hole"), evidence.MAX_BYTES + 1)
    shutil.rmtree(tmp_path / "bundles")
    (tmp_path / "junit.xml").unlink()
    assert unchecked(content, tmp_path) == (
        "what was not passed on with the report: bundles, junit.xml",
        "files that SHA256SUMS does not cover: allure/history/history.json, logs/hole, summary.html",
    )


def open_new(path: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.touch()
    return path


def test_files_next_to_a_report_without_its_list_are_named(tmp_path: Path) -> None:
    content = write_run(tmp_path)
    for name in ("bundles", "ledger"):
        shutil.rmtree(tmp_path / name)
    (tmp_path / evidence.FILE).unlink()
    assert unchecked(content, tmp_path) == (
        "evidence: it does not lie beside the report",
        "files that no list covers: allure, junit.xml, report.html, report.txt, run.json",
        "ledger: it does not lie beside the report",
    )


def test_a_report_whose_list_has_only_evidence_is_verified(tmp_path: Path) -> None:
    """Earlier versions of the suite wrote such lists."""
    content = write_run(tmp_path)
    sums = (tmp_path / evidence.FILE).read_text()
    sums = "".join(line for line in sums.splitlines(True) if line[66:].startswith(evidence.FOLDERS))
    (tmp_path / evidence.FILE).write_text(sums)
    content["run"]["evidence"] = evidence.digest(sums)
    content["runDigest"] = document.digest(content["run"])
    [line] = unchecked(content, tmp_path)
    assert line == "files that SHA256SUMS does not cover: allure, junit.xml, report.html, report.txt, run.json"


@pytest.mark.timeout(20)
def test_no_link_is_followed_and_no_pipe_is_read(tmp_path: Path) -> None:
    content = write_run(run := tmp_path / "run")
    (tmp_path / "ledger").mkdir()
    (tmp_path / "ledger" / "run.jsonl").write_text("no event\n")
    (run / "bundles" / "link").symlink_to(tmp_path)
    os.mkfifo(run / "allure" / "pipe")
    (run / "report.xml").symlink_to("/dev/zero")
    os.mkfifo(run / "ledger" / "a.jsonl")
    assert unchecked(content, run) == (
        "files that SHA256SUMS does not cover: report.xml",
        "links and other things that are no files: allure/pipe, bundles/link, ledger/a.jsonl",
        "ledger: it has links",
    )
    shutil.rmtree(run / "ledger")
    (run / "ledger").symlink_to(tmp_path / "ledger")
    assert problems(content, run) == ("ledger/run.jsonl is missing",)


@pytest.mark.timeout(20)
def test_a_pipe_in_place_of_the_report_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "report.yaml")
    assert call(tmp_path) == Exit.USAGE
    assert "is no file" in capsys.readouterr().err


def test_the_report_is_written_although_another_file_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "junit.xml").mkdir()
    with pytest.raises(HarnessError, match="cannot be written"):
        launch.write(tmp_path / "report.yaml", sample_report())
    assert (tmp_path / "report.yaml").is_file()


def test_comments_of_a_report_are_not_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path)
    path = tmp_path / "report.yaml"
    assert call(path) == Exit.CONFORMANT
    assert "comments" not in capsys.readouterr().out
    path.write_text("# conformant\n" + path.read_text("utf-8"), "utf-8")
    assert call(path) == Exit.CONFORMANT
    assert "not checked: comments and layout of report.yaml" in capsys.readouterr().out


def test_an_edited_ledger_is_found_by_its_verdict(tmp_path: Path) -> None:
    content = write_run(tmp_path)
    ledger_file.save(tmp_path / "ledger", [e for e in EVENTS if not (isinstance(e, Check) and e.id == "AA-001")])
    lines = problems(content, tmp_path)
    assert lines[0] == "ledger/run.jsonl was changed"
    assert lines[1].startswith("the ledger gives not-conformant, and another part `counts`, `profiles`, `requirements`")


def test_reports_of_another_suite_are_reported_as_unchecked(tmp_path: Path) -> None:
    result = verification.verify(write_run(tmp_path), tmp_path, REGISTRY, "sha256:another")
    assert result.problems == ()
    assert [text.partition(":")[0] for text in result.unchecked] == ["requirements", "ledger"]


def test_a_report_without_its_run_is_verified_as_far_as_possible(tmp_path: Path) -> None:
    content = write_run(tmp_path / "run")
    (tmp_path / "alone").mkdir()
    assert unchecked(content, tmp_path / "alone") == (
        "evidence: it does not lie beside the report",
        "ledger: it does not lie beside the report",
    )


def test_evidence_is_regular_files_only(tmp_path: Path) -> None:
    folder = tmp_path / "bundles"
    folder.mkdir()
    (folder / "a\nb").write_text("x")
    (folder / "link").symlink_to("/etc/passwd")
    os.mkfifo(folder / "fifo")
    digest = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    assert evidence.checksum_list(tmp_path) == f"\\{digest}  bundles/a\\nb\n"


def test_the_command_reports_the_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = write_run(tmp_path)
    assert call(tmp_path) == Exit.CONFORMANT
    assert "verified: digest of the verdict" in capsys.readouterr().out
    forged(content)
    (tmp_path / "report.yaml").write_text(document.render(content), "utf-8")
    assert call(tmp_path) == Exit.NOT_CONFORMANT
    output = capsys.readouterr().out
    assert "wrong: the part `verdict` does not have the digest" in output and "verified" not in output


def call(folder: Path) -> int:
    return cli.run(lambda: cli.app(["report", "verify", str(folder)], standalone_mode=False))
