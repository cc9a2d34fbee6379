"""Tests of the files that `lab gaps` writes if it does not finish."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.commands import lab
from conformance.errors import Exit, UsageError
from conformance.lab.gaps import instances, playing


def run_gaps(monkeypatch: pytest.MonkeyPatch, folder: Path, outcomes: Iterator[playing.GapResult]) -> int:
    """Run the command so that its runs have these outcomes, and return the exit code."""
    monkeypatch.setattr(lab, "resolve_all", lambda report, version: None)
    monkeypatch.setattr(playing, "play", lambda *_: outcomes)
    return lab.gaps(form=["plain"], gap=["one-of-each"], mappings=False, report_dir=folder)


def sample_outcome() -> playing.GapOutcome:
    [gap] = [gap for gap in instances.load() if gap.name == "one-of-each"]
    [form] = [form for form in lab.FORMS if form.name == "plain"]
    return playing.GapOutcome(form, gap.instances[0], 1, {"prefill": [10], "decode": [0]}, "expected: nothing")


def test_an_interrupted_run_writes_its_results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted_outcomes() -> Iterator[Any]:
        yield sample_outcome()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_gaps(monkeypatch, tmp_path, interrupted_outcomes())
    [page] = tmp_path.glob("*.md")
    assert "**The run did not end**" in page.read_text()
    assert "| **not run** |" in page.read_text() and "| {10, 0} ✗ |" in page.read_text()
    assert list(tmp_path.glob("*.json")) and list(tmp_path.glob("*.svg"))


def test_a_form_that_cannot_be_run_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any) -> None:
    def failed_outcomes() -> Iterator[Any]:
        yield playing.FormFailure(sample_outcome().form, "the scheduler ended")

    assert run_gaps(monkeypatch, tmp_path, failed_outcomes()) is Exit.NOT_CONFORMANT
    assert "not played: kube-scheduler, plain pods: the scheduler ended" in capsys.readouterr().err
    [page] = tmp_path.glob("*.md")
    assert "The run did not end" not in page.read_text()


@pytest.mark.parametrize("command", [lab.gaps, lab.coherent])
def test_nothing_is_run_if_pictures_cannot_be_drawn(
    command: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UsageError, match="pictures need matplotlib"):
        command(report_dir=tmp_path / "reports")
    assert not list(tmp_path.iterdir())
