"""`report verify`: what an edited or exchanged part of a report contradicts."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace
from test_document import EVENTS, REGISTRY, made

from conformance import cli
from conformance.errors import Exit
from conformance.report import document, evidence, model, verification
from conformance.suite.outcomes import book
from conformance.suite.outcomes.ledger import Check, TestFinished

SUITE = "sha256:s"
Content = dict[str, Any]


def written(folder: Path) -> Content:
    """A run's folder with ledger, bundle, list of evidence and report."""
    book.save(folder / "ledger", EVENTS)
    (folder / "bundles" / "one").mkdir(parents=True)
    (folder / "bundles" / "one" / "history.jsonl").write_text("{}\n")
    sums = evidence.listed(folder)
    document.save(folder / evidence.FILE, sums)
    document.write(folder / "report.yaml", made(), evidence.digest(sums))
    found: Content = yaml.safe_load((folder / "report.yaml").read_text("utf-8"))
    return found


def problems(content: Content, folder: Path) -> tuple[str, ...]:
    return verification.verify(content, folder, REGISTRY, SUITE).problems


def test_a_report_as_it_was_written_is_verified(tmp_path: Path) -> None:
    found = verification.verify(written(tmp_path), tmp_path, REGISTRY, SUITE)
    assert (found.problems, found.unchecked) == ((), ())
    assert "verdict of the ledger" in found.checked


def test_a_run_of_which_the_cluster_blocked_everything_is_verified(tmp_path: Path) -> None:
    blocked = {"outcome": "blocked", "reason": "exceeded quota", "cause": "circumstances"}
    ended = [replace(event, **blocked) if isinstance(event, TestFinished) else event for event in EVENTS]
    events = [event for event in ended if not isinstance(event, Check)]
    book.save(tmp_path / "ledger", events)
    content = document.write(tmp_path / "report.yaml", model.judge(REGISTRY, events, date(2026, 11, 21)))
    assert (content["verdict"]["result"], content["verdict"]["exitCode"]) == ("unknown", Exit.PARTIAL)
    assert problems(content, tmp_path) == ()


def forged(content: Content) -> None:
    """Whitewash the failed requirement."""
    verdict = content["verdict"]
    entry = next(each for each in verdict["requirements"] if each["outcome"] == "failed")
    entry["outcome"] = "passed"
    del entry["failures"]
    for counts in (verdict["counts"], verdict["profiles"][0]["counts"]):
        counts |= {"failed": 0, "passed": 2}
    verdict["profiles"][0]["verdict"] = verdict["result"] = "conformant"
    verdict["exitCode"] = 0


def edited(*way: str | int, value: object) -> Callable[[Content], None]:
    def edit(content: Content) -> None:
        place: Any = content
        for step in way[:-1]:
            place = place[step]
        place[way[-1]] = value

    return edit


@pytest.mark.parametrize("edit", [forged, edited("verdict", "implementation", "version", value="2")])
def test_an_edited_verdict_does_not_have_its_digest(tmp_path: Path, edit: Callable[[Content], None]) -> None:
    content = written(tmp_path)
    edit(content)
    assert "the part `verdict` does not have the digest of the report" in problems(content, tmp_path)


def test_an_edited_run_does_not_have_its_digest(tmp_path: Path) -> None:
    content = written(tmp_path)
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
    content = written(tmp_path)
    edit(content)
    content |= {"digest": document.digest(content["verdict"]), "runDigest": document.digest(content["run"])}
    assert any(problem in each for each in problems(content, tmp_path))


def test_an_interrupted_run_is_not_conformant(tmp_path: Path) -> None:
    content = written(tmp_path)
    forged(content)
    edited("verdict", "complete", value=False)(content)
    assert "the verdict is conformant, and the run was interrupted" in problems(content, tmp_path)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda run: (run / "bundles/one/history.jsonl").write_text("[]\n"), "bundles/one/history.jsonl was changed"),
        (lambda run: (run / "bundles/one/history.jsonl").unlink(), "bundles/one/history.jsonl is missing"),
        (lambda run: (run / "bundles/two").write_text(""), "bundles/two was added"),
        (lambda run: (run / evidence.FILE).write_text(""), "SHA256SUMS is not the list of the report"),
        (lambda run: (run / evidence.FILE).unlink(), "SHA256SUMS is missing"),
    ],
)
def test_changed_evidence_is_found(tmp_path: Path, change: Callable[[Path], object], problem: str) -> None:
    content = written(tmp_path)
    change(tmp_path)
    assert problems(content, tmp_path) == (problem,)


def test_an_edited_ledger_is_found_by_its_verdict(tmp_path: Path) -> None:
    content = written(tmp_path)
    book.save(tmp_path / "ledger", [e for e in EVENTS if not (isinstance(e, Check) and e.id == "AA-001")])
    found = problems(content, tmp_path)
    assert found[0] == "ledger/run.jsonl was changed"
    assert found[1].startswith("the ledger gives not-conformant, and another part `counts`, `profiles`, `requirements`")


def test_what_another_suite_wrote_is_told_as_unchecked(tmp_path: Path) -> None:
    found = verification.verify(written(tmp_path), tmp_path, REGISTRY, "sha256:another")
    assert found.problems == ()
    assert [each.partition(":")[0] for each in found.unchecked] == ["requirements", "ledger"]


def test_a_report_alone_is_verified_as_far_as_it_goes(tmp_path: Path) -> None:
    content = written(tmp_path / "run")
    found = verification.verify(copy.deepcopy(content), tmp_path, REGISTRY, SUITE)
    assert found.problems == ()
    assert found.unchecked == (
        "evidence: it does not lie beside the report",
        "ledger: it does not lie beside the report",
    )


def test_evidence_is_regular_files_only(tmp_path: Path) -> None:
    place = tmp_path / "bundles"
    place.mkdir()
    (place / "a\nb").write_text("x")
    (place / "link").symlink_to("/etc/passwd")
    os.mkfifo(place / "fifo")
    digest = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    assert evidence.listed(tmp_path) == f"\\{digest}  bundles/a\\nb\n"


def test_the_command_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = written(tmp_path)
    assert call(tmp_path) == Exit.CONFORMANT
    assert "verified: digest of the verdict" in capsys.readouterr().out
    forged(content)
    (tmp_path / "report.yaml").write_text(document.render(content), "utf-8")
    assert call(tmp_path) == Exit.NOT_CONFORMANT
    out = capsys.readouterr().out
    assert "wrong: the part `verdict` does not have the digest" in out and "verified" not in out


def call(folder: Path) -> int:
    return cli.run(lambda: cli.app(["report", "verify", str(folder)], standalone_mode=False))
