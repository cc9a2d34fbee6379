"""One process of an implementation: a process group of its own, from start to the end of its last member.

Invariant: once `stop`, `kill` or `exited` says that it has ended, no member of its group lives.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import signal
import subprocess
import threading
import time
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LOOK_EVERY = 0.05
"""Seconds between two looks at a health page or a log while a process starts; its end is seen at once."""
TAIL_LINES = 15


class NotReady(Exception):
    """It did not become ready; `str()` is one sentence with the reason."""


@dataclass(frozen=True)
class Ended:
    """How a process ended. `code` is the exit code, or minus the number of the signal."""

    code: int
    at: float
    """Seconds on the monotonic clock."""

    def __str__(self) -> str:
        if self.code >= 0:
            return f"exited with code {self.code}"
        try:
            return f"was ended by {signal.Signals(-self.code).name}"
        except ValueError:
            return f"was ended by signal {-self.code}"


class ProcessGroup:
    """A started program and everything it starts that does not leave its process group.

    Output is appended to `log`. Raises OSError if the program cannot be started.
    """

    def __init__(self, argv: Sequence[str], *, environment: Mapping[str, str], directory: Path, log: Path) -> None:
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            self._log_begins = output.tell()
            self._popen = subprocess.Popen(
                argv,
                env=dict(environment),
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pid = self._popen.pid
        self._ended: Ended | None = None
        self._over = threading.Event()
        self._reaping = threading.Lock()
        threading.Thread(target=self._attend, name=f"attend-{self.pid}", daemon=True).start()

    @property
    def ended(self) -> Ended | None:
        """How it ended, None while it lives."""
        return self._ended

    def stop(self, grace: float) -> Ended:
        """SIGTERM to the whole group, SIGKILL to what is left when the leader is gone or after `grace` seconds."""
        self._signal(signal.SIGTERM)
        if not self._over.wait(grace):
            self._signal(signal.SIGKILL)
        return self.wait()

    def kill(self) -> Ended:
        """SIGKILL to the whole group."""
        self._signal(signal.SIGKILL)
        return self.wait()

    def wait(self) -> Ended:
        """Blocks until it has ended."""
        self._over.wait()
        assert self._ended is not None
        return self._ended

    def wait_ready(self, http_url: str | None, log_pattern: str | None, within: float) -> None:
        """Returns when the page answers 200 and a log line of this run matches. Raises NotReady at the deadline or as
        soon as the process has ended; the end of its log is in the sentence."""
        deadline = time.monotonic() + within
        page, line = http_url is None, log_pattern is None
        while not (page and line):
            if self._over.wait(LOOK_EVERY):
                raise NotReady(f"{self._ended} before it was ready; {self.tail()}")
            page = page or answers(http_url or "")
            line = line or self.has_logged(log_pattern or "")
            if not (page and line) and time.monotonic() > deadline:
                missing = f"{http_url} did not answer 200" if not page else f"no log line matched {log_pattern!r}"
                raise NotReady(f"is not ready after {within:g} s: {missing}; {self.tail()}")
        if self._ended is not None:
            raise NotReady(f"{self._ended} when it had just become ready; {self.tail()}")

    def has_logged(self, pattern: str) -> bool:
        """Whether a line of this run's output matches the regular expression."""
        wanted = re.compile(pattern)
        return any(wanted.search(line) for line in self._output().splitlines())

    def tail(self) -> str:
        """The last lines of this run's output as one line of text, and where the whole is."""
        lines = [line.strip() for line in self._output().splitlines() if line.strip()][-TAIL_LINES:]
        said = " | ".join(lines) if lines else "nothing"
        return f"its log ends with: {said} (all of it: {self.log})"

    def _output(self) -> str:
        with self.log.open("rb") as file:
            file.seek(self._log_begins)
            return file.read().decode("utf-8", "replace")

    def _attend(self) -> None:
        """Waits for the leader's end, ends the rest of the group, then reaps the leader.

        In that order, because a group's number cannot be given to strangers while its leader is not reaped.
        """
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        with self._reaping:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            self._ended = Ended(self._popen.wait(), time.monotonic())
        self._over.set()

    def _signal(self, number: signal.Signals) -> None:
        with self._reaping:
            if self._ended is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.pid, number)


def answers(url: str) -> bool:
    """Whether a page on loopback answers 200 within a second. No proxy is ever asked."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "127.0.0.1", parts.port, timeout=1.0)
    try:
        connection.request("GET", (parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
