"""The pytest plugin of the controlling process: it supervises the workers of a run and keeps what they report."""

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
from conformance.suite.outcomes.ledger_file import RunLedger
from conformance.suite.session import shards
from conformance.suite.session.collected import Collected
from conformance.suite.session.distribution import Distribution
from conformance.suite.session.shared import FIRST_WORKER
from conformance.suite.settings import RunSettings


class Watch:
    """Supervises the workers from the controlling process. `groups` maps each test to its group, which one worker runs,
    and `exclusive_groups` are the groups that run after all other groups. Both may be filled until the tests are
    distributed."""

    def __init__(
        self, settings: RunSettings, run_ledger: RunLedger, groups: Mapping[str, str], exclusive_groups: Collection[str]
    ) -> None:
        self.interrupted = self.has_enough_failures = self.is_stuck = False
        self._settings, self._run_ledger, self._groups, self._exclusive_groups = (
            settings,
            run_ledger,
            groups,
            exclusive_groups,
        )
        self._workers = Workers(settings, run_ledger, self.collected)

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Judge in this process if there are no workers."""
        if not self._settings.workers:
            judge = session.config.pluginmanager.get_plugin(plugin.NAME)
            assert isinstance(judge, plugin.Judge)
            judge.begin(self._run_ledger.append_encoded)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give a new worker its channel to this process."""
        self._workers.add(node.gateway.id, node.gateway.newchannel(), node.workerinput)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Distribution:
        """Return the distribution of the tests: the tests of one scene go to one worker, and scenes that are played
        alone come last."""
        lone_worker = FIRST_WORKER if self._settings.shared else ""
        costs = shards.prices(self._groups.values(), shards.costs(), self._settings.repeat)
        return Distribution(config, log, self._groups, self._exclusive_groups, lone_worker, costs)

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Send SIGTERM to each worker: the terminal sends Ctrl-C to the workers as well, but a SIGTERM reaches only
        this process. Each worker cleans up by itself.

        pytest-xdist ends a session in the same way when enough tests have failed; its workers have exited by then.
        """
        cut_frames_without_line(excinfo.tb)
        if isinstance(excinfo.value, Interrupted) and str(excinfo.value).startswith("stopping after"):
            self.has_enough_failures = True
            return
        self.interrupted = not self.is_stuck
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object, error: object | None) -> None:
        """Record that a worker has died, and clean up after it."""
        if error is None or self.interrupted:
            return
        worker = str(getattr(getattr(node, "gateway", None), "id", "?"))
        self._run_ledger.write(ledger.WorkerLost(worker=worker))
        sweep(self._settings, self._run_ledger, worker)

    def pytest_internalerror(self, excrepr: object) -> None:
        """Record an internal error of pytest."""
        last_line = str(excrepr).strip().splitlines()[-1:]
        self.record_fault("pytest ended with an internal error: " + "".join(last_line))

    def record_fault(self, error: str) -> None:
        """Record a harness error of this process."""
        self._run_ledger.write(ledger.HarnessFault(worker="run", what=error, log=str(self._settings.log)))

    def pids(self) -> list[int]:
        """Return the process ids of the workers: the ids in the ledger that belong to children of this process."""
        started_pids = {e.pid for e in self._run_ledger.events() if isinstance(e, ledger.WorkerStarted)}
        return [p.pid for p in psutil.Process().children() if p.pid in started_pids]

    def collected(self, collection: Collected) -> None:
        """Receive what a worker has collected."""


def sweep(settings: RunSettings, run_ledger: RunLedger, worker: str = "") -> None:
    """Take down the clusters that killed workers left behind."""
    from conformance.suite.session import worker as session

    try:
        session.sweep(settings.run, worker)
    except Exception as error:
        problem = f"clusters cannot be taken down: {error}"
        run_ledger.write(ledger.HarnessFault(worker="run", what=problem, clearing=True))


def cut_frames_without_line(entry: TracebackType | None) -> None:
    """Cut a traceback before its first frame without a line number. A signal may arrive while Python executes code that
    has no line, such as the start of a `with`; pytest then fails because of the missing number instead of reporting
    where the run was interrupted."""
    while entry is not None and entry.tb_next is not None:
        if cast(int | None, entry.tb_next.tb_lineno) is None:
            entry.tb_next = None
        entry = entry.tb_next
