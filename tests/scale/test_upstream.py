"""Tests of the exchange of results with Grove's own scale tests: the format of Grove's result files, and Grove's
published history."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from conformance.errors import UsageError
from conformance.scale import upstream
from tests.scale.sample_results import result


def test_a_converted_result_has_upstreams_format_and_markers_only() -> None:
    sample_result = result()
    sample_result["scenario"]["upstreamNames"] = {"deploy": {"pods-ready": "all-pods-ready"}}
    sample_result["phases"][0]["holdSeconds"] = 30.0
    sample_result["phases"][1]["startedAt"] = "2026-01-02T03:05:15.123+00:00"
    document = upstream.result_file(sample_result, "scale")
    assert list(document) == ["testName", "runID", "namespace", "pcsCount", "phases", "testDurationSeconds"]
    deploy, delete = document["phases"]
    assert [(milestone["name"], milestone["durationFromPhaseStartSeconds"]) for milestone in deploy["milestones"]] == [
        ("pods-created", 19.0),
        ("all-pods-ready", 20.0),
        ("steady-state-window", 50.0),
    ]
    assert (deploy["startTime"], deploy["endTime"]) == ("2026-01-02T03:04:15.123000Z", "2026-01-02T03:05:05.123000Z")
    assert deploy["milestones"][0]["timestamp"] == "2026-01-02T03:04:34.123000Z"
    assert [milestone["name"] for milestone in delete["milestones"]] == ["pcs-deleted"]  # upstream has no all-deleted
    assert (deploy["durationFromTestStartSeconds"], document["testDurationSeconds"]) == (50.0, 69.0)


def test_a_run_without_phases_has_a_file() -> None:
    assert upstream.result_file({**result(), "phases": []}, "scale")["testDurationSeconds"] == 0


HISTORY_LINE = {
    "commit": "abc",
    "phases": [
        {"milestones": [{"name": "pods-ready", "valueSeconds": 47.01}], "name": "deploy", "valueSeconds": 47.01}
    ],
    "resultPath": "results/x.json",
    "runID": "run-1",
    "runTimestamp": "2026-05-19T11:38:04+00:00",
    "runURL": "",
    "storedAt": "2026-05-19T12:00:00Z",
    "testName": "ScaleTest_1000",
    "totalSeconds": 77.36,
}


def test_the_published_history_is_read(tmp_path: Path) -> None:
    path = tmp_path / "runs.ndjson"
    path.write_bytes(orjson.dumps(HISTORY_LINE) + b"\n\n" + orjson.dumps({**HISTORY_LINE, "runID": "run-2"}) + b"\n")
    first_run, second_run = upstream.history(path)
    assert (first_run.test, first_run.total, first_run.seconds) == (
        "ScaleTest_1000",
        77.36,
        {"deploy/pods-ready": 47.01},
    )
    assert second_run.run == "run-2"


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"testName": "x"}', b"7"])
def test_other_files_are_rejected_with_their_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "runs.ndjson"
    path.write_bytes(orjson.dumps(HISTORY_LINE) + b"\n" + content)
    with pytest.raises(UsageError, match=r"runs\.ndjson:2"):
        list(upstream.history(path))
    with pytest.raises(UsageError, match="no such file"):
        list(upstream.history(tmp_path / "none"))
