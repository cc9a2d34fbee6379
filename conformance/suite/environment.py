"""The environment of a worker as the plugin sees it: it plays one test or scene at a time.

The real environment is a cluster with an implementation (`session/worker.py`); the plugin's own tests supply a fake
environment.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from conformance.errors import HarnessError
from conformance.suite.outcomes.checks import Checks
from conformance.suite.outcomes.ledger import Check, Ledger
from conformance.suite.settings import RunSettings


@dataclass
class RunningTest:
    """One test while it runs. `problem` is the exception that ended it early, if any."""

    test: str
    checks: Checks
    problem: BaseException | None = None
    ended_by: str = ""
    """A description of the failed check that ended the test early."""
    seconds: dict[str, float] = field(default_factory=dict)
    namespace: str = ""
    bundle: Path | None = None
    scene: str = ""
    """The scene that the test judges; empty for a test with its own environment."""
    scene_ended_by: str = ""
    """The step at which the scene ended early; empty if it did not."""
    foreign: str = ""
    """The first write of another client to objects that only the suite may write; if there is one, the test judges
    nothing."""
    violation: Callable[[], str] = lambda: ""
    """Returns a message about the first forbidden mutator (a mutating webhook, policy or conversion), or about a write
    that the audit log has lost; empty if there is neither. A harness error after such a write may have been caused by
    it."""
    removed: str = ""
    """Installed webhooks that were missing when evidence of a failure was collected."""
    keep_objects: bool = False
    """Whether the test's objects and its cluster are kept (--keep-cluster)."""
    keep: Callable[[Sequence[Check], Sequence[str]], None] = lambda checks, tests: None
    """Writes the failure bundle, given the checks that were made and the tests that reproduce the failure."""
    at_end: Callable[[bool], None] = lambda finished: None
    """Judges everything that is judged after the test's own checks. The argument says whether the test ran to its
    end."""

    measure_cpu: Callable[[], Callable[[], float]] = lambda: lambda: 0.0
    """Starts to measure, and returns a function that returns the CPU seconds since then; 0 if they are not known."""

    @property
    def has_problem(self) -> bool:
        """Return whether the test has a problem or a failed check, so that evidence must be kept."""
        return self.problem is not None or bool(self.checks.failures)


class GivenUp(HarnessError):
    """No more tests can be played."""


class Environment(Protocol):
    """The environment of one worker, opened when the first test needs it."""

    def play(self, running: RunningTest) -> AbstractContextManager[Any]:
        """Return the `case` of a test, or the environment of a scene, as a context manager. On exit it keeps evidence
        if anything is wrong, and cleans up.

        Raises HarnessError if the cluster failed, or checks.Blocked if the implementation cannot be run at all.
        """
        ...

    def close(self) -> None:
        """Undo everything in reverse order. Safe to call more than once."""
        ...


class MakeEnvironment(Protocol):
    """A function that opens the environment of a worker."""

    def __call__(self, settings: RunSettings, worker: str, ledger: Ledger) -> Environment:
        """Open the environment. Raises UsageError if the settings do not allow it, or HarnessError if it cannot be
        opened for any other reason."""


def short_name(test: str, run: str) -> str:
    """Return a DNS label of at most 30 characters for the namespace, node pool and user agent of one test of a run."""
    words = re.sub(r"[^a-z0-9]+", "-", test.rpartition("::")[2].removeprefix("test_").lower()).strip("-")
    digest = hashlib.sha256(f"{run}\0{test}".encode()).hexdigest()[:6]
    return f"{words[:22].rstrip('-') or 'test'}-{digest}"


def folder_name(test: str) -> str:
    """Return a name for the files of a test, which is the same in every run."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", test.replace(".py::", "-")).strip("-")
    if len(words) <= 80:
        return words
    return f"{words[:72]}-{hashlib.sha256(test.encode()).hexdigest()[:7]}"


def randomness(test: str, seed: int) -> random.Random:
    """Return the random number generator of a test. For the same seed it yields the same numbers, regardless of the
    other tests of the run."""
    return random.Random(f"{seed} {test}")
