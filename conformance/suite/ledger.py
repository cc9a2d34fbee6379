"""The ledger of a run: what happened, one JSON line an event, one file a worker, flushed at once.

A killed worker loses nothing but the line it was writing. The terminal, report.yaml and every other output read it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import msgspec

from conformance.history import redaction

Cause = Literal["", "implementation", "circumstances"]
"""Why something was blocked: the implementation could not do its part, or this run could not have it tried."""


class Event(msgspec.Struct, tag_field="event", kw_only=True, frozen=True):
    """`wall` is seconds since the epoch."""

    wall: float = 0.0


class ExpectedFailure(msgspec.Struct, frozen=True):
    """An entry of a descriptor: requirement `id` is known to fail, until the day `expires` (YYYY-MM-DD or empty)."""

    id: str
    reason: str = ""
    link: str = ""
    expires: str = ""


class Implementation(msgspec.Struct, frozen=True, kw_only=True):
    """Who is judged."""

    name: str
    version: str
    roles: tuple[str, ...]
    features: tuple[str, ...]
    digest: str
    supplied: dict[str, str] = {}
    """Roles that somebody else plays in this run → who, with version."""
    expected_failures: tuple[ExpectedFailure, ...] = ()


class PlannedTest(msgspec.Struct, frozen=True):
    test: str
    ids: tuple[str, ...]


class RunStarted(Event, tag="run-started", kw_only=True, frozen=True):
    run: str
    suite_version: str
    suite_digest: str
    implementation: Implementation
    profiles: tuple[str, ...]
    ids: tuple[str, ...]
    only: tuple[str, ...] = ()
    """The tests that were named; empty for all that judge something of the selection."""
    plan: tuple[PlannedTest, ...]
    workers: int
    time_scale: float
    seed: int
    repeat: int = 1
    reproduce: str = ""
    """The command line that runs a test of this run again, without `--test …`."""
    environment: dict[str, str] = {}


class WorkerStarted(Event, tag="worker-started", kw_only=True, frozen=True):
    worker: str
    pid: int


class Phase(Event, tag="phase", kw_only=True, frozen=True):
    """A worker begins a step of bringing up its cluster, or ends (`ready`, `down`)."""

    worker: str
    phase: str
    detail: str = ""


class TestStarted(Event, tag="test-started", kw_only=True, frozen=True):
    __test__ = False
    test: str
    ids: tuple[str, ...]
    worker: str


class Check(Event, tag="check", kw_only=True, frozen=True):
    """One judgement. `at` is in seconds of the test's history, None where it has no instant."""

    test: str
    id: str
    what: str
    outcome: Literal["passed", "failed", "unknown"]
    expected: object = None
    seen: object = None
    at: float | None = None


class TestFinished(Event, tag="test-finished", kw_only=True, frozen=True):
    __test__ = False
    test: str
    outcome: Literal["passed", "failed", "blocked", "harness-error", "interrupted"]
    worker: str
    reason: str = ""
    cause: Cause = ""
    ended_by: str = ""
    """The failed check that ended the test before its end; empty where it came to its end."""
    seconds: dict[str, float] = {}
    """Durations of setup, call and teardown."""
    bundle: str = ""
    """Folder of the failure bundle, relative to the run's folder."""
    namespace: str = ""
    scene: str = ""
    """The scene that it judges; then `ended_by` of a blocked test is the step at which the scene ended."""


class ScenePlayed(Event, tag="scene-played", kw_only=True, frozen=True):
    """A scene was played, which several tests judge. `steps`: by name, in seconds of its history."""

    scene: str
    worker: str
    seconds: float
    steps: dict[str, float]
    ended_by: str = ""
    """The step that did not come; empty where the scene came to its end."""


class HarnessFault(Event, tag="harness-fault", kw_only=True, frozen=True):
    """The suite or its cluster could not do its work. `log` is the file with the whole story. `final`: the worker has
    given up, and all its further tests end for the same reason."""

    worker: str
    what: str
    test: str = ""
    log: str = ""
    final: bool = False


class WorkerLost(Event, tag="worker-lost", kw_only=True, frozen=True):
    worker: str
    test: str = ""


class RunFinished(Event, tag="run-finished", kw_only=True, frozen=True):
    interrupted: bool
    status: int
    """pytest's exit status."""


AnyEvent = (
    RunStarted
    | WorkerStarted
    | Phase
    | TestStarted
    | Check
    | TestFinished
    | ScenePlayed
    | HarnessFault
    | WorkerLost
    | RunFinished
)

_decoder = msgspec.json.Decoder(AnyEvent)


class Ledger:
    """Writes one file. Lines are whole or absent for readers: each is one write."""

    def __init__(self, folder: Path, writer: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / f"{writer}.jsonl").open("ab", buffering=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def write(self, event: AnyEvent) -> None:
        line = msgspec.json.encode(msgspec.structs.replace(event, wall=time.time()))
        self._file.write(redaction.words(line) + b"\n")

    def close(self) -> None:
        self._file.close()


class Tail:
    """Reads a ledger that grows: `poll` returns what came since the last call."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offsets: dict[Path, int] = {}

    def poll(self) -> list[AnyEvent]:
        events: list[AnyEvent] = []
        for path in sorted(self._folder.glob("*.jsonl")):
            with path.open("rb") as file:
                file.seek(self._offsets.get(path, 0))
                fresh = file.read()
            whole = fresh[: fresh.rfind(b"\n") + 1]
            self._offsets[path] = self._offsets.get(path, 0) + len(whole)
            events += [_decoder.decode(line) for line in whole.splitlines()]
        return sorted(events, key=lambda e: e.wall)


def read(folder: Path) -> Iterator[AnyEvent]:
    """All whole events of a run, by time; a half line at the end of a killed worker's file is left out."""
    return iter(Tail(folder).poll())
