"""Tests of the work queue: no duplicates, one worker for each key, delays and back-off. The tests run in a `leaping`
loop."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from leaping import leap

from kube.workqueue import Closed, WorkQueue, work


def now() -> float:
    return asyncio.get_running_loop().time()


def test_a_key_that_is_added_repeatedly_is_handed_out_once() -> None:
    async def scenario() -> None:
        queue = WorkQueue[str]()
        for key in ("a", "b", "a", "a"):
            queue.add(key)
        assert len(queue) == 2
        assert [await queue.take(), await queue.take()] == ["a", "b"]
        assert len(queue) == 0

    leap(scenario())


def test_a_key_added_while_it_is_processed_is_handed_out_again_afterwards() -> None:
    async def scenario() -> None:
        queue = WorkQueue[str]()
        queue.add("a")
        assert await queue.take() == "a"
        queue.add("a")
        queue.add("a")
        assert len(queue) == 0
        queue.done("a")
        assert len(queue) == 1
        assert await queue.take() == "a"
        queue.done("a")
        assert len(queue) == 0

    leap(scenario())


def test_a_closed_queue_hands_out_no_keys_and_its_workers_finish_their_work() -> None:
    async def scenario() -> None:
        queue = WorkQueue[str](settle=1)
        started_keys, finished_keys = [], []

        async def reconcile(key: str) -> None:
            started_keys.append(key)
            await asyncio.sleep(10)
            finished_keys.append(key)

        worker_task = asyncio.create_task(work(queue, reconcile, 2))
        for key in "abc":
            queue.add(key)
        await asyncio.sleep(2)
        queue.add("d")
        queue.close()
        await worker_task
        assert len(started_keys) == 2 and sorted(started_keys) == sorted(finished_keys) and now() == 11
        with pytest.raises(Closed):
            await queue.take()

    leap(scenario())


class RecordingMeter:
    """A meter that records its calls."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def on_add(self) -> None:
        self.calls.append("added")

    def on_take(self, seconds: float) -> None:
        assert seconds >= 0
        self.calls.append("taken")

    def on_retry(self) -> None:
        self.calls.append("retried")

    def on_done(self, seconds: float, outcome: str) -> None:
        assert seconds >= 0
        self.calls.append(outcome)


def test_a_meter_measures_each_key() -> None:
    async def scenario() -> None:
        meter = RecordingMeter()
        queue = WorkQueue[str](meter=meter)
        results = iter([None, 5.0, ValueError("no"), None])

        async def reconcile(key: str) -> float | None:
            result = next(results)
            if isinstance(result, Exception):
                raise result
            return result

        queue.add("a")
        queue.add("a")
        worker_task = asyncio.create_task(work(queue, reconcile, 1))
        await asyncio.sleep(1)
        assert meter.calls == ["added", "taken", "success"]
        meter.calls.clear()
        queue.add("a")
        await asyncio.sleep(10)
        assert meter.calls == [
            *("added", "taken", "requeue_after"),
            *("added", "taken", "retried", "error"),
            *("added", "taken", "success"),
        ]
        worker_task.cancel()

    leap(scenario())


def test_a_meter_that_is_set_later_measures_from_then_on() -> None:
    async def scenario() -> None:
        queue = WorkQueue[str]()
        queue.add("a")
        queue.meter = meter = RecordingMeter()
        assert await queue.take() == "a" and meter.calls == ["taken"]

    leap(scenario())


def test_done_for_a_key_without_a_worker_is_an_error() -> None:
    async def scenario() -> None:
        queue = WorkQueue[str]()
        queue.add("a")
        await queue.take()
        queue.add("a")
        queue.done("a")
        with pytest.raises(KeyError):
            queue.done("a")
        assert len(queue) == 1

    leap(scenario())


def test_a_burst_of_events_costs_one_reconcile_after_the_settle_time() -> None:
    async def scenario() -> None:
        queue = WorkQueue[str](settle=0.5)
        for _ in range(4):
            queue.add("a")
            await asyncio.sleep(0.1)
        assert len(queue) == 0
        assert await queue.take() == "a"
        # The time is counted from the first event, so that a steady stream of events cannot postpone a key forever.
        assert now() == pytest.approx(0.5)
        assert len(queue) == 0

    leap(scenario())


def test_the_earliest_of_several_delays_applies() -> None:
    async def scenario() -> None:
        queue = WorkQueue[str]()
        for seconds in (5.0, 2.0, 9.0):
            queue.add_after("a", seconds)
        await queue.take()
        assert now() == 2.0
        queue.done("a")
        await asyncio.sleep(60)
        assert len(queue) == 0

    leap(scenario())


def test_retry_delays_grow_until_the_key_is_forgotten() -> None:
    async def scenario() -> None:
        queue = WorkQueue[str](first_retry=1.0, retry_cap=10.0)
        waits = []
        for number in range(8):
            if number == 6:
                queue.forget("a")
            before = now()
            queue.retry("a")
            queue.retry("b") if number == 0 else None
            assert await queue.take() == "a"
            waits.append(now() - before)
            queue.done("a")
            if number == 0:
                assert await queue.take() == "b"  # failures are counted per key
                assert now() == 1.0
                queue.done("b")
        assert waits == [1, 2, 4, 8, 10, 10, 1, 2]
        for _ in range(2000):
            queue.retry("c")

    leap(scenario())


@pytest.mark.parametrize("settle", [0.0, 0.01])
def test_no_key_has_two_workers_and_no_addition_is_lost(settle: float) -> None:
    async def scenario() -> None:
        queue = WorkQueue[int](settle=settle)
        busy: set[int] = set()
        added: dict[int, float] = {}
        worked: dict[int, float] = {}
        maximum = 0

        async def reconcile(key: int) -> None:
            nonlocal maximum
            assert key not in busy
            busy.add(key)
            maximum = max(maximum, len(busy))
            worked[key] = now()
            await asyncio.sleep(0.003 * (key + 1))
            busy.discard(key)

        task = asyncio.create_task(work(queue, reconcile, 3))
        for number in range(300):
            key = number * 7 % 5
            queue.add(key)
            added[key] = now()
            await asyncio.sleep(0.001 * (number % 4))
        await asyncio.sleep(1)
        assert not busy
        assert maximum == 3
        assert all(worked[key] >= added[key] for key in added)
        task.cancel()
        await asyncio.wait([task])

    leap(scenario())


def test_a_key_is_repeated_after_the_requested_delay_and_retried_after_errors(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> list[tuple[str, float]]:
        queue = WorkQueue[str](first_retry=1.0)
        passes: list[tuple[str, float]] = []

        async def reconcile(key: str) -> float | None:
            passes.append((key, now()))
            number = len(passes)
            if number <= 2 or number == 4:
                raise RuntimeError(f"pass {number}")
            return 100.0 if number == 3 else None

        queue.add("a")
        task = asyncio.create_task(work(queue, reconcile, 2))
        await asyncio.sleep(1000)
        task.cancel()
        await asyncio.wait([task])
        return passes

    with caplog.at_level(logging.WARNING):
        passes = leap(scenario())
    # Two failures (1 s, 2 s), a success that asks for 100 s, a failure (the first in a row: 1 s), a success.
    assert [at for _, at in passes] == [0, 1, 3, 103, 104]
    assert "a: pass 1" in caplog.text


def test_a_worker_cancelled_after_its_wake_up_leaves_the_key_to_another_worker() -> None:
    async def scenario() -> None:
        queue = WorkQueue[str]()
        first, second = (asyncio.create_task(queue.take()) for _ in range(2))
        await asyncio.sleep(0)
        queue.add("a")
        first.cancel()
        async with asyncio.timeout(1):
            assert await second == "a"
        await asyncio.wait([first])

    leap(scenario())


def test_a_cancelled_worker_returns_its_key() -> None:
    async def scenario() -> None:
        queue = WorkQueue[str]()

        async def for_ever(key: str) -> None:
            await asyncio.Event().wait()

        queue.add("a")
        task = asyncio.create_task(work(queue, for_ever, 1))
        await asyncio.sleep(1)
        queue.add("a")
        task.cancel()
        await asyncio.wait([task])
        assert await queue.take() == "a"

    leap(scenario())


KEYS = st.sampled_from("abc")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["add", "retry", "forget", "done"]), KEYS),
        st.tuples(st.just("later"), KEYS, st.integers(0, 20)),
        st.tuples(st.just("take")),
        st.tuples(st.just("pass"), st.integers(1, 15)),
    ),
    max_size=50,
)


class Model:
    """A naive model of the queue. Times are in whole seconds."""

    def __init__(self, settle: int) -> None:
        self.settle, self.clock = settle, 0
        self.ready: list[str] = []
        self.working: set[str] = set()
        self.dirty: set[str] = set()
        self.due: dict[str, tuple[int, int]] = {}
        self.failures: dict[str, int] = {}
        self.count = 0

    def later(self, key: str, seconds: int) -> None:
        self.count += 1
        at = self.clock + seconds
        if key not in self.due or self.due[key][0] > at:
            self.due[key] = (at, self.count)

    def put(self, key: str) -> None:
        if key in self.working:
            self.dirty.add(key)
        elif key not in self.ready:
            self.ready.append(key)

    def run(self, seconds: int) -> None:
        self.clock += seconds
        for key, (at, _) in sorted(self.due.items(), key=lambda pair: pair[1]):
            if at <= self.clock:
                del self.due[key]
                self.put(key)


async def apply_action(queue: WorkQueue[str], model: Model, action: tuple[Any, ...]) -> None:
    match action:
        case ("add", key):
            queue.add(key)
            model.later(key, model.settle) if model.settle else model.put(key)
        case ("later", key, seconds):
            queue.add_after(key, seconds)
            model.later(key, seconds)
        case ("retry", key):
            queue.retry(key)
            model.failures[key] = model.failures.get(key, 0) + 1
            model.later(key, min(8, 2 ** (model.failures[key] - 1)))
        case ("forget", key):
            queue.forget(key)
            model.failures.pop(key, None)
        case ("take",) if model.ready:
            # Keys that become due at the same moment are handed out in any order.
            key = await queue.take()
            model.ready.remove(key)
            model.working.add(key)
        case ("done", key) if key in model.working:
            queue.done(key)
            model.working.discard(key)
            if key in model.dirty:
                model.dirty.discard(key)
                model.ready.append(key)
        case ("pass", seconds):
            # One second at a time, so that the model's timers fire in the same order as the clock's.
            for _ in range(seconds):
                await asyncio.sleep(1)
                model.run(1)


@settings(max_examples=300, deadline=None)
@given(STEPS, st.sampled_from([0, 3]))
def test_the_queue_behaves_like_the_naive_model(steps: list[tuple[Any, ...]], settle: int) -> None:
    async def scenario() -> None:
        queue, model = WorkQueue[str](settle=settle, first_retry=1.0, retry_cap=8.0), Model(settle)
        for action in steps:
            await apply_action(queue, model, action)
            # Timers that are due now (with a delay of 0) run in the next iteration of the loop.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            model.run(0)
            assert len(queue) == len(model.ready)
        # Finally, each remaining key is handed out once.
        await apply_action(queue, model, ("pass", 30))
        for key in sorted(model.working):
            await apply_action(queue, model, ("done", key))
        keys = [await queue.take() for _ in range(len(queue))]
        assert sorted(keys) == sorted(model.ready)
        assert len(set(keys)) == len(keys)

    leap(scenario())


def test_a_programming_error_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        queue = WorkQueue[str]()

        async def reconcile(key: str) -> None:
            queue.close()
            raise KeyError("labels")

        queue.add("a")
        await work(queue, reconcile, 1)

    leap(scenario())
    assert "in reconcile" in caplog.text and "KeyError: 'labels'" in caplog.text
