"""The two kinds of errors that end this program deliberately, and the table of exit codes.

A failure of the implementation under test is neither: it is a finding in the ledger.
"""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of `grove-conformance`. 0 to 5 agree with pytest's. OUTPUT replaces CONFORMANT if the output could not
    be written; the verdict is in the report. NO_ANSWER: a comparison has no usable round. REGRESSION: a comparison of
    reports has found a regression."""

    CONFORMANT = 0
    NOT_CONFORMANT = 1
    INTERRUPTED = 2
    HARNESS = 3
    USAGE = 4
    NOTHING_RAN = 5
    PARTIAL = 6
    STALE_EXPECTATION = 7
    OUTPUT = 8
    NO_ANSWER = 9
    REGRESSION = 10


class UsageError(Exception):
    """A mistake that the user can correct. `str()` is one line: where, what is wrong, and a hint."""

    exit_code = Exit.USAGE

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        self.what, self.where, self.hint = what, where, hint
        super().__init__((f"{where}: " if where else "") + what + (f" — {hint}" if hint else ""))


class HarnessError(Exception):
    """The fake cluster or the suite itself could not do its work: no verdict about the implementation."""

    exit_code = Exit.HARNESS

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        self.what, self.where, self.hint = what, where, hint
        super().__init__((f"{where}: " if where else "") + what + (f" — {hint}" if hint else ""))


class SupervisorLost(HarnessError):
    """The suite's own supervisor of a process was killed, and the process with it. The implementation is not at
    fault."""


class ClusterTooSlow(HarnessError):
    """The cluster has not done its own work in time, such as serving a CRD. The implementation is not at fault."""
