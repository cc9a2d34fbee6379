"""What a test is run on, as the plugin sees it: a bench that plays one trial at a time.

The real bench is a cluster with an implementation (`session.py`); our own tests of the plugin bring another.
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
from conformance.suite.checks import Checks
from conformance.suite.ledger import Check, Ledger
from conformance.suite.settings import RunSettings


@dataclass
class Trial:
    """One test while it runs. `problem` is what cut it short, if anything did."""

    test: str
    checks: Checks
    problem: BaseException | None = None
    ended_by: str = ""
    """The failed check that ended the test before its end, in words."""
    seconds: dict[str, float] = field(default_factory=dict)
    namespace: str = ""
    bundle: Path | None = None
    scene: str = ""
    """The scene that it judges; empty for a test with an environment of its own."""
    scene_ended_by: str = ""
    """The step at which that scene ended early."""
    keep: Callable[[Sequence[Check], Sequence[str]], None] = lambda checks, tests: None
    """Write the failure bundle: the checks that were made, and the tests that reproduce the failure."""
    at_end: Callable[[bool], None] = lambda finished: None
    """What is judged after the test's own checks, told whether the test came to its end."""

    @property
    def wrong(self) -> bool:
        """Whether there is something to keep evidence of."""
        return self.problem is not None or bool(self.checks.failures)


class GivenUp(HarnessError):
    """No further test can be played."""


class Environment(Protocol):
    """One worker's place of work. Made when the first test needs it."""

    def play(self, trial: Trial) -> AbstractContextManager[Any]:
        """Gives the `case` of a test, or the environment of a scene; clears up when left, and keeps evidence of what is
        wrong by then.

        Raises HarnessError (cluster), or checks.Blocked (the implementation cannot be run at all).
        """
        ...

    def close(self) -> None:
        """Undoes everything, in reverse. Safe to call again."""
        ...


class MakeEnvironment(Protocol):
    def __call__(self, settings: RunSettings, worker: str, ledger: Ledger) -> Environment: ...


def short_name(test: str, run: str) -> str:
    """A DNS label of at most 30 characters for what belongs to one test of one run: namespace, pool, user agent."""
    words = re.sub(r"[^a-z0-9]+", "-", test.rpartition("::")[2].removeprefix("test_").lower()).strip("-")
    digest = hashlib.sha256(f"{run}\0{test}".encode()).hexdigest()[:6]
    return f"{words[:22].rstrip('-') or 'test'}-{digest}"


def folder_name(test: str) -> str:
    """A file name for a test that is the same in each run."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", test.replace(".py::", "-")).strip("-")
    if len(words) <= 80:
        return words
    return f"{words[:72]}-{hashlib.sha256(test.encode()).hexdigest()[:7]}"


def randomness(test: str, seed: int) -> random.Random:
    """The random numbers of a test: the same for the same seed, whatever else runs."""
    return random.Random(f"{seed} {test}")
