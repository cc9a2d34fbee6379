"""Tests of how `implementation try` compares the desired and the existing objects of a set. Needs no cluster."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from conformance.grove.expected import expected
from conformance.grove.workloads import load
from conformance.run import trial
from conformance.run.progress_of_set import ProgressLine, progress_lines
from tests.history.story import Story

POD: dict[str, Any] = {
    "metadata": {"ownerReferences": [{"kind": "PodClique", "name": "frontend-0-web", "controller": True, "uid": ""}]},
    "spec": {"nodeName": "a"},
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
}


def compared(story: Story, *, of: str = "frontend") -> list[ProgressLine]:
    desired = expected(dict(load(of)))
    return progress_lines(story.history.view(), "frontend", 1, desired)


def complete() -> Story:
    story = Story()
    story.record("services", "frontend-0", {})
    clique = story.record("podcliques", "frontend-0-web", {})
    story.record("podgangs", "any-name", {"spec": {"podgroups": [{"name": "frontend-0-web"}]}})
    for name in ("a", "b"):
        (owner,) = POD["metadata"]["ownerReferences"]
        story.record("pods", name, {**POD, "metadata": {"ownerReferences": [{**owner, "uid": clique.uid}]}})
    status = {"availableReplicas": 1, "observedGeneration": 1}
    story.record("podcliquesets", "frontend", {"metadata": {"generation": 1}, "status": status})
    return story


def test_nothing_is_missing_of_a_complete_set() -> None:
    assert [line for line in compared(complete()) if line.unmet] == []


def test_all_objects_are_missing_if_none_was_created() -> None:
    missing = compared(Story())
    assert len(missing) == 8 and all(line.unmet for line in missing)


def test_missing_objects_are_named_with_existing_objects() -> None:
    story = complete()
    story.record("podcliques", "frontend-0-web", {}, kind="DELETED")
    story.record("podcliques", "web", {})
    (line,) = [line for line in compared(story) if line.expected.startswith("podcliques")]
    assert line == ProgressLine("podcliques frontend-0-web", "frontend-0-web missing; there: web")


def test_a_gated_pod_is_counted_at_its_position() -> None:
    story = complete()
    (pod,) = [pod for pod in story.history.view().list("pods") if pod["metadata"]["name"] == "b"]
    gated = {"schedulingGates": [{"name": "grove.io/podgang-pending-creation"}]}
    story.record("pods", "b", {"metadata": pod["metadata"], "spec": gated})
    unmet = {line.expected: line.unmet for line in compared(story) if line.unmet}
    assert list(unmet) == ["2 pods without Grove's scheduling gate", "2 pods bound to nodes", "2 pods Ready"]
    assert "1 of 2" in unmet["2 pods Ready"]


def test_scaling_groups_are_there_only_where_the_set_has_some() -> None:
    assert not any("scalinggroups" in line.expected for line in compared(Story()))
    assert any("podcliquescalinggroups" in line.expected for line in compared(Story(), of="disaggregated"))


def test_a_log_that_is_named_stays(tmp_path: Path) -> None:
    """The cluster and its folder no longer exist when the text is read."""
    log, other = tmp_path / "operator.log", tmp_path / "scheduler.log"
    log.write_text("no such flag")
    other.write_text("")
    text = trial.with_kept_logs(f"its log ends with: no such flag (all of it: {log})", [log, other])
    copy = Path(text.partition("(all of it: ")[2].removesuffix(")"))
    log.unlink()
    assert copy.read_text() == "no such flag" and [path.name for path in copy.parent.iterdir()] == ["operator.log"]
    assert trial.with_kept_logs("is not there", [other]) == "is not there"
    shutil.rmtree(copy.parent)
