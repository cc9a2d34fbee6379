"""Tests of scenes with a second namespace: its state can be read at each step of the scene, and a failure bundle
contains its history too."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import orjson
import pytest

from conformance.errors import HarnessError
from conformance.evidence import bundle
from conformance.history.log import Log
from conformance.history.query import History
from conformance.history.record import ADDED, DELETED
from conformance.suite.outcomes.checks import Checks
from conformance.suite.scenes.recorded import Recorded
from conformance.suite.scenes.scene import Scene, SceneRun, Step

ONE, OTHER = "one", "one-b"


def pod(log: Log, namespace: str, event_type: str = ADDED) -> None:
    metadata = {"name": "a", "namespace": namespace, "uid": namespace}
    raw = orjson.dumps({"metadata": metadata})
    version = str(log.last_seq() + 1)
    log.append(
        event_type, "pods", namespace=namespace, name="a", uid=namespace, version=version, raw=raw, at=float(version)
    )


@pytest.fixture
def played() -> SceneRun:
    log = Log()
    one, other = History(log, ONE), History(log, OTHER)
    pod(log, ONE)
    steps = {"first": Step.now("first", one)}
    pod(log, OTHER)
    steps["both"] = Step.now("both", one)
    pod(log, ONE, DELETED)
    return SceneRun("scene", Scene(), one.frozen(), steps, {}, neighbor=other.frozen())


def recorded(played: SceneRun) -> Recorded[Scene]:
    return Recorded(played, played.scene, Checks("test", ["AA-001"], lambda check: None))


def test_each_namespace_has_its_own_state_at_a_step(played: SceneRun) -> None:
    run = recorded(played)
    uids = {step: [r.at(step).get("pods", "a") for r in (run, run.neighbor)] for step in ("first", "both")}
    states = {step: [pod and pod["metadata"]["uid"] for pod in pair] for step, pair in uids.items()}
    assert states == {"first": [ONE, None], "both": [ONE, OTHER]}
    assert [len(r.whole().records("pods")) for r in (run, run.neighbor)] == [2, 1]


def test_a_scene_with_one_namespace_has_no_neighbor() -> None:
    with pytest.raises(HarnessError, match="no second namespace"):
        recorded(SceneRun("scene", Scene(), History(Log(), ONE), {}, {})).neighbor  # noqa: B018


def test_a_bundle_has_both_histories(played: SceneRun, tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    about: dict[str, Any] = {"test": "t", "checks": [], "acts": [], "logs": {}, "reproduce": []}
    bundle.write(folder, history=played.history, neighbor=played.neighbor, **about)
    texts = [gzip.decompress((folder / place / bundle.HISTORY).read_bytes()).decode() for place in ("", "neighbor")]
    assert [OTHER in text for text in texts] == [False, True]
    assert f"neighbor/{bundle.HISTORY}" in (folder / "README.md").read_text()
