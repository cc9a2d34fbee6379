"""One conformance run, from settings to an exit code: collect, start pytest, supervise it, judge, report.

pytest runs in this process, with xdist's workers as child processes. Its own output is in the run's `pytest.log`.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from types import FrameType

import pytest
from rich.console import Console

from conformance.errors import Exit, HarnessError, UsageError
from conformance.report import allure, document, evidence, junit, model, page, terminal
from conformance.report.progress import Progress
from conformance.report.time_left import TimeLeft
from conformance.run import pytest_options
from conformance.run.watch import Watch, sweep
from conformance.run.watchdog import Watchdog
from conformance.suite import plugin
from conformance.suite.outcomes import ledger
from conformance.suite.outcomes.ledger_file import RunLedger
from conformance.suite.registry import requirement
from conformance.suite.session import shards
from conformance.suite.settings import RunSettings

CONFIGURATION = Path(__file__).parent / "pytest.ini"


@dataclass(frozen=True)
class LaunchPlan:
    """The tests of a run with the requirement ids that they declare: all collected tests, and the selected ones."""

    collected: Mapping[str, tuple[str, ...]]
    selected: Mapping[str, tuple[str, ...]]
    groups: Mapping[str, str] = field(default_factory=dict)
    """Maps a test to its scene; one worker runs all tests of a scene."""
    exclusive_groups: frozenset[str] = frozenset()
    """The groups whose scenes are played alone, after all other scenes."""
    elsewhere: Mapping[str, int] = field(default_factory=dict)
    """Maps an invariant to the number of additional tests that would judge it, in scenes that are not selected."""

    def part(self, tests: Set[str]) -> LaunchPlan:
        """Return the plan reduced to these tests."""
        groups = {test: group for test, group in self.groups.items() if test in tests}
        return replace(
            self,
            selected={test: ids for test, ids in self.selected.items() if test in tests},
            groups=groups,
            exclusive_groups=self.exclusive_groups.intersection(groups.values()),
        )


def collect(settings: RunSettings) -> LaunchPlan:
    """Import the tests. Raises HarnessError if the tests or the registry are broken."""
    settings.save()
    collection_plugin = _CollectionPlugin()
    with _isolated_pytest(settings.log):
        status = pytest.main([*_arguments(settings, [settings.tests]), "--collect-only"], plugins=[collection_plugin])
    if settings.pytest_options and status == pytest.ExitCode.USAGE_ERROR:
        raise pytest_options.rejection_error(settings.log)
    if collection_plugin.judge is None or status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise HarnessError("the conformance tests cannot be collected", where=str(settings.log), hint="see the log")
    judge = collection_plugin.judge
    problems = requirement.problems(judge.registry, judge.collected)
    if problems:
        further_problems = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise HarnessError(problems[0] + further_problems, where=settings.registry)
    return LaunchPlan(judge.collected, judge.selected, judge.groups, judge.lone_groups, judge.elsewhere)


@contextlib.contextmanager
def remove_folder_on_error(settings: RunSettings) -> Iterator[None]:
    """Remove the folder of a run that ends with a UsageError before the run has started."""
    try:
        yield
    except UsageError:
        shutil.rmtree(settings.folder, ignore_errors=True)
        raise


def _limited_ids(settings: RunSettings) -> frozenset[str]:
    """Return the requirements with an accepted limit: a case in which the specification lets them not hold."""
    requirements = requirement.load(Path(settings.registry)).requirements.values()
    return frozenset(entry.id for entry in requirements if entry.limit is not None)


def run(
    settings: RunSettings,
    plan: LaunchPlan,
    implementation: ledger.Implementation,
    *,
    suite: tuple[str, str],
    environment: Mapping[str, str],
    console: Console,
    err: Console,
) -> Exit:
    """Run a plan and report the result. `suite` is the suite's version and digest. Unless a cluster is
    kept, nothing of the run is left behind."""
    settings.save()
    run_ledger = RunLedger(settings.ledger)
    start_time = time.time()
    run_ledger.write(
        ledger.RunStarted(
            run=settings.run,
            suite_version=suite[0],
            suite_digest=suite[1],
            implementation=implementation,
            profiles=settings.profiles,
            ids=settings.ids,
            skip=settings.skip,
            only=settings.only,
            shard=settings.shard,
            elsewhere=dict(plan.elsewhere),
            plan=tuple(ledger.PlannedTest(test, ids) for test, ids in sorted(plan.selected.items())),
            workers=settings.workers,
            time_scale=settings.time_scale,
            seed=settings.seed,
            repeat=settings.repeat,
            reproduce=settings.reproduce,
            environment=dict(environment),
        )
    )
    if plan.selected:
        watch = Watch(settings, run_ledger, plan.groups, plan.exclusive_groups)

        def conclude() -> int:
            run_ledger.write(ledger.RunFinished(interrupted=False, status=pytest.ExitCode.INTERNAL_ERROR))
            return _conclude(settings, run_ledger, console, err)

        with (
            _handle_stop_signals(err) as ignore_signals,
            _progress(settings, run_ledger, plan, err, start_time),
            _watchdog_of(settings, run_ledger, watch, conclude),
        ):
            status = _pytest(settings, plan, watch)
            ignore_signals()
            was_ended = watch.has_enough_failures or watch.is_stuck
            interrupted = watch.interrupted or (status == pytest.ExitCode.INTERRUPTED and not was_ended)
            sweep(settings, run_ledger)
        run_ledger.write(ledger.RunFinished(interrupted=interrupted, status=status))
    else:
        err.print("nothing to run: no test judges what was selected and is claimed", markup=False, highlight=False)
        run_ledger.write(ledger.RunFinished(interrupted=False, status=pytest.ExitCode.NO_TESTS_COLLECTED))
    return _conclude(settings, run_ledger, console, err)


def _conclude(settings: RunSettings, run_ledger: RunLedger, console: Console, err: Console) -> Exit:
    """Close the ledger of a finished run, judge the run and report the result."""
    run_ledger.close()
    path = settings.folder / "report.yaml"
    write_error: HarnessError | None = None
    with _ignore_stop_signals():
        report = model.judge(
            requirement.load(Path(settings.registry)),
            run_ledger.events(),
            datetime.now(UTC).date(),
        )
        try:
            content = write(path, report)
        except HarnessError as error:
            write_error, content = error, document.document(report)
    if settings.as_json:
        console.file.write(document.as_json(content))
        err.print(f"report: {path}", markup=False, highlight=False)
    else:
        terminal.show(report, path, console, verbose=settings.verbose)
    for event in run_ledger.events():
        if isinstance(event, ledger.ClusterKept):
            for line in _kept_cluster(event):
                err.print(line, markup=False)
    if write_error is not None:
        if report.exit is not Exit.NOT_CONFORMANT:
            raise write_error
        err.print(f"grove-conformance: {write_error}", markup=False, highlight=False)
    return report.exit


def _progress(
    settings: RunSettings, run_ledger: RunLedger, plan: LaunchPlan, err: Console, start_time: float
) -> AbstractContextManager[object]:
    """Return the context manager that shows the progress of a run; nothing is shown while the user interacts with
    pytest."""
    if pytest_options.is_interactive(settings.pytest_options):
        return contextlib.nullcontext()
    costs = shards.prices(plan.groups.values(), shards.costs(), settings.repeat)
    return Progress(
        run_ledger,
        len(plan.selected),
        err,
        start_time,
        known_limits=_limited_ids(settings),
        expected=frozenset(settings.expected),
        verbose=settings.verbose,
        time_left=TimeLeft(plan.groups, costs, plan.exclusive_groups, settings.workers),
    )


def _watchdog_of(
    settings: RunSettings, run_ledger: RunLedger, watch: Watch, conclude: Callable[[], int]
) -> AbstractContextManager[object]:
    """Return the context manager that ends a run in which nothing happens any more; it does nothing while the user
    interacts with pytest."""
    if pytest_options.is_interactive(settings.pytest_options):
        return contextlib.nullcontext()
    return Watchdog(settings, run_ledger, watch, conclude)


def _kept_cluster(event: ledger.ClusterKept) -> list[str]:
    """Return instructions for the use of a cluster that was kept."""
    return [
        f"cluster {event.cluster} was kept, with the namespace {event.namespace} of the test that failed:",
        f"  export KUBECONFIG={shlex.quote(event.kubeconfig)}",
        f"  grove-conformance cluster down {event.cluster}    # when you have seen enough",
    ]


def write(path: Path, report: model.Report) -> document.Document:
    """Write the report. The other result files are written first, because the report contains the digest of their list.
    Raises HarnessError if a file cannot be written."""
    document.validate(document.document(report))
    try:
        _write_result_files(path, report)
    finally:
        sums = evidence.checksum_list(path.parent)
        document.save(path.with_name(evidence.FILE), sums)
        content = document.write(path, report, evidence.digest(sums))
    return content


def _write_result_files(path: Path, report: model.Report) -> None:
    document.save(path.with_name("junit.xml"), junit.render(report))
    allure.write(path.with_name("allure"), report)
    text = StringIO()
    terminal.show(report, path, Console(file=text, width=120, highlight=False), verbose=True)
    document.save(path.with_name(terminal.TEXT), text.getvalue())
    document.save(path.with_name(terminal.PAGE), page.render(report, path.parent))


def _pytest(settings: RunSettings, plan: LaunchPlan, watch: Watch) -> int:
    """Run pytest to its end, however it ends, and return its exit status. Only files with selected tests are passed to
    pytest, so that the workers need not collect the others."""
    files = sorted({test.partition("::")[0] for test in plan.selected})
    arguments = _arguments(settings, [str(Path(settings.tests, file)) for file in files])
    if settings.until_fail or settings.keep_cluster:
        arguments += ["--maxfail", "1"]
    if settings.workers:
        arguments += ["-n", str(settings.workers), "--dist", "loadscope", "--max-worker-restart", "4"]
    try:
        with _isolated_pytest(None if pytest_options.is_interactive(settings.pytest_options) else settings.log):
            try:
                return int(pytest.main(arguments, plugins=[watch]))
            except KeyboardInterrupt:  # raised outside pytest's own session
                watch.interrupted = True
                return int(pytest.ExitCode.INTERRUPTED)
            except SystemExit as end:
                return int(end.code) if isinstance(end.code, int) else int(pytest.ExitCode.INTERNAL_ERROR)
    except OSError as error:  # from the log: the last lines are written by pytest, or when the file is closed
        watch.record_fault(f"{settings.log} cannot be written: {error.strerror}: make room, or make it writable")
        return int(pytest.ExitCode.INTERNAL_ERROR)


def _arguments(settings: RunSettings, paths: Sequence[str]) -> list[str]:
    return [
        *paths,
        *("-c", str(CONFIGURATION), "--rootdir", settings.tests),
        *("-p", plugin.__name__, "-p", "xdist.plugin", "-p", "no:cacheprovider"),
        # The plugin collects garbage repeatedly at the end of a session to emit warnings on which no verdict depends.
        *("-p", "no:unraisableexception"),
        # Texts of failed checks are recorded elsewhere. For other exceptions, Python's own traceback is good enough and
        # takes a tenth of the time.
        *("--capture=sys", "--import-mode=importlib", "-q", "--tb=native"),
        *("--conformance-run", str(settings.folder / "run.json")),
        *settings.pytest_options,
    ]


class _CollectionPlugin:
    """Keeps the judge plugin of a collection."""

    judge: plugin.Judge | None = None

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        judge = session.config.pluginmanager.get_plugin(plugin.NAME)
        assert isinstance(judge, plugin.Judge)
        self.judge = judge


@contextlib.contextmanager
def _isolated_pytest(log: Path | None) -> Iterator[None]:
    """Run pytest in the same way for every user: with its output in `log`, if one is given, and without the user's
    plugins and options. This applies to workers as well."""
    environment = dict(os.environ)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.environ.pop("PYTEST_ADDOPTS", None)
    try:
        with _redirect_output(log) if log is not None else contextlib.nullcontext():
            yield
    finally:
        for name in ("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "PYTEST_ADDOPTS"):
            os.environ.pop(name, None)
            if name in environment:
                os.environ[name] = environment[name]


@contextlib.contextmanager
def _redirect_output(log: Path) -> Iterator[None]:
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        log.open("a", encoding="utf-8") as file,
        contextlib.redirect_stdout(file),
        contextlib.redirect_stderr(file),
    ):
        yield


@contextlib.contextmanager
def _handle_stop_signals(err: Console) -> Iterator[Callable[[], None]]:
    """Let SIGINT and SIGTERM stop the run once, and SIGHUP (the terminal was closed) unless it is ignored. During the
    cleanup, additional signals only print a message. After a call of the yielded function, every signal does."""
    is_stopping = False

    def ignore_signals() -> None:
        nonlocal is_stopping
        is_stopping = True

    def stop(number: int, frame: FrameType | None) -> None:
        if is_stopping:
            err.print("stopping: clusters are being taken down", markup=False, highlight=False)
            return
        ignore_signals()
        raise KeyboardInterrupt

    with _on_signals(stop):
        yield ignore_signals


def _ignore_stop_signals() -> AbstractContextManager[None]:
    """Ignore signals, so that they cannot keep the report from being written: the run ends right afterwards anyway."""
    return _on_signals(lambda number, frame: None)


@contextlib.contextmanager
def _on_signals(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Install a handler for the signals that stop a run, if this is the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    former_handlers = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, former_handler in former_handlers.items():
            signal.signal(number, former_handler)
