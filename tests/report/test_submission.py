"""Tests of `report submit`: the place of a published report, and the content of its README."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from test_document import sample_report

from conformance import cli
from conformance.errors import Exit, UsageError
from conformance.publishing import published
from conformance.report import document


def content(**implementation: str) -> dict[str, Any]:
    result = copy.deepcopy(document.document(sample_report()))
    result["verdict"]["implementation"] |= implementation
    return result


@pytest.mark.parametrize(
    ("implementation", "place"),
    [
        ({"release": "v0.1.0-alpha.13", "line": "maps"}, "v0.1.0-alpha.13/mine/maps-1-default-report.yaml"),
        ({}, "gang-schedulers/mine/1-default-report.yaml"),
        ({"name": "../../a b", "version": "1/2"}, "gang-schedulers/a-b/1-2-default-report.yaml"),
    ],
)
def test_a_report_has_a_place(implementation: dict[str, str], place: str) -> None:
    assert str(published.report_path(content(**implementation), "default")) == place


def test_a_name_has_to_be_one() -> None:
    with pytest.raises(UsageError, match="'…' cannot be a file name"):
        published.report_path(content(name="…"), "default")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"complete": False}, "has no verdict"),
        ({"result": "harness-error"}, "has no verdict"),
        ({"selection": {"profiles": [], "ids": ["AA-001"]}}, "judges single requirements"),
        ({"selection": {"profiles": [], "ids": [], "shard": "1/2"}}, "judges single requirements or a shard"),
    ],
)
def test_an_incomplete_report_is_rejected(change: dict[str, Any], message: str) -> None:
    report = content()
    published.require_publishable(report, "here")
    report["verdict"] |= change
    with pytest.raises(UsageError, match=f"here: {message}"):
        published.require_publishable(report, "here")


def test_a_submitted_report_is_listed_and_written_text_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, to = tmp_path / "run", tmp_path / "published"
    document.save(run / "report.yaml", document.render(content()))
    changed = content(version="2")
    changed["digest"] = document.digest(changed["verdict"])

    assert call(run, "--to", to, "--url", "https://example.com/mine") == Exit.CONFORMANT
    folder = to / "gang-schedulers" / "mine"
    assert capsys.readouterr().out == f"{folder / '1-default-report.yaml'}\n"
    readme = folder / "README.md"
    assert "<https://example.com/mine>" in readme.read_text()
    readme.write_text(readme.read_text().replace("Say here how", "Call me, and I say how"))

    document.save(run / "report.yaml", document.render(changed))
    assert call(run, "--to", to) == Exit.CONFORMANT
    text = readme.read_text()
    rows = [line for line in text.splitlines() if line.startswith("| [")]
    assert rows == [
        f"| [{n}-default-report.yaml]({n}-default-report.yaml) | `{n}` | – | `operator` |  | not-conformant | 1 | 1 |"
        for n in (1, 2)
    ]
    assert "Call me, and I say how" in text
    assert (folder / "1-default-report.yaml").stat().st_mode & 0o044


def test_a_forged_report_is_not_published(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document.save(tmp_path / "report.yaml", document.render(content(version="2")))
    assert call(tmp_path / "report.yaml", "--to", tmp_path / "to") == Exit.USAGE
    assert "is not what was written: the part `verdict` does not have" in capsys.readouterr().err
    assert not (tmp_path / "to").exists()


def call(*arguments: object) -> int:
    return cli.run(lambda: cli.app(["report", "submit", *map(str, arguments)], standalone_mode=False))
