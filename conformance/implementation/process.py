"""One process of an implementation, from its start to the end of all its descendants, controlled through its
supervisor.

Invariant: when `stop`, `kill` or `end` reports the end of the process, none of its descendants is alive. The same
holds after this process was killed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from conformance import regular
from conformance.cluster import pace, suspension
from conformance.errors import HarnessError, SupervisorLost
from conformance.implementation.output import TAIL_PREFIX, Output, SlowPattern

CHECK_INTERVAL = 0.05
"""Seconds between two checks of a health page or a log while a process starts. The end of the process is noticed
immediately."""
OBEY_SECONDS = 10.0
"""Seconds within which a supervisor must have killed its program. It normally takes milliseconds."""
KILL_SECONDS = 60.0
"""Seconds within which a process must have ended after SIGKILL."""
TAIL_LINES = 15
LOG_CHECK_SECONDS = 0.1
"""Seconds between two checks of a log's size. In this time a program can write about 100 MB to a disk."""
RESPONSE_TIMEOUT = 1.0
"""Seconds within which a page must have responded."""
MAX_STATUS_LINE_BYTES = 1024
"""Maximum number of bytes in the first line of a response."""


class NotReady(Exception):
    """The process did not become ready. `str()` is a single message with the reason."""


class ReadinessTimeout(NotReady):
    """The process runs but was not ready in time; the time limit may be too short."""


@dataclass(frozen=True)
class ProcessExit:
    """The exit of a process. `code` is the exit code, or the negative number of the signal. `unsupervised`: the suite
    has ended the process because its supervisor was killed."""

    code: int
    at: float
    """Seconds on the monotonic clock."""
    unsupervised: bool = False

    def __str__(self) -> str:
        if self.unsupervised:
            return "was ended because the suite's own process that supervises it was killed"
        if self.code >= 0:
            return f"exited with code {self.code}"
        try:
            return f"was ended by {signal.Signals(-self.code).name}"
        except ValueError:
            return f"was ended by signal {-self.code}"


class ProcessGroup:
    """A started program and all of its descendants (see `supervisor.py`).

    The output is appended to `log`. Raises OSError if the program cannot be started, and SupervisorLost if the
    supervisor was killed.
    """

    def __init__(self, argv: Sequence[str], *, environment: Mapping[str, str], directory: Path, log: Path) -> None:
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with regular.open_file(log, "ab") as output:
            self._output = Output(log)
            report_reader, report_writer = os.pipe()
            self._supervisor = subprocess.Popen(
                [sys.executable, "-I", "-S", str(Path(__file__).with_name("supervisor.py")), str(report_writer), *argv],
                env=dict(environment),
                cwd=directory,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=[report_writer],
            )
        os.close(report_writer)
        self._reports = os.fdopen(report_reader)
        status_word, _, number = self._reports.readline().partition(" ")
        if status_word != "started":
            self._supervisor.communicate()
            self._reports.close()
            if not status_word:
                raise SupervisorLost(f"the process that supervises {argv[0]} was killed before it had started that")
            raise OSError(int(number or errno.ESRCH), os.strerror(int(number or errno.ESRCH)), argv[0])
        self.pid = int(number)
        self._end: ProcessExit | None = None
        self._has_ended = threading.Event()
        assert self._supervisor.stdin is not None
        self._commands = self._supervisor.stdin
        self._command_lock = threading.Lock()
        threading.Thread(target=self._wait_for_report, name=f"attend-{self.pid}", daemon=True).start()
        threading.Thread(target=self._limit_log, name=f"bound-{self.pid}", daemon=True).start()

    @property
    def end(self) -> ProcessExit | None:
        """Return how the program ended; None while it is alive."""
        return self._end

    def find_suspension(self) -> str:
        """Return what keeps the program, or one of its descendants, from running, as the end of a sentence; empty if
        nothing does."""
        pids = (self.pid, *suspension.find_descendants(self._supervisor.pid)) if self._end is None else ()
        return next(filter(None, map(suspension.find_problem, pids)), "")

    def stop(self, grace: float) -> ProcessExit:
        """Send SIGTERM to the process group, and SIGKILL to the rest when the leader has exited or `grace` seconds have
        passed. A suspended process gets SIGKILL at once, because it cannot react. Raises HarnessError if the program
        does not end."""
        self._send_command("T")
        if suspension.find_problem(self.pid) or not self._has_ended.wait(grace):
            self._send_command("K")
        return self._wait_until_killed()

    def kill(self) -> ProcessExit:
        """Send SIGKILL to the program and all of its descendants. Raises HarnessError if they do not end."""
        self._send_command("K")
        return self._wait_until_killed()

    def detach(self) -> None:
        """Let the program outlive this process."""
        self._send_command("D")

    def wait(self) -> ProcessExit:
        """Block until the program has ended."""
        self._has_ended.wait()
        assert self._end is not None
        return self._end

    def _wait_until_killed(self) -> ProcessExit:
        if not self._has_ended.wait(OBEY_SECONDS):
            self._kill_unsupervised()
        if not self._has_ended.wait(KILL_SECONDS):
            raise HarnessError(f"process {self.pid} does not end within {KILL_SECONDS:g} s of SIGKILL")
        return self.wait()

    def _kill_unsupervised(self) -> None:
        """Kill the program, its descendants, and finally the supervisor, which has failed to do so: the program may
        have stopped it repeatedly."""
        deadline = time.monotonic() + OBEY_SECONDS
        with contextlib.suppress(psutil.NoSuchProcess):
            supervisor = psutil.Process(self._supervisor.pid)
            while (alive := _alive_below(supervisor)) and time.monotonic() < deadline:
                for process in alive:
                    with contextlib.suppress(psutil.Error):
                        process.kill()
            supervisor.kill()

    def wait_ready(
        self,
        http_url: str | None,
        log_pattern: str | None,
        timeout: float,
        on_poll: Callable[[], None] = lambda: None,
    ) -> None:
        """Return when the page responds with 200 and a log line of this run matches. Raises ReadinessTimeout after
        `timeout` seconds, or later on an overloaded machine, and NotReady as soon as the process has ended; the message
        contains the end of the log. `on_poll` is called repeatedly. An exception that it raises ends the wait."""
        start = time.monotonic()
        page_ready, line_found = http_url is None, log_pattern is None
        while not (page_ready and line_found):
            if self._has_ended.wait(CHECK_INTERVAL):
                raise NotReady(f"{self._end} before it was ready; {self.log_tail()}")
            on_poll()
            page_ready = page_ready or responds(http_url or "")
            try:
                line_found = line_found or self.has_logged(log_pattern or "")
            except SlowPattern as error:
                raise NotReady(f"is not found to be ready: {error}") from error
            if not (page_ready and line_found) and (waited := time.monotonic() - start) > timeout * pace.factor():
                problem = f"{http_url} did not answer 200" if not page_ready else f"no log line matched {log_pattern!r}"
                wait_description = (
                    f"{timeout:g} s" if waited < timeout + 1 else f"{waited:.0f} s, on an overloaded machine"
                )
                raise ReadinessTimeout(f"is not ready after {wait_description}: {problem}; {self.log_tail()}")
        if self._end is not None:
            raise NotReady(f"{self._end} when it had just become ready; {self.log_tail()}")

    def has_logged(self, pattern: str) -> bool:
        """Return whether a line of this run's output matches the regular expression."""
        return self._output.has_line(pattern)

    def log_tail(self) -> str:
        """Return the last lines of this run's output as one line of text, and the path of the complete log. An earlier
        line that gives a reason (`output.reason`) comes first."""
        reason = self._output.reason()
        return (
            f"it says: {reason}; " if reason else ""
        ) + f"its {TAIL_PREFIX}{self.last_lines(TAIL_LINES)} (all of it: {self.log})"

    def last_lines(self, count: int) -> str:
        """Return the last lines of this run's output as one line of text."""
        return " | ".join(self._output.last_lines(count)) or "nothing"

    def _limit_log(self) -> None:
        """Keep the log small while the process is alive. A full disk does not end the attempts."""
        has_ended = False
        while not has_ended:
            has_ended = self._has_ended.wait(LOG_CHECK_SECONDS)
            with contextlib.suppress(OSError):
                self._output.limit_size()

    def _wait_for_report(self) -> None:
        """Wait for the report that the program has ended. If the supervisor ends without this report, the supervisor
        was killed; the program is then killed as well, because nothing could stop it any more."""
        _, _, code = self._reports.readline().partition(" ")
        self._reports.close()
        self._supervisor.wait()
        if not code:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        with self._command_lock:
            self._end = ProcessExit(int(code or -signal.SIGKILL), time.monotonic(), unsupervised=not code)
            with contextlib.suppress(BrokenPipeError):
                self._commands.close()
        self._has_ended.set()

    def _send_command(self, letter: str) -> None:
        with self._command_lock:
            if self._end is None:
                with contextlib.suppress(BrokenPipeError):
                    self._supervisor.send_signal(signal.SIGCONT)  # the program may have suspended the supervisor
                    self._commands.write(letter.encode())
                    self._commands.flush()


def _alive_below(parent: psutil.Process) -> list[psutil.Process]:
    """Return the descendants of a process that are alive."""
    descendants = []
    for child in parent.children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if child.status() != psutil.STATUS_ZOMBIE:
                descendants.append(child)
    return descendants


def responds(url: str, timeout: float = RESPONSE_TIMEOUT) -> bool:
    """Return whether a page on loopback responds with 200. Only the first line of the response is read, and it must be
    complete within `timeout` seconds. Proxies are never used."""
    url_parts, deadline, status_line = urllib.parse.urlsplit(url), time.monotonic() + timeout, b""
    page = (url_parts.path or "/") + (f"?{url_parts.query}" if url_parts.query else "")
    request = f"GET {page} HTTP/1.1\r\nHost: {url_parts.netloc}\r\nConnection: close\r\n\r\n"
    try:
        with socket.create_connection(
            (url_parts.hostname or "127.0.0.1", url_parts.port or 80), timeout=timeout
        ) as connection:
            connection.sendall(request.encode())
            while (
                b"\n" not in status_line
                and len(status_line) < MAX_STATUS_LINE_BYTES
                and (remaining_seconds := deadline - time.monotonic()) > 0
            ):
                connection.settimeout(remaining_seconds)
                if not (piece := connection.recv(MAX_STATUS_LINE_BYTES)):
                    break
                status_line += piece
    except OSError:
        return False
    return re.match(rb"HTTP/1\.[01] 200(?: [^\n]*)?\r?\n", status_line) is not None
