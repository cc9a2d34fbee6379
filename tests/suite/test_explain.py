"""Tests of `explain` for requirements and for ids of the specification."""

from __future__ import annotations

import sys
from importlib import metadata

import pytest

from conformance import cli
from conformance.suite.registry import explain


def explained(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], id: str) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["grove-conformance", "explain", id])
    with pytest.raises(SystemExit) as end:
        cli.main()
    out, err = capsys.readouterr()
    return int(str(end.value.code)), out + err


@pytest.mark.parametrize(
    ("id", "words"),
    [
        (
            "GANG-022",
            (
                "GANG-022 (MUST, profile gang)",
                "test:    conformance/tests/core/test_pods_over_quota.py::test_conditions_of_others",
                "mutants: ",
                "run:     grove-conformance run --id GANG-022",
                "docs/spec/objects.md#obj-",
            ),
        ),
        ("GANG-002", ("passes:  references-reversed (variants)",)),
        ("INV-009", ("decision: docs/decisions/017-permitted-causes-of-deletion.md",)),
        ("INV-001", ("test:    conformance/tests/core/test_availability.py::test_invariants",)),
        ("ADM-005", ("manifests of fixtures/admission: ", "names-without-room")),
        ("SCHED-020", ("scenarios of fixtures/scheduling: GS-S01",)),
        ("GANG-024", ("rule:    conformance/invariants/gang_before_pods.py, in every history",)),
        ("INV-011", ("rule:    conformance/invariants/coherent/availability.py, in every history",)),
        ("TMPL-016", ("but:     public documents that say otherwise", "“I am not sure if updating the")),
        ("TERM-016", ("limits:  waits at most 60 s for “recovered in time”, “breached again”",)),
        ("SCHED-020", ("limits:  a played scenario waits at most 30 s for “scheduler binds a gang that is alone”",)),
        ("GANG-002", ("/podgang.go#L", "/README.md#podgang-api-enhancements", "contest: an issue with the id")),
        ("TMPL-001", ("seed:    pull request 566", "not upstream's contract")),
        ("CORE-001", ("by hand:", "kubectl get", "docs/spec/objects.md#obj-101")),
        ("OBJ-123", ("docs/spec/objects.md#obj-123", "judged by RES-051 (SHOULD", "docs/decisions/011-")),
        ("OBJ-S01", ("judged by CORE-001 (MUST",)),
        ("obj-s22", ("OBJ-S22  docs/spec/objects-scenarios.md#obj-s22", "not checked: records what upstream does")),
        ("val-05B", ("VAL-05b  docs/spec/admission.md#val-05b",)),
        ("MNV-05", ("manifests of fixtures/admission: ", "mnnvl-on")),
    ],
)
def test_explain_describes_an_id(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], id: str, words: tuple[str, ...]
) -> None:
    code, text = explained(monkeypatch, capsys, id)
    assert code == 0
    assert [word for word in words if word not in text] == [], text


def test_an_unknown_id_is_one_line_with_a_suggestion(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = explained(monkeypatch, capsys, "OBJ-4O1")
    assert code == 4 and len(text.splitlines()) == 1
    assert "'OBJ-4O1' is neither a requirement nor an id of the specification" in text and "did you mean" in text
    code, text = explained(monkeypatch, capsys, "NOPE")
    assert code == 4 and len(text.splitlines()) == 1 and len(text) < 300
    assert "grove-conformance list has the requirements" in text


def test_mutants_are_omitted_if_their_package_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    point = metadata.EntryPoint("other", "not_installed:caught", explain.MUTANTS)
    monkeypatch.setattr(metadata, "entry_points", lambda group: [point])
    assert "mutants:" not in explain.explain("GANG-022")
