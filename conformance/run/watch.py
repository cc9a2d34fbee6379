"""The controlling process of a run, in the middle of pytest: it supervises the workers and keeps what they report."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Collection, Mapping
from types import TracebackType
from typing import Any, cast

import psutil
import pytest
from xdist.dsession import Interrupted  # type: ignore[import-untyped]

from conformance.run.workers import Workers
from conformance.suite import plugin
from conformance.suite.outcomes import ledger
from conformance.suite.outcomes.book import Book
from conformance.suite.session.collected import Collected
from conformance.suite.session.distribution import Distribution
from conformance.suite.session.shared import FIRST
from conformance.suite.settings import RunSettings


class Watch:
    """Supervises the workers from the controlling process. `groups` has the group of each test, which one worker runs,
    and `exclusive_groups` those that run after all others; both may be filled until the tests are handed out."""

    def __init__(
        self, settings: RunSettings, book: Book, groups: Mapping[str, str], exclusive_groups: Collection[str]
    ) -> None:
        self.interrupted = self.enough = self.stuck = False
        self._settings, self._book, self._groups, self._exclusive_groups = settings, book, groups, exclusive_groups
        self._workers = Workers(settings, book, self.collected)

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Without workers, judge in this process."""
        if not self._settings.workers:
            judge = session.config.pluginmanager.get_plugin(plugin.NAME)
            assert isinstance(judge, plugin.Judge)
            judge.begin(self._book.take)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give a new worker its line to this process."""
        self._workers.add(node.gateway.id, node.gateway.newchannel(), node.workerinput)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Distribution:
        """Send the tests of one scene to one worker, and those of scenes that are played alone last."""
        return Distribution(config, log, self._groups, self._exclusive_groups, FIRST if self._settings.shared else "")

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Signal each worker: Ctrl-C reaches them through the terminal, SIGTERM does not. Each cleans up by itself.

        pytest-xdist ends a session in the same way when enough tests have failed; its workers have ended by then.
        """
        show_lines_only(excinfo.tb)
        if isinstance(excinfo.value, Interrupted) and str(excinfo.value).startswith("stopping after"):
            self.enough = True
            return
        self.interrupted = not self.stuck
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object, error: object | None) -> None:
        """Note that a worker has died, and take down what it has left."""
        if error is None or self.interrupted:
            return
        worker = str(getattr(getattr(node, "gateway", None), "id", "?"))
        self._book.write(ledger.WorkerLost(worker=worker))
        sweep(self._settings, self._book, worker)

    def pytest_internalerror(self, excrepr: object) -> None:
        """Note an error of pytest itself."""
        last = str(excrepr).strip().splitlines()[-1:]
        self.fault("pytest ended with an internal error: " + "".join(last))

    def fault(self, error: str) -> None:
        """Add a harness error of this process."""
        self._book.write(ledger.HarnessFault(worker="run", what=error, log=str(self._settings.log)))

    def pids(self) -> list[int]:
        """Return the workers' processes: those that are in the ledger and are children of this one."""
        started = {e.pid for e in self._book.events() if isinstance(e, ledger.WorkerStarted)}
        return [p.pid for p in psutil.Process().children() if p.pid in started]

    def collected(self, collection: Collected) -> None:
        """Take what a worker has collected."""


def sweep(settings: RunSettings, book: Book, worker: str = "") -> None:
    """Take down what killed workers left."""
    from conformance.suite.session import worker as session

    try:
        session.sweep(settings.run, worker)
    except Exception as error:
        problem = f"clusters cannot be taken down: {error}"
        book.write(ledger.HarnessFault(worker="run", what=problem, clearing=True))


def show_lines_only(entry: TracebackType | None) -> None:
    """Cut a traceback before its first frame without a line. A signal may come while Python runs code of its own, such
    as the beginning of a `with`, and pytest then fails over the missing number instead of saying where it was."""
    while entry is not None and entry.tb_next is not None:
        if cast(int | None, entry.tb_next.tb_lineno) is None:
            entry.tb_next = None
        entry = entry.tb_next
