"""Tests that the distribution of tests ends, no matter which pytest-xdist workers are killed, and when."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock

from faked import Faked
from hypothesis import example, given, settings
from hypothesis import strategies as st
from xdist.dsession import DSession  # type: ignore[import-untyped]
from xdist.workermanage import WorkerController  # type: ignore[import-untyped]

from conformance.suite.session.distribution import Distribution

END = -1
"""The item that a worker gets after its last test."""


class Worker:
    """A worker like those of pytest-xdist: it starts a test once it knows which test follows, or that none follows."""

    def __init__(self, number: int) -> None:
        self.gateway = SimpleNamespace(id=f"gw{number}", spec=SimpleNamespace())
        self.workeroutput = {"exitstatus": 0, "shouldfail": False, "shouldstop": False}
        self.steps = ["workerready", "collectionfinish"]
        self.queue: list[int] = []
        self.shutting_down = False

    def send_runtest_some(self, indices: list[int]) -> None:
        self.queue += indices

    def shutdown(self) -> None:
        self.queue.append(END)
        self.shutting_down = True

    def waits(self) -> bool:
        return not self.steps and not (self.queue and (self.queue[0] == END or len(self.queue) > 1))


class Session:
    """A session of pytest-xdist with workers that are not processes."""

    def __init__(
        self, groups: list[int], lone_groups: int, workers: int, costs: Mapping[str, float] | None = None
    ) -> None:
        self.tests = [f"g{group}::{test}" for group, size in enumerate(groups) for test in range(size)]
        self.ran: list[str] = []
        self.lost: list[str] = []
        config = MagicMock()
        config.getvalue = {"tx": [f"{workers}*popen"], "maxfail": 0}.get
        config.option.loadscopereorder, config.option.debug = True, False
        config.hook.pytest_handlecrashitem = lambda crashitem, **_: self.lost.append(crashitem)
        config.pluginmanager.getplugin.return_value = None
        log = MagicMock()
        self.session = DSession(config)
        self.session._session, self.session._max_worker_restart = MagicMock(), None
        split = {test: test.partition("::")[0] for test in self.tests}
        last = [f"g{group}" for group in range(len(groups) - lone_groups, len(groups))]
        self.session.sched = Distribution(config, log, split, last, costs=costs)
        self.session._clone_node = lambda _: self.start()
        self.started = 0
        for _ in range(workers):
            self.start()

    def start(self) -> WorkerController:
        worker = Worker(self.started)
        self.started += 1
        self.session._active_nodes.add(cast(WorkerController, worker))
        return cast(WorkerController, worker)

    @property
    def workers(self) -> list[Worker]:
        return sorted(self.session._active_nodes, key=lambda worker: int(worker.gateway.id[2:]))

    def step(self, worker: Worker) -> None:
        """Let a worker perform its next step."""
        if worker.steps:
            step = worker.steps.pop(0)
            self.event(step, worker, **{"workerready": {"workerinfo": {}}}.get(step, {"ids": self.tests}))
        elif (test := worker.queue.pop(0)) == END:
            self.event("workerfinished", worker)
        else:
            self.ran.append(self.tests[test])
            self.event("runtest_protocol_complete", worker, item_index=test, duration=0.0)

    def kill(self, worker: Worker) -> None:
        worker.shutting_down = True
        self.event("errordown", worker, error="Not properly terminated")

    def event(self, name: str, worker: Worker, **arguments: Any) -> None:
        self.session.queue.put((name, {"node": worker, **arguments}))
        self.session.loop_once()


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=7),
    st.integers(0, 2),
    st.integers(1, 3),
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 2)), max_size=6),
    st.randoms(use_true_random=False),
)
@example([1, 1, 1], 0, 1, [(2, 0)], SimpleNamespace(choice=lambda of: of[0]))
def test_every_test_runs_or_is_lost_with_its_worker(
    groups: list[int], lone_groups: int, workers: int, deaths: list[tuple[int, int]], random: Any
) -> None:
    """Each of the `deaths` is a number of steps, and the number of the worker that is killed after them."""
    session = Session(groups, min(lone_groups, len(groups)), workers)
    remaining = list(deaths)
    steps = 0
    while not session.session.session_finished:
        if remaining and steps >= remaining[0][0]:
            steps, (_, number) = 0, remaining.pop(0)
            session.kill(session.workers[number % len(session.workers)])
            continue
        free_workers = [worker for worker in session.workers if not worker.waits()]
        assert free_workers, f"all of {len(session.workers)} workers wait for a test"
        session.step(random.choice(free_workers))
        steps += 1
    assert len(session.lost) <= len(deaths)
    assert sorted(session.ran + session.lost) == sorted(session.tests)


def test_groups_of_one_test_are_run_after_a_worker_was_killed(faked: Faked) -> None:
    scene = """
    class Scene{n}(Scene):
        def play(self, env):
            env.wait_for("reached", True)
            {then}

    @requirement("AA-00{n}", reaches="reached")
    def test_{n}(run: Recorded[Scene{n}]):
        pass
    """
    head = """
    from conformance.suite.scenes.recorded import Recorded
    from conformance.suite.registry.requirement import requirement
    from conformance.suite.scenes.scene import Scene
    """
    kill = "os.kill(os.getpid(), signal.SIGKILL)"
    faked.write(head + "".join(scene.format(n=n, then=kill if n < 3 else "pass") for n in range(1, 7)), ids=6)
    result = faked.run(workers=1)
    assert result.exit == 3, result.err
    assert list(result.outcomes.values()) == ["harness-error"] * 2 + ["passed"] * 4


def test_the_dearest_groups_are_assigned_first_and_lone_groups_last() -> None:
    session = Session([1, 3, 1, 2], lone_groups=1, workers=1, costs={"g0": 2.0, "g2": 9.0, "g3": 30.0})
    while not session.session.session_finished:
        session.step(session.workers[0])
    assert [test.partition("::")[0] for test in session.ran] == ["g2", "g0", "g1", "g1", "g1", "g3", "g3"]
