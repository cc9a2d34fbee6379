"""Tests that a mistake in a data file that only this project writes is refused, with its field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance import data, formats
from conformance.errors import UsageError
from conformance.grove import health, lines, pod_fields, served, template_pairs
from conformance.grove.coherent import traces
from conformance.grove.scheduling import scenario_format
from conformance.lab.gaps import instances
from conformance.suite.registry import basis, coverage
from conformance.suite.session import shards
from tests.attacks.attack import AttackList

Mistake = tuple[Path, Any, str, str, str]

MISTAKES: list[Mistake] = [
    (
        basis.FILE,
        basis.DocumentList,
        "state: merged",
        "state: merget",
        '.state: "merget" is not known here — did you mean "merged"?',
    ),
    (
        coverage.folder() / "rows.yaml",
        coverage.RowList,
        "- reason: ",
        "- why: ",
        "reasons[0].why: unknown field — known: reason, rows",
    ),
    (
        coverage.folder() / "defects.yaml",
        coverage.DefectList,
        "  tried:",
        "  tired:",
        'uncaught: "tired" has the wrong form — documentation, unseen or tried',
    ),
    (
        data.folder("fixtures") / "gaps" / "inference.yaml",
        instances.GapList,
        "replicas: 3",
        "replicas: 0",
        ".replicas: 0 is less than the minimum of 1 — fix the value",
    ),
    (
        data.folder("fixtures") / "contract" / "lines.yaml",
        lines.LineList,
        "newest: v0",
        "newest: 0",
        "has the wrong form — it must match ^v[0-9]+\\.[0-9]+\\.[0-9]+(-alpha\\.[0-9]+(-rc[0-9]+)?)?$",
    ),
    (
        data.folder("fixtures") / "health" / "pods.yaml",
        health.CaseList,
        "started: false",
        "started: 0",
        "cases[0].pods[0].containers.started: holds a number — give true or false",
    ),
    (
        data.folder("fixtures") / "coherent" / "traces.yaml",
        traces.TraceList,
        "F: [10, 2, 2]",
        "F: [10, 2]",
        "plans[0].cliques.F: is empty — give at least one",
    ),
    (
        data.folder("fixtures") / "hashes" / "templates.yaml",
        template_pairs.PairList,
        "reversed: [/containers]",
        "reversed: [containers]",
        'keyed[0].reversed[0]: "containers" has the wrong form — a path such as /containers/0/image',
    ),
    (
        data.folder("fixtures") / "pods" / "fields.yaml",
        pod_fields.PodFields,
        "  EnvFromSource: objects",
        "  EnvFromSource: object",
        'alternatives.EnvFromSource: "object" is wrong — write "objects"',
    ),
    (
        data.folder("fixtures") / "costs" / "scenes.yaml",
        shards.SceneCosts,
        "RequestsOfAnAdministrator: 1",
        "RequestsOfAnAdministrator: 0",
        "RequestsOfAnAdministrator: 0 is less than the minimum of 1 — fix the value",
    ),
    (
        data.PROJECT / "tests" / "attacks" / "attacks.yaml",
        AttackList,
        "exit: 0",
        "exit: 9",
        "attacks[0].exit: 9 is greater than the maximum of 8 — the exit code",
    ),
    (
        data.folder("fixtures") / "scheduling" / "placement.yaml",
        scenario_format.ScenarioFile,
        "desired: 4",
        "desired: -4",
        "gangs[0].groups[0].desired: -4 is less than the minimum of 0 — fix the value",
    ),
    (
        data.folder("fixtures") / "api" / "kinds.yaml",
        served.KindList,
        "is: string",
        "is: text",
        "— known: array, boolean, integer, number, object, string",
    ),
]
"""A file, its format, a text in it, a wrong text, and the end of the message."""


@pytest.mark.parametrize(("file", "kind", "text", "mistake", "message"), MISTAKES)
def test_a_mistake_is_reported_with_its_field(
    tmp_path: Path, file: Path, kind: Any, text: str, mistake: str, message: str
) -> None:
    content = file.read_text("utf-8").replace(text, mistake, 1)
    (tmp_path / file.name).write_text(content, "utf-8")
    with pytest.raises(UsageError) as caught:
        formats.read(tmp_path / file.name, kind)
    assert f"{file.name}:" in str(caught.value) and str(caught.value).endswith(message)
