"""A conformance run within a session of the user's own pytest: `pytest --pyargs conformance.tests
--grove-implementation NAME`.

pytest keeps its options, its output and its exit code. The additional output of a run is written to its report.
"""

from __future__ import annotations

import secrets
import tempfile
import threading
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import pytest

from conformance.cluster.assets import versions
from conformance.errors import HarnessError, UsageError
from conformance.implementation import parameters
from conformance.report import model, terminal
from conformance.run import preparation
from conformance.run.launch import remove_folder_on_error, write
from conformance.run.preparation import PreparedRun
from conformance.run.watch import Watch, sweep
from conformance.suite import plugin
from conformance.suite.outcomes import ledger
from conformance.suite.outcomes.ledger_file import RunLedger
from conformance.suite.registry import requirement
from conformance.suite.session import shards
from conformance.suite.session.collected import Collected
from conformance.suite.settings import RunSettings


def start_run(config: pytest.Config) -> None:
    """Turn a pytest session into a conformance run, according to the options of `pytest_plugin`. Raises
    pytest.UsageError if an option is invalid, or if the run cannot be prepared."""
    option = config.getoption
    try:
        settings = RunSettings(
            run=preparation.run_id(),
            directory="",
            implementation=option("grove_implementation"),
            parameters=parameters.assignments(option("grove_set") or (), "--grove-set"),
            baseline=option("grove_baseline"),
            profiles=tuple(sorted(set(option("grove_profile") or ()))),
            ids=tuple(sorted(set(option("grove_id") or ()))),
            skip=tuple(sorted(set(option("grove_skip") or ()))),
            shard=str(shards.parse(shard, "--grove-shard")) if (shard := option("grove_shard")) else "",
            workers=len(getattr(config.option, "tx", None) or ()),
            seed=secrets.randbelow(1 << 31) if (seed := option("grove_seed")) is None else seed,
            kubernetes=versions("")["kubernetes"],
            hosted=True,
        )
        folder = Path(option("grove_report_dir"))
        if option("collectonly"):
            scratch = tempfile.TemporaryDirectory()
            config.add_cleanup(scratch.cleanup)
            folder = Path(scratch.name)
        prepared = preparation.prepare(settings, folder, is_default_cluster=True)
        with remove_folder_on_error(prepared.settings):
            config.option.conformance_run = str(prepared.settings.save())
            if not option("collectonly"):
                preparation.get_programs(prepared.settings)
    except (UsageError, HarnessError) as error:
        raise pytest.UsageError(str(error)) from error
    config.pluginmanager.register(plugin)
    if not option("collectonly"):
        config.pluginmanager.register(HostedRun(prepared), "conformance-run")


class HostedRun(Watch):
    """The part of the run that happens in the controlling process."""

    def __init__(self, prepared: PreparedRun) -> None:
        self._prepared = prepared
        self._group_by_test: dict[str, str] = {}
        self._lone_groups: set[str] = set()
        self._run_ledger = RunLedger(prepared.settings.ledger)
        self._start_lock = threading.Lock()
        self._report: model.Report | None = None
        self._refusal = ""
        super().__init__(prepared.settings, self._run_ledger, self._group_by_test, self._lone_groups)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Start the run, if the tests run in this process."""
        judge = session.config.pluginmanager.get_plugin(plugin.NAME)
        if not self._settings.workers and isinstance(judge, plugin.Judge):
            self.collected(judge.collection())

    def collected(self, collection: Collected) -> None:
        """Start the run with the tests collected by the first worker that reports: all workers collect the same
        tests."""
        if not self._start_lock.acquire(blocking=False):
            return
        self._group_by_test.update(collection.groups)
        self._lone_groups.update(collection.alone)
        self._refusal = collection.refused
        settings = self._settings
        self._run_ledger.write(
            ledger.RunStarted(
                run=settings.run,
                suite_version=metadata.version("grove-conformance"),
                suite_digest=preparation.suite_digest(),
                implementation=self._prepared.implementation,
                profiles=settings.profiles,
                ids=settings.ids,
                skip=settings.skip,
                shard=settings.shard,
                elsewhere=collection.elsewhere,
                plan=tuple(ledger.PlannedTest(test, ids) for test, ids in sorted(collection.plan.items())),
                workers=settings.workers,
                time_scale=settings.time_scale,
                seed=settings.seed,
                reproduce=settings.reproduce,
                environment=preparation.environment(settings),
            )
        )

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Clean up after killed workers, and write the report."""
        sweep(self._settings, self._run_ledger)
        interrupted = self.interrupted or (exitstatus == pytest.ExitCode.INTERRUPTED and not self.has_enough_failures)
        self._run_ledger.write(ledger.RunFinished(interrupted=interrupted, status=int(exitstatus)))
        self._run_ledger.close()
        if not self._start_lock.locked():
            return
        registry = requirement.load(Path(self._settings.registry))
        self._report = model.judge(registry, self._run_ledger.events(), datetime.now(UTC).date())
        write(self._report_path, self._report)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the verdict of the run and the path of its report."""
        if self._report is not None:
            terminalreporter.section("conformance")
            if self._refusal:
                terminalreporter.write_line(f"ERROR: {self._refusal}")
            terminalreporter.write_line(terminal.verdict_line(self._report))
            terminalreporter.write_line(f"report: {self._report_path}")

    @property
    def _report_path(self) -> Path:
        return self._settings.folder / "report.yaml"
