"""The ledger of a run: its events, from which report.yaml, the terminal output and all other outputs are made
(`ledger_file.py`)."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from datetime import date
from typing import Annotated, Literal

import msgspec

from conformance import credentials

Cause = Literal["", "implementation", "circumstances"]
"""Why a test was blocked: because of the implementation, or because this run cannot perform it."""

Seconds = Annotated[float, msgspec.Meta(ge=-1e11, le=1e11)]
"""Seconds that can be added, and converted to a date: a ledger may come from outside."""


class Event(msgspec.Struct, tag_field="event", kw_only=True, frozen=True):
    """An event. `wall` is in seconds since the epoch."""

    wall: Seconds = 0.0


class ExpectedFailure(msgspec.Struct, frozen=True):
    """An entry of a descriptor: requirement `id` is known to fail, until the date `expires` (YYYY-MM-DD, or empty for
    no end)."""

    id: str
    reason: str = ""
    link: str = ""
    expires: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError for an invalid date. A decoder reports it like a value of the wrong type."""
        if self.expires:
            date.fromisoformat(self.expires)


class Implementation(msgspec.Struct, frozen=True, kw_only=True):
    """The judged implementation."""

    name: str
    version: str
    roles: tuple[str, ...]
    features: tuple[str, ...]
    digest: str
    line: str = ""
    """The line of Grove's contract that the implementation follows."""
    release: str = ""
    """The release of Grove whose requirements the implementation must meet."""
    discovered: dict[str, str] = {}
    """Optional parts of the API that the implementation's CRDs serve."""
    supplied: dict[str, str] = {}
    """Roles that this implementation does not provide → the name and version of the implementation that provides them
    in this run."""
    expected_failures: tuple[ExpectedFailure, ...] = ()


class PlannedTest(msgspec.Struct, frozen=True):
    """A planned test of the run, with the ids that it declares."""

    test: str
    ids: tuple[str, ...]


class RunStarted(Event, tag="run-started", kw_only=True, frozen=True):
    """The run starts: its settings, the selection and the planned tests."""

    run: str
    suite_version: str
    suite_digest: str
    implementation: Implementation
    profiles: tuple[str, ...]
    ids: tuple[str, ...]
    only: tuple[str, ...] = ()
    """The tests that were named with --test; empty if none were."""
    skip: tuple[str, ...] = ()
    """The requirements that were left out with --skip."""
    shard: Annotated[str, msgspec.Meta(pattern=r"\A([0-9]{1,4}/[0-9]{1,4})?\Z")] = ""
    """The shard of the selection that the plan contains, as i/n; empty for the whole selection."""
    elsewhere: dict[str, int] = {}
    """Invariant → how many more tests would judge it, in scenes that the selection of profiles leaves out."""
    plan: tuple[PlannedTest, ...]
    workers: int
    time_scale: float
    seed: int
    repeat: int = 1
    reproduce: str = ""
    """The command line that repeats a test of this run, without `--test …`."""
    environment: dict[str, str] = {}


class WorkerStarted(Event, tag="worker-started", kw_only=True, frozen=True):
    """A worker has started."""

    worker: str
    pid: int


class WorkerEnded(Event, tag="worker-ended", kw_only=True, frozen=True):
    """A worker has ended normally, and has closed everything that it had opened."""

    worker: str


class Phase(Event, tag="phase", kw_only=True, frozen=True):
    """A worker starts a step of bringing up or taking down its cluster; the last steps are `ready` and `down`."""

    worker: str
    phase: str
    detail: str = ""


class TestStarted(Event, tag="test-started", kw_only=True, frozen=True):
    """A test starts."""

    __test__ = False
    test: str
    ids: tuple[str, ...]
    worker: str


class Deviation(msgspec.Struct, frozen=True):
    """The record at which a check first failed: the object, as `pods/NAME`, and its revision."""

    object: str
    revision: int


class Check(Event, tag="check", kw_only=True, frozen=True):
    """One check. `at` is in seconds of the test's history; None if the check has no time. `deviation` is set only for
    checks that know the record at which they failed."""

    test: str
    id: str
    what: str
    outcome: Literal["passed", "failed", "unknown"]
    expected: object = None
    seen: object = None
    at: Seconds | None = None
    deviation: Deviation | None = None


class TestFinished(Event, tag="test-finished", kw_only=True, frozen=True):
    """A test has ended."""

    __test__ = False
    test: str
    outcome: Literal["passed", "failed", "known-limit", "blocked", "harness-error", "interrupted"]
    worker: str
    reason: str = ""
    cause: Cause = ""
    ended_by: str = ""
    """The failed check that ended the test early; empty if it ran to its end."""
    seconds: dict[str, Seconds] = {}
    """Durations of setup, call and teardown."""
    bundle: str = ""
    """Folder of the failure bundle, relative to the run's folder."""
    namespace: str = ""
    scene: str = ""
    """The scene that the test judges; if it is set, `ended_by` of a blocked test is the step at which the scene
    ended."""
    removed: str = ""
    """Installed webhooks that were missing when a check failed, which is then the cause of the failures."""


class ScenePlayed(Event, tag="scene-played", kw_only=True, frozen=True):
    """A scene, which several tests judge, was played. `steps`: step → time in seconds of its history."""

    scene: str
    worker: str
    seconds: Seconds
    steps: dict[str, Seconds]
    ended_by: str = ""
    """The step that was not reached; empty if the scene ran to its end."""
    markers: dict[str, dict[str, Seconds]] = {}
    """Timing markers by phase, in seconds since the request that started the phase. They do not affect the verdict."""
    cpu: Seconds = 0.0
    """CPU seconds of the worker, its cluster and the implementation; 0 if the environment does not know them."""


class HarnessFault(Event, tag="harness-fault", kw_only=True, frozen=True):
    """The suite or its cluster failed. `log` is the file with the details. `final`: the worker has given up, and all
    its later tests end with the same error. `clearing`: the error occurred during cleanup, so earlier judgements
    stand."""

    worker: str
    what: str
    test: str = ""
    log: str = ""
    final: bool = False
    clearing: bool = False


class ClusterKept(Event, tag="cluster-kept", kw_only=True, frozen=True):
    """A worker has kept its cluster in the state in which a test failed, for inspection."""

    worker: str
    cluster: str
    kubeconfig: str
    namespace: str
    """The namespace of the test that failed."""


class WorkerLost(Event, tag="worker-lost", kw_only=True, frozen=True):
    """A worker died."""

    worker: str
    test: str = ""


class RunFinished(Event, tag="run-finished", kw_only=True, frozen=True):
    """The run has ended."""

    interrupted: bool
    status: int
    """pytest's exit status."""


AnyEvent = (
    RunStarted
    | WorkerStarted
    | WorkerEnded
    | Phase
    | TestStarted
    | Check
    | TestFinished
    | ScenePlayed
    | HarnessFault
    | ClusterKept
    | WorkerLost
    | RunFinished
)


def encoded(event: AnyEvent) -> bytes:
    """Return an event, with the current time, as one line of JSON without credentials."""
    return credentials.redact_bytes(msgspec.json.encode(msgspec.structs.replace(event, wall=time.time())))


class Ledger:
    """The ledger to which a worker writes its events. Each event is sent immediately, so that no events are lost if the
    worker is killed."""

    def __init__(self, send: Callable[[bytes], object]) -> None:
        self._send = send

    def write(self, event: AnyEvent) -> None:
        """Send an event. It is not an error if the receiving process is gone, because this worker must still clean
        up."""
        with contextlib.suppress(OSError):
            self._send(encoded(event))
