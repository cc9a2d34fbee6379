"""`explain`: requirements, and ids of the specification."""

from __future__ import annotations

import sys

import pytest

from conformance import cli


def explained(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], id: str) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["grove-conformance", "explain", id])
    with pytest.raises(SystemExit) as end:
        cli.main()
    out, err = capsys.readouterr()
    return int(str(end.value.code)), out + err


@pytest.mark.parametrize(
    ("id", "words"),
    [
        ("GANG-022", ("GANG-022 (MUST, profile gang)", "test:   core/test_changes_of_pods.py::test_pods_that_cannot")),
        ("OBJ-123", ("defect row of the document reconcile-objects", "judged by RES-051 (MUST", "docs/decisions/011-")),
        ("OBJ-S22", ("scenario: gates of the template at creation", "not checked: records what upstream does")),
        ("MNV-05", ("manifests of fixtures/admission: ", "mnnvl-on")),
    ],
)
def test_what_is_known_of_an_id_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], id: str, words: tuple[str, ...]
) -> None:
    code, text = explained(monkeypatch, capsys, id)
    assert code == 0
    assert all(word in text for word in words), text


def test_an_unknown_id_gets_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = explained(monkeypatch, capsys, "OBJ-9999")
    assert code == 4 and len(text.splitlines()) == 1
    assert "'OBJ-9999' is no requirement" in text and "did you mean" in text
