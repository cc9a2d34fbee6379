"""Tests of report.yaml: its bytes, its schema, and the ledger from which it is made."""

from __future__ import annotations

import copy
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
import yaml
from msgspec import structs

from conformance.errors import HarnessError
from conformance.report import document, model
from conformance.suite.outcomes import ledger, ledger_file
from conformance.suite.registry.requirement import Registry
from tests.requirements import entry

SNAPSHOT = Path(__file__).parent / "report.snapshot.yaml"
REGISTRY = Registry(
    {"core": "The core."},
    {id: entry(id, source=("CHG-DF12",), violation=f"{id} is violated") for id in ("AA-001", "AA-002")},
    {},
)
EVENTS: list[ledger.AnyEvent] = [
    ledger.RunStarted(
        wall=1_795_262_958.25,
        run="r1",
        suite_version="0.1.0",
        suite_digest="sha256:s",
        implementation=ledger.Implementation(
            name="mine",
            version="1",
            roles=("operator",),
            features=(),
            digest="sha256:i",
            supplied={"gang-scheduler": "reference 0.1.0"},
        ),
        profiles=(),
        ids=(),
        plan=(ledger.PlannedTest("t.py::test_one", ("AA-001", "AA-002")),),
        workers=2,
        time_scale=1.5,
        seed=7,
        environment={"python": "3.11.7", "etcd": "3.6.16"},
    ),
    ledger.TestStarted(wall=1_795_262_959.0, test="t.py::test_one", ids=("AA-001", "AA-002"), worker="gw0"),
    ledger.Check(wall=1_795_262_960.0, test="t.py::test_one", id="AA-001", what="x", outcome="passed"),
    ledger.Check(
        wall=1_795_262_960.5,
        test="t.py::test_one",
        id="AA-002",
        what="the names",
        outcome="failed",
        expected=["ä", "b"],
        seen="\x1b[31mline one\nline two: 'quoted' # no comment\n",
        at=1.25,
        deviation=ledger.Deviation("services/one", 12),
    ),
    ledger.TestFinished(
        wall=1_795_262_961.0,
        test="t.py::test_one",
        outcome="failed",
        worker="gw0",
        seconds={"setup": 0.5, "call": 1.25},
        bundle="bundles/one",
        namespace="one-123456",
    ),
    ledger.RunFinished(wall=1_795_262_962.0, interrupted=False, status=1),
]


def sample_report() -> model.Report:
    return model.judge(REGISTRY, EVENTS, date(2026, 11, 21))


def test_a_report_names_the_requirements_that_rest_on_a_seed() -> None:
    seeded = structs.replace(REGISTRY.requirements["AA-002"], seed="pull request 1, reverted by 2")
    registry = replace(REGISTRY, requirements={**REGISTRY.requirements, "AA-002": seeded})
    content = document.document(model.judge(registry, EVENTS, date(2026, 11, 21)))
    document.validate(content)
    assert [entry.get("seed") for entry in content["verdict"]["requirements"]] == [None, seeded.seed]
    assert content["verdict"]["seeds"] == {"passed": 0, "judged": 1}


def test_a_report_equals_its_snapshot(request: pytest.FixtureRequest) -> None:
    assert document.render(document.document(sample_report())) == SNAPSHOT.read_text("utf-8")


def test_the_same_ledger_gives_the_same_bytes(tmp_path: Path) -> None:
    with ledger_file.RunLedger(tmp_path / "ledger") as run_ledger:
        for event in EVENTS:
            run_ledger.write(event)
    reports = []
    for name in ("a.yaml", "b.yaml"):
        document.write(
            tmp_path / name, model.judge(REGISTRY, ledger_file.read(tmp_path / "ledger"), date(2026, 11, 21))
        )
        reports.append((tmp_path / name).read_bytes())
    assert reports[0] == reports[1]
    content = yaml.safe_load(reports[0])
    assert content["verdict"] == document.document(sample_report())["verdict"]


def test_a_partial_line_of_a_killed_worker_is_ignored(tmp_path: Path) -> None:
    with ledger_file.RunLedger(tmp_path) as run_ledger:
        for event in EVENTS:
            run_ledger.write(event)
    with (tmp_path / ledger_file.FILE).open("ab") as file:
        file.write(b'{"event":"check","te')
    assert len(list(ledger_file.read(tmp_path))) == len(EVENTS)


def test_times_are_not_part_of_the_verdict() -> None:
    first = document.document(sample_report())
    later = [ledger.msgspec.structs.replace(e, wall=e.wall + 1000) for e in EVENTS]
    second = document.document(model.judge(REGISTRY, later, date(2026, 11, 21)))
    assert first["verdict"] == second["verdict"] and first["digest"] == second["digest"]
    assert first["run"] != second["run"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("verdict", "result"), "fine"),
        (("verdict", "counts", "passed"), -1),
        (("verdict", "requirements", 0, "outcome"), "ok"),
        (("verdict", "requirements", 0, "colour"), "red"),
        (("run", "seconds"), "long"),
        (("digest",), "md5:x"),
    ],
)
def test_the_schema_rejects_other_documents(path: tuple[str | int, ...], value: object) -> None:
    content = copy.deepcopy(document.document(sample_report()))
    document.validate(content)
    content_part = content
    for step in path[:-1]:
        content_part = content_part[step]  # type: ignore[index]
    content_part[path[-1]] = value  # type: ignore[index]
    with pytest.raises(HarnessError, match="the report breaks its own schema"):
        document.validate(content)
