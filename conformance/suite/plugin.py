"""The pytest plugin (`-p conformance.suite.plugin --conformance-run FILE`): select tests, provide their fixtures, and
record their outcomes in the ledger.

Invariant: a test that has ended leaves an outcome for every id that it declares, or a harness error.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import threading
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Literal

import pytest

from conformance import disk, invariants, regular
from conformance.cluster import pace
from conformance.errors import HarnessError, UsageError
from conformance.grove import refusals
from conformance.history.query import Withheld
from conformance.suite import hooks, settings
from conformance.suite.environment import Environment, GivenUp, MakeEnvironment, RunningTest
from conformance.suite.outcomes import ledger
from conformance.suite.outcomes.checks import Blocked, CheckFailed, Checks
from conformance.suite.registry import requirement
from conformance.suite.registry.selection import not_claimed, scope
from conformance.suite.scenes import repeated, sole_writer
from conformance.suite.scenes.playing import (
    REPETITION,
    Scenes,
    decisive_first,
    grouped_by_scene,
    key_of,
    lone_scenes,
    lone_scenes_last,
    scene_of,
)
from conformance.suite.scenes.recorded import Recorded
from conformance.suite.scenes.scene import RUN, AttributeNotSet, Scene, scenes_of
from conformance.suite.session import collected, other_workers, outputs, shards

NAME = "conformance-judge"
CHANNEL, SETTINGS = "conformance_channel", "conformance_settings"
"""The keys of a worker's input at its start: its channel to the controlling process, and the settings as they were
first written to `run.json`."""

STACKS_SIGNAL = signal.SIGUSR1
"""The signal on which a worker appends the stacks of its threads to the log of the run."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that makes pytest a conformance run."""
    parser.getgroup("conformance").addoption(
        "--conformance-run",
        metavar="FILE",
        default="",
        help="run.json of a run; `grove-conformance run` writes it, and starts pytest with it",
    )


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the plugin's own hook."""
    pluginmanager.add_hookspecs(hooks)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and the judge if this is a conformance run."""
    config.addinivalue_line("markers", f"{requirement.MARK}(*ids): the requirements that a conformance test judges")
    if file := config.getoption("conformance_run"):
        settings_json = getattr(config, "workerinput", {}).get(SETTINGS) or Path(file).read_bytes()
        run = settings.decoded(settings_json)
        pace.stretch(run.time_scale)
        config.pluginmanager.register(Judge(config, run), NAME)


@pytest.fixture
def case(request: pytest.FixtureRequest) -> Iterator[object]:
    """Yield the environment of a conformance test that has its own: namespace, nodes, history and checks."""
    judge = request.config.pluginmanager.get_plugin(NAME)
    if not isinstance(judge, Judge):
        raise pytest.UsageError("conformance tests are started by `grove-conformance run`")
    with judge.environment().play(judge.running) as environment:
        yield environment


@pytest.fixture
def run(request: pytest.FixtureRequest) -> Iterator[object]:
    """Yield the recording of the scene that a conformance test judges (`run: Recorded[ThatScene]`)."""
    judge = request.config.pluginmanager.get_plugin(NAME)
    if not isinstance(judge, Judge):
        raise pytest.UsageError("conformance tests are started by `grove-conformance run`")
    try:
        yield judge.recorded(request.node)
    finally:
        judge.scenes.keep(judge.running, judge.run.keep_passed)


class Judge:
    """The plugin's state in one process: the controller of a distributed run, a worker, or the only process."""

    def __init__(self, config: pytest.Config, run: settings.RunSettings) -> None:
        self.config, self.run = config, run
        self.registry = requirement.load(Path(run.registry))
        self._tests = Path(run.tests).resolve()
        self.collected: dict[str, tuple[str, ...]] = {}
        self.selected: dict[str, tuple[str, ...]] = {}
        self.judged_ids: frozenset[str] = frozenset()
        self.elsewhere: Mapping[str, int] = {}
        """Invariant → how many more tests would judge it, in scenes that the selection leaves out."""
        self.groups: dict[str, str] = {}
        """Node id → the key by which tests are grouped on one worker: their scene."""
        self.lone_groups: frozenset[str] = frozenset()
        """The groups whose scenes are played alone."""
        self._shard_problem = ""
        self._items: list[pytest.Item] = []
        self._failed_ids: set[str] = set()
        self._running: RunningTest | None = None
        self._environment: Environment | None = None
        self._environment_error: Exception | None = None
        worker_input = getattr(config, "workerinput", {})
        self.worker, self._channel = str(worker_input.get("workerid", "main")), worker_input.get(CHANNEL)
        self._ledger: ledger.Ledger | None = None
        self._scenes: Scenes | None = None
        self._recorded: Recorded[Scene] | None = None
        if self._channel is not None:
            self.begin(self._channel.send)
            self._redirect_standard_error()
            self._register_stack_dumps()

    def begin(self, send: Callable[[bytes], object]) -> None:
        """Judge in this process, and send its events with `send`."""
        self._ledger = ledger.Ledger(send)
        self._ledger.write(ledger.WorkerStarted(worker=self.worker, pid=os.getpid()))
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, _interrupt)
            if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
                signal.signal(signal.SIGHUP, _interrupt)

    def name(self, item: pytest.Item) -> str:
        """Return the name of a test: its node id relative to the folder of the tests, independent of pytest's root
        folder."""
        relative_path = item.path.relative_to(self._tests).as_posix() if item.path.is_relative_to(self._tests) else ""
        return f"{relative_path}::{item.nodeid.partition('::')[2]}" if relative_path else item.nodeid

    @property
    def running(self) -> RunningTest:
        """Return the running test."""
        assert self._running is not None
        return self._running

    @property
    def scenes(self) -> Scenes:
        """Return the scenes that this worker plays."""
        if self._scenes is None:
            assert self._ledger is not None
            run, requirements = self.run, self.registry.requirements
            claimed_ids = {
                id
                for id in requirements
                if not not_claimed(requirements[id], run.roles, run.features, run.kubernetes, run.release)
            }
            judged_ids = [rule.id for rule in invariants.rules() if rule.id in claimed_ids]
            self._scenes = Scenes(
                self.environment,
                self._ledger,
                self.worker,
                judged_ids,
                partial(other_workers.wait_until_ended, self._channel),
                run.shared,
            )
        return self._scenes

    def recorded(self, item: pytest.Item) -> Recorded[Scene]:
        """Return the recording of the scene that a test judges."""
        key, scene = self.groups[item.nodeid], scene_of(item)
        assert scene is not None
        tests = [item for item in self._items if self.groups[item.nodeid] == key]
        judged_ids = {id for test in tests for id in self.selected[test.nodeid]}
        decisive_ids = (self.judged_ids & judged_ids) - self._failed_ids if self.run.fail_fast else frozenset()
        reaches = requirement.reaches(item)
        self._recorded = self.scenes.recorded(key, scene, self.running, judged_ids, tests, decisive_ids, reaches)
        return self._recorded

    def environment(self) -> Environment:
        """Return the worker's environment, which is opened at the first call. A failed attempt to open it is not
        repeated."""
        if self._environment_error is not None:
            raise self._environment_error
        if self._environment is None:
            opener: MakeEnvironment | None = self.config.hook.pytest_conformance_environment(config=self.config)
            assert self._ledger is not None
            try:
                self._environment = (opener or _cluster_opener(self._channel))(self.run, self.worker, self._ledger)
            except Exception as error:
                self._environment_error = error
                raise
        return self._environment

    # -- collection ----------------------------------------------------------------------------------------------

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Parametrize a test by the scenes that it judges and by the repetitions of the run."""
        scenes = scenes_of(metafunc.function)
        if len(scenes) > 1:
            metafunc.parametrize(RUN, scenes, indirect=True, ids=[scene.__name__ for scene in scenes])
        if self.run.repeat > 1 and not {"case", RUN}.isdisjoint(metafunc.fixturenames):
            metafunc.fixturenames.append(REPETITION)
            metafunc.parametrize(REPETITION, range(self.run.repeat), ids=repeated.marks(self.run.repeat))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, object, object]:
        """Select the tests of the run from the tests that pytest's own options leave."""
        self.collected = {item.nodeid: requirement.declared(item) for item in items}
        result = yield
        run = self.run
        selection = scope(
            self.registry,
            run.profiles,
            run.ids,
            run.roles,
            run.features,
            run.kubernetes,
            run.release,
            skip=run.skip,
            everywhere=run.with_invariants or bool(run.only),
        )
        named_items = [item for item in items if not run.only or repeated.named(self.name(item), run.repeat, run.only)]
        groups = {item.nodeid: key_of(item, run.repeat, self._tests) for item in named_items}
        tests = selection.tests({test: self.collected[test] for test in groups}, groups)
        shard_tests = frozenset(run.part) or self._shard({test: groups[test] for test in tests.selected})
        kept_items = [item for item in named_items if item.nodeid in tests.selected & shard_tests]
        selected_ids = {item.nodeid for item in kept_items}
        if deselected_items := [item for item in items if item.nodeid not in selected_ids]:
            config.hook.pytest_deselected(items=deselected_items)
        self.selected = {item.nodeid: self.collected[item.nodeid] for item in kept_items}
        self.judged_ids, self.elsewhere = selection.judged, tests.elsewhere
        self.groups = {item.nodeid: groups[item.nodeid] for item in kept_items}
        ordered_items = decisive_first(kept_items, self.collected, self.judged_ids) if run.fail_fast else kept_items
        self.lone_groups = lone_scenes(kept_items, self.groups, run.shared)
        items[:] = self._items = grouped_by_scene(lone_scenes_last(ordered_items, run.shared), self.groups)
        if self._shard_problem and self._channel is None:  # a worker that raised this error would be restarted
            raise pytest.UsageError(self._shard_problem)
        return result

    def _shard(self, groups: Mapping[str, str]) -> frozenset[str]:
        """Return the tests of the shard in a session of the user's own pytest; without a shard, return all tests. (The
        tests of a shard of the command `run` are in the settings.) Return nothing if the shard is invalid."""
        if not (self.run.hosted and self.run.shard):
            return frozenset(groups)
        try:
            return shards.part(groups, shards.parse(self.run.shard), self.run.repeat, "--grove-shard")
        except UsageError as error:
            self._shard_problem = str(error)
            return frozenset()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Send the collection to a controlling process that has not collected the tests itself, before it distributes
        them."""
        self._items = list(session.items)
        if self.run.hosted and self._channel is not None:
            self._channel.send(collected.encoded(self.collection()))

    def collection(self) -> collected.Collected:
        """Return the collected tests that will run."""
        plan = {self.name(item): self.collected[item.nodeid] for item in self._items}
        groups = {item.nodeid: self.groups[item.nodeid] for item in self._items}
        lone_groups = tuple(sorted(self.lone_groups.intersection(groups.values())))
        return collected.Collected(plan, groups, lone_groups, dict(self.elsewhere), self._shard_problem)

    # -- one test ------------------------------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """Run a test and record its outcome."""
        assert self._ledger is not None
        ids = requirement.declared(item)
        selected = self.judged_ids & set(ids)
        decisive_ids = selected if self.run.fail_fast else frozenset()
        self._recorded = None
        name = self.name(item)
        self._running = running = RunningTest(name, Checks(name, ids, self._ledger.write, decisive_ids, selected))
        if self._is_spared(item):
            result = yield
            self._clean_up_scene(nextitem)
            return result
        self._ledger.write(ledger.TestStarted(test=running.test, ids=ids, worker=self.worker))
        try:
            result = yield
        except BaseException as error:
            running.problem = error
            self._finish(running)
            raise
        self._finish(running)
        self._clean_up_scene(nextitem)
        return result

    def _clean_up_scene(self, item: pytest.Item | None) -> None:
        """Clean up the scene after the last of its tests."""
        if self._scenes is not None:
            self._scenes.close("" if item is None else self.groups[item.nodeid])

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Skip a test whose selected requirements have all already failed (--fail-fast)."""
        if self._is_spared(item):
            pytest.skip("all selected requirements have failed already")

    def _is_spared(self, item: pytest.Item) -> bool:
        """Return whether this is a run with --fail-fast and all selected requirements of the test have already
        failed."""
        return self.run.fail_fast and self.judged_ids & set(requirement.declared(item)) <= self._failed_ids

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Run the test, then judge its invariants and finish its checks."""
        try:
            try:
                result = yield
                if self._recorded is not None:
                    self._recorded.judge_reaches()
            except AttributeNotSet:
                if self.running.scene_ended_by and self._recorded is not None:
                    self._recorded.unreached()
                raise
        except CheckFailed:
            last_failure = self.running.checks.failures[-1]
            self.running.ended_by = f"{last_failure.id} failed ({last_failure.what})"
            self.running.at_end(False)
            raise
        except Blocked:
            raise
        except AssertionError as error:  # a bug of the test, not a failure of the implementation
            first_line = str(error).partition("\n")[0]
            raise HarnessError(f"a bare assert failed: {first_line} (use case.expect or run.expect)") from error
        self.running.at_end(True)
        if self.running.foreign:
            self.running.checks.spoil(sole_writer.ONLY, self.running.foreign)
        self.running.checks.finish()
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Record the durations and the exception of a test."""
        error = call.excinfo.value if call.excinfo else None
        outputs.redact(error)
        report = yield
        running = self.running
        running.seconds[call.when] = round(call.duration, 3)
        if error is not None and (running.problem is None or isinstance(running.problem, CheckFailed)):
            running.problem = error
        outputs.describe(report, error, self._limit(running), self._expected(running))
        if report.failed and self.run.keep_cluster:
            running.keep_objects = True
            if self._scenes is not None:
                self._scenes.keep_objects()
        return report

    def _finish(self, running: RunningTest) -> None:
        assert self._ledger is not None
        self._failed_ids |= {check.id for check in running.checks.recorded if check.outcome == "failed"}
        outcome, reason, cause = _outcome(running)
        if self._limit(running) is not None:
            outcome = "known-limit"
        if outcome == "harness-error":
            log = str(self.run.log)
            final = self._environment_error is not None or isinstance(running.problem, GivenUp)
            self._ledger.write(
                ledger.HarnessFault(worker=self.worker, what=reason, test=running.test, log=log, final=final)
            )
        bundle = os.path.relpath(running.bundle, self.run.folder) if running.bundle else ""
        self._ledger.write(
            ledger.TestFinished(
                test=running.test,
                outcome=outcome,
                worker=self.worker,
                reason=reason,
                cause=cause,
                ended_by=_ended_by(running),
                seconds=running.seconds,
                bundle=bundle,
                namespace=running.namespace,
                scene=running.scene,
                removed=running.removed,
            )
        )

    def _limit(self, running: RunningTest) -> requirement.Limit | None:
        """Return a known limit of the specification if a test has failed only because of such limits; otherwise
        None."""
        failed_ids = {check.id for check in running.checks.recorded if check.outcome == "failed"}
        limits = [self.registry.requirements[id].limit for id in sorted(failed_ids) if id in self.registry.requirements]
        return limits[0] if isinstance(running.problem, CheckFailed) and limits and all(limits) else None

    def _expected(self, running: RunningTest) -> str:
        """Return the reasons why a failed test was expected to fail; empty if not all of its failures were expected."""
        failed_ids = {check.id for check in running.checks.recorded if check.outcome == "failed"}
        if not isinstance(running.problem, CheckFailed) or not failed_ids or not failed_ids <= self.run.expected.keys():
            return ""
        return "; ".join(dict.fromkeys(self.run.expected[id] for id in sorted(failed_ids)))

    # -- the end -------------------------------------------------------------------------------------------------

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Close the environment before pytest ends."""
        self._close()

    def pytest_unconfigure(self) -> None:
        """Send the event that this worker has ended."""
        self._close()
        if self._ledger is not None:
            self._ledger.write(ledger.WorkerEnded(worker=self.worker))

    def _close(self) -> None:
        if self._scenes is not None:
            self._scenes.abandon()
        if self._environment is not None:
            self._close_environment()

    def _close_environment(self) -> None:
        assert self._environment is not None
        # Nothing may interrupt the cleanup: a user who cannot wait can use SIGKILL and `cluster prune`.
        if threading.current_thread() is threading.main_thread():
            for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(signal_number, signal.SIG_IGN)
        environment, self._environment = self._environment, None
        try:
            environment.close()
        except Exception as error:
            assert self._ledger is not None
            fault = f"clearing up failed: {error}"
            self._ledger.write(
                ledger.HarnessFault(worker=self.worker, what=fault, log=str(self.run.log), clearing=True)
            )
            traceback.print_exc()

    def _register_stack_dumps(self) -> None:
        with contextlib.suppress(OSError):
            self._log = regular.open_file(self.run.log, "ab")  # stays open for the signal
            faulthandler.register(STACKS_SIGNAL, self._log, all_threads=True)

    def _redirect_standard_error(self) -> None:
        """Redirect a worker's standard error to a file, for its last messages (such as a broken pipe to a controller
        that is gone)."""
        with (
            contextlib.suppress(OSError),
            regular.open_file(self.run.folder / f"worker-{self.worker}.log", "ab") as file,
        ):
            os.dup2(file.fileno(), 2)


def _outcome(
    running: RunningTest,
) -> tuple[Literal["passed", "failed", "known-limit", "blocked", "harness-error", "interrupted"], str, ledger.Cause]:
    """Return the outcome of a test, the reason, and the cause if the test is blocked."""
    error = running.problem
    match error:
        case None:
            return "passed", "", ""
        case CheckFailed():
            return "failed", str(error), ""
        case Blocked():
            return "blocked", error.reason, error.cause
        case pytest.skip.Exception():
            return "blocked", str(error), "circumstances"
        case KeyboardInterrupt() | SystemExit() | pytest.exit.Exception():
            return "interrupted", "interrupted", ""
        case Withheld() if refusals.by_webhook(str(error)):
            return "blocked", str(error), "implementation"
        case HarnessError() if violation := running.violation():
            return "blocked", f"{violation}, and then: {error}", "implementation"
        case HarnessError():
            return "harness-error", str(error), ""
        case OSError() if error.errno in disk.USER_ERRORS:
            return "harness-error", f"{error.filename or 'a file'} cannot be written: {error.strerror}: make room", ""
        case _:
            return "harness-error", f"{type(error).__name__}: {str(error).partition(chr(10))[0]}", ""


def _ended_by(running: RunningTest) -> str:
    """Return what ended a test early: a failed check or, if the test judges a scene and is blocked, the step that was
    not reached."""
    if isinstance(running.problem, Blocked) and running.scene:
        return running.problem.step or running.scene_ended_by
    return running.ended_by


def _cluster_opener(channel: other_workers.ControllerChannel | None) -> MakeEnvironment:
    from conformance.suite.session.worker import open_environment  # imported here: only runs with clusters need it

    return partial(open_environment, channel=channel)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt(f"signal {number}")
