"""The parent process of one program. No process that the program has started outlives the program, or the process that
requested it.

This file is run as a script with `python -I -S` and imports little, so that it costs only milliseconds and megabytes
for each role. On Linux it is a subreaper, so a process that leaves its process group and session and empties its
environment is still a descendant and is found. On other systems only the process group is ended.

Standard input carries commands: `T` sends SIGTERM to the group, `K` ends everything, and `D` detaches. At the end of
the stream, when the parent is gone, everything is ended unless detached. The file descriptor in the first argument
carries reports: `started PID` or `failed ERRNO`, then `ended CODE`.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
from contextlib import suppress

PR_SET_CHILD_SUBREAPER = 36


def main(reports: int, argv: list[str]) -> None:
    """Start the program and serve commands until the program has ended."""
    with suppress(OSError, AttributeError):  # this system has no such call
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    wake_reader, wake_writer = os.pipe()
    os.set_blocking(wake_writer, False)  # required by set_wakeup_fd
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wake_writer)
    leader = start(argv, reports)
    _report(reports, f"started {leader}")
    is_listening, ends_with_parent = True, True
    while (status := reap(leader)) is None:
        ready, _, _ = select.select([wake_reader, *([0] if is_listening else [])], [], [])
        if wake_reader in ready:
            os.read(wake_reader, 4096)
        if 0 in ready:
            for order in os.read(0, 64).decode() or "E":
                ends_with_parent = ends_with_parent and order != "D"
                is_listening = order != "E"
                if order == "T":
                    signal_group(leader, signal.SIGTERM)
                elif order == "K" or (order == "E" and ends_with_parent):
                    end(leader)
    end(leader)
    _report(reports, f"ended {os.waitstatus_to_exitcode(status)}")


def start(argv: list[str], reports: int) -> int:
    """Start the program in a new session and return its pid. End this process if the program cannot be started."""
    error_reader, error_writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores the last two
                signal.signal(number, signal.SIG_DFL)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.execvp(argv[0], argv)  # noqa: S606 - a list, never shell text
        except OSError as error:
            os.write(error_writer, str(error.errno).encode())
        os._exit(127)
    os.close(error_writer)
    error_number = os.read(error_reader, 16).decode()
    os.close(error_reader)
    if error_number:
        os.waitpid(pid, 0)
        _report(reports, f"failed {error_number}")
        sys.exit(1)
    return pid


def reap(leader: int) -> int | None:
    """Reap processes that have ended. Return the status of the program if it is among them."""
    status = None
    with suppress(ChildProcessError):  # no children left
        while (reaped_child := os.waitpid(-1, os.WNOHANG))[0]:
            status = reaped_child[1] if reaped_child[0] == leader else status
    return status


def end(leader: int) -> None:
    """Send SIGKILL to the program, its group and every descendant until all are dead, except for processes that this
    process is not permitted to kill.

    The program may just have been reaped. Its pid is not reused while its group has members.
    """
    signal_group(leader, signal.SIGKILL)
    not_permitted: set[int] = set()
    while alive := descendants() - not_permitted:
        for pid in alive:
            try:
                os.kill(pid, signal.SIGKILL)
            except PermissionError:  # the process runs as another user, through sudo for example
                not_permitted.add(pid)
            except ProcessLookupError:
                continue
        select.select([], [], [], 0.002)


def signal_group(leader: int, number: signal.Signals) -> None:
    """Send a signal to the process group of the program, if the group still exists."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def descendants() -> set[int]:
    """Return the ids of the living descendants of this process; an empty set if the system has no /proc."""
    parents = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():  # noqa: PTH112, PTH208 - pathlib is slow to import
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                state, parent, *_ = file.read().rpartition(b")")[2].split()
                if state not in (b"Z", b"X"):
                    parents[int(name)] = int(parent)
    pids = {os.getpid()}
    while children := {pid for pid, parent in parents.items() if parent in pids} - pids:
        pids |= children
    return pids - {os.getpid()}


def _report(reports: int, text: str) -> None:
    with suppress(BrokenPipeError):
        os.write(reports, f"{text}\n".encode())


if __name__ == "__main__":
    os.set_inheritable(int(sys.argv[1]), False)
    main(int(sys.argv[1]), sys.argv[2:])
