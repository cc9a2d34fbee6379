"""Tests of scenes that are played alone: after all other scenes, on one worker, once all other workers have ended."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from faked import Faked, RunResult

from conformance.run.workers import Workers
from conformance.suite.outcomes import ledger, ledger_file
from conformance.suite.session import other_workers
from conformance.suite.settings import RunSettings

SCENES = """
    from conformance.suite.scenes.recorded import Recorded
    from conformance.suite.registry.requirement import requirement
    from conformance.suite.scenes.scene import Scene

    class Load(Scene):
        plays_alone = True

        def play(self, env):
            env.wait_for("reached", True)
            env.markers["deploy"] = {"pods-created": 1.25, "pods-ready": 2.5}

    class Slow(Scene):
        def play(self, env):
            time.sleep(1)
            env.wait_for("reached", True)

    class Quick(Scene):
        def play(self, env):
            env.wait_for("reached", True)

    @requirement("AA-001", reaches="reached")
    def test_load(run: Recorded[Load]):
        pass

    @requirement("AA-002", reaches="reached")
    def test_load_again(run: Recorded[Load]):
        pass

    @requirement("AA-003", reaches="reached")
    def test_slow(run: Recorded[Slow]):
        pass

    @requirement("AA-004", reaches="reached")
    def test_quick(run: Recorded[Quick]):
        pass
"""


def events(result: RunResult) -> list[ledger.AnyEvent]:
    return list(ledger_file.read(result.folder / "ledger"))


@pytest.mark.parametrize("repeat", [pytest.param(1, marks=pytest.mark.thorough), 3])
def test_a_lone_scene_starts_when_the_other_workers_have_ended(faked: Faked, repeat: int) -> None:
    faked.write(SCENES, ids=4)
    result = faked.run(workers=2, repeat=repeat)
    assert result.exit == 0, result.err
    ledger_events = events(result)
    scene_events = [event for event in ledger_events if isinstance(event, ledger.ScenePlayed)]
    assert len(scene_events) == 3 * repeat
    [worker] = {event.worker for event in scene_events if "Load" in event.scene}
    loads = [event for event in ledger_events if isinstance(event, ledger.ScenePlayed) and "Load" in event.scene]
    end_times = [
        event.wall for event in ledger_events if isinstance(event, ledger.WorkerEnded) and event.worker != worker
    ]
    assert len(end_times) == 1
    assert max(end_times) <= min(event.wall - event.seconds for event in loads)


def test_a_lone_scene_is_the_last_scene_of_a_single_worker(faked: Faked) -> None:
    faked.write(SCENES, ids=4)
    result = faked.run()
    assert result.exit == 0, result.err
    scenes = [event.scene for event in events(result) if isinstance(event, ledger.ScenePlayed)]
    assert scenes == ["test_fake.py::Slow", "test_fake.py::Quick", "test_fake.py::Load"]


def test_markers_are_in_the_report_on_the_page_and_in_allure(faked: Faked) -> None:
    faked.write(SCENES, ids=4)
    result = faked.run()
    [markers] = result.report["run"]["markers"]
    assert markers == {
        "scene": "test_fake.py::Load",
        "phases": [{"name": "deploy", "markers": {"pods-created": 1.25, "pods-ready": 2.5}}],
    }
    assert "deploy: pods-created 1.2 s, pods-ready 2.5 s" in result.out
    results = [json.loads(path.read_text()) for path in (result.folder / "allure").glob("*-result.json")]
    timed = {r["fullName"]: [p["value"] for p in r["parameters"]] for r in results if "parameters" in r}
    assert timed == {"core: AA-001": ["1.250 s", "2.500 s"], "core: AA-002": ["1.250 s", "2.500 s"]}


class Line:
    """The channel between a worker and the controlling process, as both ends see it."""

    def __init__(self) -> None:
        self.answers: list[object] = []
        self.callback: Callable[[object], None] = lambda message: None

    def setcallback(self, callback: Callable[[object], None], endmarker: object) -> None:
        assert endmarker is None
        self.callback = callback

    def send(self, item: object) -> None:
        self.answers.append(item)


def test_a_worker_is_the_last_one_when_the_others_have_ended_or_are_lost(tmp_path: Path) -> None:
    with ledger_file.RunLedger(tmp_path) as run_ledger:
        workers, lines = (
            Workers(RunSettings(run="r", directory="", implementation="x"), run_ledger, lambda collected: None),
            {},
        )
        for name in ("gw0", "gw1", "gw2"):
            workers.add(name, line := Line(), {})
            lines[name] = line
        lines["gw0"].callback(other_workers.LAST_WORKER)
        lines["gw1"].callback(None)
        assert lines["gw0"].answers == []
        lines["gw2"].callback(ledger.encoded(ledger.WorkerEnded(worker="gw2")))
        assert lines["gw0"].answers == [other_workers.LAST_WORKER]
        lines["gw2"].callback(None)
        lines["gw0"].callback(other_workers.LAST_WORKER)  # answered at once
        assert lines["gw0"].answers == [other_workers.LAST_WORKER] * 2
