"""Tests that a process starts in its own group, is watched, and ends together with every member of the group."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from conformance.cluster.suspension import STOPPED
from conformance.errors import HarnessError
from conformance.implementation import output, process, supervisor
from conformance.implementation.process import NotReady, ProcessGroup
from tests.cluster.waiting import wait_for

DEAF_SOURCE = """
import signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
signal.pause()
"""
PARENT_SOURCE = """
import subprocess, sys, signal
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
print("child", child.pid, flush=True)
signal.pause()
"""
ESCAPE_SOURCE = """
import os, signal, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        code = "import os, signal; print('child', os.getpid(), flush=True); signal.pause()"
        os.execve(sys.executable, [sys.executable, "-c", code], {})
    os._exit(0)
os.wait()
signal.pause()
"""
STARTER_SOURCE = """
import os, pathlib, signal, sys
from conformance.errors import HarnessError
from conformance.implementation import process, supervisor
from conformance.implementation.process import ProcessGroup
code, log, detached = sys.argv[1:]
argv = [sys.executable, "-c", code]
group = ProcessGroup(argv, environment=os.environ, directory=pathlib.Path("."), log=pathlib.Path(log))
if detached:
    group.wait_ready(None, "child", 30)
    group.detach()
else:
    signal.pause()
"""
SERVER_SOURCE = """
import http.server, sys
class Page(http.server.BaseHTTPRequestHandler):
    asked = 0
    def do_GET(self):
        Page.asked += 1
        self.send_response(200 if Page.asked > 2 and self.path == "/readyz?full=1" else 503)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Page).serve_forever()
"""

StartProcess = Callable[..., ProcessGroup]


@pytest.fixture
def start_process(tmp_path: Path) -> Iterator[StartProcess]:
    groups: list[ProcessGroup] = []

    def start_process(code: str, *arguments: str, **environment: str) -> ProcessGroup:
        argv = [sys.executable, "-c", code, *arguments]
        group = ProcessGroup(
            argv, environment=os.environ | environment, directory=tmp_path, log=tmp_path / "logs/it.log"
        )
        groups.append(group)
        return group

    yield start_process
    for group in groups:
        group.kill()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def child_of(group: ProcessGroup) -> psutil.Process:
    group.wait_ready(None, r"^child \d+$", 10)
    return psutil.Process(int(group.log.read_text().split()[-1]))


def supervisor_of(process: psutil.Process) -> psutil.Process:
    """Return the parent of a process. It must be a supervisor, because a broken test must never kill init or a
    shell."""
    parent = process.parent()
    assert parent is not None and parent.pid != 1
    assert any(argument.endswith("/supervisor.py") for argument in parent.cmdline()), parent.cmdline()
    return parent


def has_ended(process: psutil.Process) -> bool:
    """Return whether a process ends within 5 s. A zombie counts as ended, although it remains until its parent reaps
    it."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                return True
            process.wait(0.02)
        except psutil.TimeoutExpired:
            continue
        except psutil.NoSuchProcess:
            return True
        return True
    return False


def test_a_process_is_ready_once_a_log_line_matches(start_process: StartProcess) -> None:
    group = start_process("import signal; print('warming'); print('serving on 1', flush=True); signal.pause()")
    group.wait_ready(None, r"serving on \d", 10)
    assert group.end is None


def test_a_process_is_ready_once_a_page_responds_with_200(start_process: StartProcess) -> None:
    port = free_port()
    group = start_process(SERVER_SOURCE, str(port))
    group.wait_ready(f"http://127.0.0.1:{port}/readyz?full=1", None, 10)
    assert group.end is None


@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", [b"HTTP/1.1 200 ", b"x", b""])
def test_a_page_that_responds_byte_by_byte_has_not_answered(piece: bytes) -> None:
    """Each byte arrives before the timeout, but the first line never ends."""
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):
                connection.sendall(piece)
                while not stop.wait(0.01):
                    connection.sendall(b"x")

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            assert not process.responds(f"http://127.0.0.1:{server.getsockname()[1]}/", 0.3)
        finally:
            stop.set()
            thread.join()


@pytest.mark.parametrize(
    ("response_head", "is_answered"), [(b"HTTP/1.1 200 ", False), (b"HTTP/1.0 200\n", True), (b"", False)]
)
def test_a_page_that_ends_within_its_first_line_has_not_answered(response_head: bytes, is_answered: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def reply() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(response_head)

        thread = threading.Thread(target=reply)
        thread.start()
        assert process.responds(f"http://127.0.0.1:{server.getsockname()[1]}/", 5) is is_answered
        thread.join()


def test_a_line_that_the_pattern_never_finishes_matching_ends_the_wait(
    start_process: StartProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "MATCH_SECONDS", 0.05)
    group = start_process("import signal; print('a' * 60, '!', flush=True); signal.pause()")
    with pytest.raises(NotReady, match=r"is not found to be ready: the regular expression .* ready\.log"):
        group.wait_ready(None, "^(a|aa)+$", 60)


def test_a_pipe_in_place_of_the_log_raises_an_oserror(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "it.log")
    with pytest.raises(OSError):
        ProcessGroup([sys.executable, "-c", ""], environment={}, directory=tmp_path, log=tmp_path / "it.log")


def test_a_line_of_an_earlier_run_does_not_count(start_process: StartProcess) -> None:
    start_process("print('serving', flush=True)").wait()
    with pytest.raises(NotReady, match="no log line matched 'serving'"):
        start_process("import signal; signal.pause()").wait_ready(None, "serving", 0.3)


def test_an_early_exit_is_reported_at_once_with_code_and_log(start_process: StartProcess) -> None:
    start_time = time.monotonic()
    with pytest.raises(NotReady) as caught:
        start_process("print('no crds', flush=True); raise SystemExit(3)").wait_ready("http://127.0.0.1:1/", None, 60)
    assert time.monotonic() - start_time < 10
    assert str(caught.value).startswith("exited with code 3 before it was ready; its log ends with: no crds (")


def test_a_timeout_says_which_condition_was_not_met(start_process: StartProcess) -> None:
    with pytest.raises(NotReady, match=r"is not ready after 0\.2 s: http://127\.0\.0\.1:1/ did not answer 200"):
        start_process("import signal; signal.pause()").wait_ready("http://127.0.0.1:1/", None, 0.2)


def test_a_process_that_handles_sigterm_is_not_killed(start_process: StartProcess) -> None:
    group = start_process(
        "import signal; signal.signal(15, lambda *_: exit(0)); print('up', flush=True); signal.pause()"
    )
    group.wait_ready(None, "up", 10)
    assert group.stop(10).code == 0


def test_a_process_that_ignores_sigterm_is_killed_after_its_grace_period(start_process: StartProcess) -> None:
    group = start_process(DEAF_SOURCE)
    group.wait_ready(None, "deaf", 10)
    start_time = time.monotonic()
    assert group.stop(0.3).code == -signal.SIGKILL
    assert 0.3 <= time.monotonic() - start_time < 5
    assert str(group.end) == "was ended by SIGKILL"


def test_a_suspended_process_is_killed_at_once(start_process: StartProcess) -> None:
    group = start_process(DEAF_SOURCE)
    group.wait_ready(None, "deaf", 10)
    psutil.Process(group.pid).suspend()
    wait_for(lambda: psutil.Process(group.pid).status() == psutil.STATUS_STOPPED)
    assert group.stop(60).code == -signal.SIGKILL


@pytest.mark.parametrize("source", [DEAF_SOURCE, PARENT_SOURCE, ESCAPE_SOURCE])
def test_a_program_is_suspended_if_it_or_a_descendant_is(start_process: StartProcess, source: str) -> None:
    group = start_process(source)
    group.wait_ready(None, "deaf|child", 10)
    suspended = (*psutil.Process(group.pid).children(), *psutil.Process(group._supervisor.pid).children())[0]
    assert group.find_suspension() == ""
    suspended.suspend()
    wait_for(lambda: group.find_suspension() == STOPPED)
    suspended.resume()
    wait_for(lambda: group.find_suspension() == "")
    suspended.suspend()
    group.kill()
    assert group.find_suspension() == ""


def test_a_process_that_has_suspended_its_supervisor_is_killed_at_once(start_process: StartProcess) -> None:
    group = start_process(DEAF_SOURCE)
    group.wait_ready(None, "deaf", 10)
    psutil.Process(group._supervisor.pid).suspend()
    start_time = time.monotonic()
    assert group.stop(0.1).code == -signal.SIGKILL
    assert time.monotonic() - start_time < 5


STOPPER_SOURCE = """
import os, signal, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.kill(os.getppid(), signal.SIGSTOP)
print("child", child.pid, flush=True)
while True:
    os.kill(os.getppid(), signal.SIGSTOP)
"""


def test_a_process_that_suspends_its_supervisor_repeatedly_is_killed(
    start_process: StartProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "OBEY_SECONDS", 0.5)
    group = start_process(STOPPER_SOURCE)
    child = child_of(group)
    assert group.kill().code == -signal.SIGKILL
    assert has_ended(child)


def test_a_process_that_does_not_end_is_a_harness_error(
    start_process: StartProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "KILL_SECONDS", 0.3)
    monkeypatch.setattr(process, "OBEY_SECONDS", 0.3)
    monkeypatch.setattr(ProcessGroup, "_kill_unsupervised", lambda self: None)
    group = start_process(DEAF_SOURCE)
    group.wait_ready(None, "deaf", 10)
    monkeypatch.setattr(ProcessGroup, "_send_command", lambda self, letter: None)
    with pytest.raises(HarnessError, match=r"does not end within 0\.3 s of SIGKILL"):
        group.kill()
    monkeypatch.undo()
    assert group.kill().code == -signal.SIGKILL


def test_a_kill_ends_all_members_of_the_group(start_process: StartProcess) -> None:
    group = start_process(PARENT_SOURCE)
    child = child_of(group)
    group.kill()
    assert has_ended(child)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the process group ends")
@pytest.mark.parametrize("end_of_process", ["killed", "stopped", "by itself"])
def test_a_child_in_another_session_without_environment_ends_with_the_process(
    start_process: StartProcess, end_of_process: str
) -> None:
    group = start_process(ESCAPE_SOURCE)
    child = child_of(group)
    assert os.getsid(child.pid) != group.pid and not child.environ() and child.ppid() != group.pid
    match end_of_process:
        case "killed":
            group.kill()
        case "stopped":
            group.stop(10)
        case _:
            os.kill(group.pid, signal.SIGKILL)
            group.wait()
    assert has_ended(child)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the process group ends")
@pytest.mark.parametrize("is_detached", [False, True])
def test_all_processes_end_when_the_process_that_started_them_is_killed(tmp_path: Path, is_detached: bool) -> None:
    log = tmp_path / "log"
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER_SOURCE, ESCAPE_SOURCE, str(log), "detached" if is_detached else ""]
    )
    wait_for(lambda: log.exists() and re.search(r"^child \d+$", log.read_text(), re.M))
    child = psutil.Process(int(log.read_text().split()[-1]))
    supervisor = supervisor_of(child)
    if is_detached:
        starter.wait(timeout=10)
        assert child.is_running() and supervisor.is_running()
        for program in supervisor.children():
            program.kill()
    else:
        starter.kill()
        starter.wait()
    assert has_ended(child) and has_ended(supervisor)


def test_a_process_that_lost_its_supervisor_is_killed_and_reported_as_killed(start_process: StartProcess) -> None:
    group = start_process(PARENT_SOURCE)
    leader, child = psutil.Process(group.pid), child_of(group)
    supervisor_of(leader).kill()
    assert (group.wait().code, group.wait().unsupervised) == (-signal.SIGKILL, True)
    assert has_ended(leader) and has_ended(child)


def test_a_descendant_of_another_user_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    scans = iter([{4711}] * 3)

    def raise_permission_error(pid: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(supervisor, "descendants", lambda: next(scans))
    monkeypatch.setattr(os, "kill", raise_permission_error)
    monkeypatch.setattr(os, "killpg", raise_permission_error)
    supervisor.end(4712)


def test_members_of_the_group_end_when_the_leader_exits(start_process: StartProcess) -> None:
    group = start_process(PARENT_SOURCE)
    child = child_of(group)
    os.kill(group.pid, signal.SIGKILL)  # the leader only
    group.wait()
    assert has_ended(child)


def test_a_process_has_no_terminal_and_its_own_session(start_process: StartProcess) -> None:
    group = start_process("import os, sys; print(os.getsid(0) == os.getpid(), repr(sys.stdin.read()), flush=True)")
    group.wait()
    assert group.log.read_text().strip() == "True ''"


def test_logs_are_appended(start_process: StartProcess) -> None:
    for word in ("one", "two"):
        group = start_process(f"print('{word}')")
        assert group.wait().code == 0
    assert group.log.read_text().split() == ["one", "two"]
    assert "its log ends with: two (" in group.log_tail()


def test_ending_a_process_that_has_ended_is_not_an_error(start_process: StartProcess) -> None:
    group = start_process("pass")
    assert group.wait() == group.stop(1) == group.kill()


def test_a_program_that_does_not_exist_raises_an_oserror(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        ProcessGroup([str(tmp_path / "none")], environment={}, directory=tmp_path, log=tmp_path / "log")
