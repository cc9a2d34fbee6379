"""The real environment: one cluster with one implementation for each worker, and a namespace and a node pool for each
test.

Invariant: however a worker ends, everything that it opened is closed in reverse order; after SIGKILL, `sweep` takes the
clusters down.
"""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import cast

import msgspec

from conformance import disk, invariants
from conformance.cluster import outages, pace, policies
from conformance.cluster.audit import AuditLog, AuditTail
from conformance.cluster.audit_losses import AuditLosses
from conformance.cluster.controlplane import Cluster, list_clusters
from conformance.cluster.nodes import POOL
from conformance.cluster.outages import Outage, Watcher
from conformance.cluster.settings import ClusterSettings, LoggedReads
from conformance.errors import ClusterTooSlow, HarnessError, SupervisorLost, UsageError
from conformance.evidence import bundle
from conformance.grove import refusals
from conformance.history import redaction
from conformance.history.query import History
from conformance.history.recorder import Recorder
from conformance.implementation import deployment, discovery, loading, role_process, scheduler_names, succession
from conformance.implementation.descriptor import Descriptor, Role
from conformance.implementation.driver import ClusterFacts, Driver, NotStarted
from conformance.implementation.fields import Process
from conformance.implementation.process import responds
from conformance.suite.environment import GivenUp, RunningTest, folder_name, randomness, short_name
from conformance.suite.outcomes.checks import Blocked
from conformance.suite.outcomes.ledger import Check, ClusterKept, HarnessFault, Ledger, Phase
from conformance.suite.registry import requirement
from conformance.suite.registry.selection import not_claimed
from conformance.suite.scenes import interference
from conformance.suite.scenes.api import Api, Loop, is_admission_error, words
from conformance.suite.scenes.case import Case
from conformance.suite.scenes.machine import Machine
from conformance.suite.scenes.silence import Silence
from conformance.suite.scenes.wait_budget import WaitBudget
from conformance.suite.session import cpu, existing, new_kinds, policy_objects, scene_objects, shared, watched
from conformance.suite.session.mutators import Mutators
from conformance.suite.session.other_workers import ControllerChannel, wait_until_ended
from conformance.suite.session.removed_webhooks import removed
from conformance.suite.settings import RunSettings
from kube import config
from kube.errors import ApiError

POD_COMPONENTS = ("kube-scheduler", "kube-controller-manager", "kwok-controller")
"""Components of a cluster whose logs are kept in failure bundles."""

RECOVERY_SECONDS = 30.0
"""Seconds after which a continuing outage means that the cluster is broken."""
SECONDS_BEFORE_VIOLATION = 15.0
"""Seconds before a violation during which slowness of the machine may have caused it."""
MAX_NAMESPACE_FAILURES = 3
"""Number of consecutive failures to create a namespace after which a worker gives up."""
MAX_CLUSTERS = 2
"""Maximum number of clusters that a worker starts before it gives up."""


def open_environment(
    settings: RunSettings, worker: str, ledger: Ledger, channel: ControllerChannel | None = None
) -> ClusterEnvironment:
    """Start everything, or attach to what another worker has started. `channel` leads to the controlling process.
    Raises HarnessError if the cluster fails, or Blocked if the implementation cannot be installed."""
    return ClusterEnvironment(settings, worker, ledger, channel)


def sweep(run: str, worker: str = "") -> list[str]:
    """Take down the remaining clusters of a run, or only of one of its workers, and return their names."""
    names = []
    for cluster in list_clusters():
        if cluster.record.owner is None:
            continue  # the cluster was kept for inspection
        if cluster.name == f"{run}-{worker}" or (not worker and cluster.name.startswith(f"{run}-")):
            cluster.down()
            names.append(cluster.name)
    return names


def load_implementation(settings: RunSettings) -> tuple[Descriptor, Descriptor | None]:
    """Return the judged implementation, and the implementation that supplies the roles that it does not play, if any.
    Raises UsageError if a descriptor is invalid."""
    judged = loading.load(settings.implementation, settings.parameters)
    if settings.earlier:
        options = ("--from", "--from-set")
        earlier = loading.load(settings.earlier, settings.earlier_parameters, options=options)
        judged = succession.take_over(judged, earlier)
    kubeconfig = settings.kubeconfig if settings.cluster == "existing" else ""
    judged = discovery.complete(judged, kubeconfig)
    supplied = deployment.supplier_of(judged)
    if supplied and not judged.line:
        completed_supplier = discovery.complete(supplied, kubeconfig)
        judged = msgspec.structs.replace(judged, line=completed_supplier.line, release=completed_supplier.release)
    scale = max(1.0, settings.time_scale)  # a time scale below 1 does not make processes start faster
    return _with_scaled_timeouts(judged, scale), supplied and _with_scaled_timeouts(supplied, scale)


class ClusterEnvironment:
    """A cluster (its own or an existing one), a driver, a recorder, an API client; see `Environment`."""

    _hooks: frozenset[str] = frozenset()
    """The webhooks and policies that the cluster had before the implementation."""
    _audit: AuditLog | None = None
    """The audit log of the cluster; None before there is a cluster, or if the suite cannot read one."""
    _policies = policies.NO_POLICIES
    """The policies that a cluster of the run enforces."""

    def __init__(
        self, settings: RunSettings, worker: str, ledger: Ledger, channel: ControllerChannel | None = None
    ) -> None:
        self._settings, self._worker, self._ledger = settings, worker, ledger
        self._channel = channel if settings.shared else None
        """The channel to the controlling process, if several workers share the cluster."""
        self._stack = ExitStack()
        self._registry = requirement.load(Path(settings.registry))
        self._wait_budget = WaitBudget(settings.roles)
        self._clusters = 0
        self._broken_outage: Outage | None = None
        self._refusal: GivenUp | Blocked | None = None
        """The reason why no more tests can be played, if any."""
        self._namespace_failures = 0
        """The number of consecutive failures to create a namespace."""
        self._kept_namespace = ""
        """The namespace of the failed test for which the cluster is kept; empty if there is none."""
        self._mutators: Callable[[], str] = lambda: ""
        self._reopen()

    def close(self) -> None:
        """Close everything in reverse order."""
        if self._channel is not None and self._worker == shared.FIRST_WORKER:
            wait_until_ended(self._channel)  # the other workers use what this worker has started
        self._stack.close()

    def _reopen(self) -> None:
        try:
            self._open()
        except BaseException as error:
            self._announce(
                shared.RunningImplementation(problem=f"the first worker could not start the implementation: {error}")
            )
            violation = self._violation() if isinstance(error, HarnessError) else ""
            self._stack.close()
            if violation:
                raise Blocked(f"{violation}, and then: {error}", "implementation") from error
            raise

    def _violation(self) -> str:
        """Return a message about the first forbidden mutator, or about a write that the audit log has lost; empty if
        there is neither, or if the audit log cannot be read."""
        try:
            return self._mutators()
        except HarnessError:
            return ""

    def _announce(self, running: shared.RunningImplementation) -> None:
        """Tell the other workers which implementation is running, if this is the worker that starts it for them."""
        if self._channel is not None and self._worker == shared.FIRST_WORKER:
            self._channel.send(shared.encoded(running))

    def _open(self) -> None:
        self._clusters, self._mutators = self._clusters + 1, lambda: ""
        self._loop = Loop()
        self._stack.callback(self._loop.close)
        judged, supplied = load_implementation(self._settings)
        starts_cluster = self._settings.cluster != "existing"
        cluster = self._cluster = (
            self._start_cluster(scheduler_names.kube_scheduler_name(judged, supplied)) if starts_cluster else None
        )
        facts = deployment.facts_of(cluster) if cluster else self._attach_to_cluster(judged.start == "processes")
        is_attached = self._channel is not None and self._worker != shared.FIRST_WORKER
        if is_attached:
            self._report_phase("waiting for the first worker to start the implementation")
            assert self._channel is not None
            self.driver = cast(Driver, shared.Attached(judged, supplied, self._channel))
        else:
            self._report_phase("installing CRDs and webhooks")
            self.driver = driver = Driver(judged, facts, supplied)
            self._stack.callback(self._end_processes, driver)
            self._run_driver_step("install", driver.install)
        for role in Role:
            self._watcher.add_process(f"the {role}", partial(self.driver.find_suspension, role))
        # Files are read before the implementation starts, because the implementation could change them.
        self._kubeconfig, self._server = facts.kubeconfig, config.load(facts.kubeconfig)
        fake_cluster = self._fake_cluster = cluster or existing.own_cluster(facts.kubeconfig)
        self._audit = AuditLog.of(fake_cluster) if fake_cluster else None
        if fake_cluster and self._audit is not None:
            losses = AuditLosses(fake_cluster.monitor.log("kube-apiserver"))
            self._mutators = Mutators(self._audit, 0 if cluster else self._audit.mark(), judged, losses).violation
        api = Api(self._loop, self._server, "grove-conformance/suite")
        self._served = api.served
        self._stack.callback(api.close)
        if not is_attached:
            self._report_phase("waiting for the garbage collector")
            if new_kinds.learn(fake_cluster, api):
                self._watcher.check()  # so that the restart is noticed now, and not mistaken for an outage later
            self._report_phase(f"starting {judged.name}")
            self._run_driver_step("start", self.driver.start)
            self._announce(shared.RunningImplementation.of(self.driver))
            if supplied is not None:
                pages = self.driver.supplied_pages
                self._watcher.time(f"the supplied {supplied.name}", lambda: [responds(page) for page in pages()])
        self._report_phase("recording")
        recorded = watched.resources(judged, api)
        unrecorded = watched.unrecorded(recorded) if cluster else None
        self._recorder = Recorder(self._server, "grove-conformance/recorder", recorded, unrecorded)
        self._stack.callback(self._recorder.stop)
        self._recorder.start(pace.patience(60))
        self._report_phase("ready")

    def _start_cluster(self, scheduler_name: str) -> Cluster:
        def take_down() -> None:
            if self._kept_namespace:
                self._release(cluster)
                return
            self._report_phase("taking the cluster down")
            cluster.down()
            self._report_phase("down")

        self._report_phase("bringing the cluster up")
        name = f"{self._settings.run}-{self._worker}"
        settings = ClusterSettings(
            scheduler_name=scheduler_name,
            reads=LoggedReads.IMPLEMENTATIONS,
            kubernetes=self._settings.kubernetes,
            features=self._settings.cluster_features,
            policies=policies.load(self._settings.policies),
        )
        phase = partial(self._report_phase, "bringing the cluster up")
        try:
            cluster = Cluster.up(name, settings=settings, owner=True, report=lambda *step: phase(": ".join(step)))
        except UsageError as error:  # a component lacks a feature, or exits with it
            raise HarnessError(error.what, where=error.where, hint=error.hint) from error
        self._stack.callback(take_down)
        deployment.install_policies(cluster, settings.policies, lambda *step: phase(": ".join(step)))
        self._policies, self._hooks = settings.policies, settings.policies.hook_names
        self._start_watcher(outages.watch(cluster, self._settings.time_scale))
        return cluster

    def _end_processes(self, driver: Driver) -> None:
        """Stop the implementation, or leave it running if the cluster is kept."""
        if not self._kept_namespace:
            driver.stop()
            return
        assert self._cluster is not None
        deployment.hand_over(driver, self._cluster)

    def _release(self, cluster: Cluster) -> None:
        """Release the cluster for inspection."""
        cluster.release()
        self._ledger.write(
            ClusterKept(
                worker=self._worker,
                cluster=cluster.name,
                kubeconfig=str(cluster.kubeconfig),
                namespace=self._kept_namespace,
            )
        )

    def _attach_to_cluster(self, starts_implementation: bool) -> ClusterFacts:
        """Attach to an existing cluster. If the run starts the implementation, webhooks that already exist do not
        belong to it."""
        self._report_phase("looking at the existing cluster")
        kubeconfig = Path(self._settings.kubeconfig)
        api = Api(self._loop, kubeconfig, "grove-conformance/suite")
        self._stack.callback(api.close)
        existing.check(kubeconfig, api)
        if self._channel is None or self._worker == shared.FIRST_WORKER:
            existing.keep_webhooks(api, self._stack)
        if starts_implementation:
            self._hooks = existing.hooks(api)
        self._start_watcher(existing.watcher(kubeconfig, api, self._settings.time_scale, self._settings.simulator))
        return existing.facts(kubeconfig, self._settings.folder / "cluster", self._settings.run, self._stack)

    def _start_watcher(self, watcher: Watcher) -> None:
        self._watcher = watcher
        watcher.start()
        self._stack.callback(watcher.stop)

    def _require_healthy(self, start: float, thoroughly: bool) -> None:
        """Raise HarnessError if the cluster or the suite itself did not work at some time since `start`, or if a
        process of the implementation was stopped or killed from outside."""
        outages_since = self._watcher.settled if thoroughly else self._watcher.overlapping
        if outages := outages_since(start):
            raise HarnessError(outages[0].reason)
        if thoroughly:
            try:
                role_process.require_not_killed(self.driver.failures(), start)
            except HarnessError as error:
                raise HarnessError(str(redaction.value(self._keep_logs(str(error))))) from error

    def _lasting_outage(self) -> Outage | None:
        """Return the outage that has not ended in time, which means that the cluster is broken; None if there is
        none."""
        if self._broken_outage is None:
            lasting_outages = self._watcher.wait_until_over(pace.patience(RECOVERY_SECONDS))
            self._broken_outage = lasting_outages[0] if lasting_outages else None
        return self._broken_outage

    def _replace(self, broken: Outage) -> None:
        """Replace a broken cluster by a new one. Raises GivenUp if that is impossible."""
        if self._cluster is None or self._clusters >= MAX_CLUSTERS:
            times, hint = "", "start it again"
            if self._cluster is not None:
                times, hint = f"; {self._clusters} clusters broke", "has the machine run out of memory?"
            raise GivenUp(f"given up: {broken.reason}{times}", hint=hint)
        self._report_phase("replacing the broken cluster")
        self._stack.close()
        self._broken_outage = None
        try:
            self._reopen()
        except (HarnessError, Blocked) as error:
            raise GivenUp(f"given up: no new cluster: {error}") from error

    def _run_driver_step(self, step: str, action: Callable[[], None]) -> None:
        """Run a step of the driver. An error is the implementation's fault, unless the cluster is unhealthy or too
        slow, or another implementation supplies the role. Raises GivenUp if a process is running but not ready in
        time."""
        start = time.monotonic()
        try:
            action()
        except (ClusterTooSlow, SupervisorLost) as error:
            raise GivenUp(f"given up: {error}") from error
        except (HarnessError, UsageError) as error:
            self._require_healthy(start, True)
            text = str(redaction.value(self._keep_logs(str(error))))
            judged = self.driver.descriptor
            if isinstance(error, NotStarted) and error.role not in judged.roles:
                raise HarnessError(f"a supplied role cannot be started: {text}") from error
            if isinstance(error, NotStarted) and error.timed_out:
                hint = "if it needs longer, say so in its descriptor (`within`)"
                raise GivenUp(f"given up, since nothing can be judged: {text}", hint=hint) from error
            raise Blocked(f"{judged.name} cannot be {step}ed: {text}", "implementation") from error

    def _keep_logs(self, text: str) -> str:
        """Copy the logs out of the cluster's folder, which will be deleted. Return the text with the paths replaced by
        the new ones."""
        for name, log in self.driver.logs().items():
            if log.exists():
                # All workers use one file and a relative path, so that the text is the same on all workers and
                # machines.
                bundle.copy_log(log, 0, self._settings.folder / "logs" / f"{name}.log")
                text = text.replace(str(log), f"logs/{name}.log beside the report")
        return text

    # -- one test ------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def play(self, running: RunningTest) -> Iterator[Case]:
        """Play a test or scene: see `Environment.play`."""
        name = short_name(running.test, self._settings.run)
        running.violation = self._violation
        if self._cluster:
            running.measure_cpu = partial(cpu.measure, partial(self._pids, self._cluster))
        self._restart_processes()
        require_healthy = partial(self._require_healthy, time.monotonic())
        running.checks.require_reliable = require_healthy
        offsets = {name: _file_size(log) for name, log in self._logs().items()}
        mark = "" if self._cluster else self._settings.run
        api = Api(self._loop, self._server, f"grove-conformance/{name}", self._served, mark)
        self._recorder.open(name)
        history = History(self._recorder, name)
        try:
            self._create_namespace(api, name)
            running.namespace = name
            environment = partial(
                Case,
                checks=running.checks,
                pool=name,
                api=api,
                driver=self.driver,
                kubeconfig=self._kubeconfig,
                require_healthy=require_healthy,
                wait_budget=self._wait_budget,
                time_scale=self._settings.time_scale,
                randomness=randomness(running.test, self._settings.seed),
                audit=self._audit,
                unplayed=self._settings.unplayed,
                machine=Machine(lambda start: self._watcher.slow(start)),
                hooks=self._hooks,
                mutators=self._mutators,
                silence=Silence(AuditTail(self._audit).poll, name) if self._cluster and self._audit else None,
            )
            case = environment(namespace=name, history=history)
            case.second_namespace = partial(self._second_namespace, case, environment, api)

            def judge(finished: bool) -> None:
                require_healthy(True)  # first, because an outage that has just started may affect every check
                if finished and case.premises.deleted_nodes():
                    case.require_premises()
                self._judge_invariants(running, case, finished)
                spaces = [case.history, case.neighbor.history] if case.neighbor is not None else [case.history]
                running.foreign = self._mutators() or case.sole_writer.foreign(spaces, case.roles.earlier_spans)

            running.at_end = judge
            running.keep = partial(self._write_bundle, running, case, api, offsets)
            try:
                yield case
            finally:
                if running.keep_objects:
                    self._kept_namespace = name
                if not isinstance(running.problem, KeyboardInterrupt):
                    self._clean_up(running, case, api, offsets)
        finally:
            for namespace in (name, _second_name(name)):
                self._recorder.forget(namespace)
            api.close()

    def _pids(self, cluster: Cluster) -> list[int]:
        """Return the ids of the processes of the cluster and of the implementation."""
        roles = (pid for role in Role for pid in self.driver.pids(role).values())
        return [*cluster.monitor.pids().values(), *roles]

    def _second_namespace(self, case: Case, environment: Callable[..., Case], api: Api) -> Case:
        """Open a second namespace for a scene: see `SceneEnvironment.second_namespace`."""
        name = _second_name(case.namespace)
        self._recorder.open(name)
        self._create_namespace(api, name)
        case.neighbor = neighbor = environment(namespace=name, history=History(self._recorder, name))
        neighbor.sole_writer = case.sole_writer
        neighbor.steps, neighbor.acts, neighbor.after_step = case.steps, case.acts, lambda: case.after_step()
        return neighbor

    def _clean_up(self, running: RunningTest, case: Case, api: Api, offsets: Mapping[str, int]) -> None:
        """Keep evidence of failures, then delete the objects of the test (without waiting until they are gone)."""
        spaces = [case, case.neighbor] if case.neighbor is not None else [case]
        for space in spaces:
            space.history.end()
            self._wait_budget.look(space.history)
        if running.has_problem and not running.bundle:
            running.keep(running.checks.recorded, [running.test])
        if running.keep_objects:
            return
        if running.has_problem and self._lasting_outage():
            return  # no more tests are played on this cluster
        self._restore()
        try:
            nodes = case.history.view().names("nodes", {POOL: case.pool})
            scene_objects.remove(self._fake_cluster, api, [space.namespace for space in spaces], nodes)
        except (ApiError, HarnessError) as error:
            if not running.has_problem:
                fault = f"the namespace or nodes of {running.test} cannot be deleted: {error}"
                self._ledger.write(HarnessFault(worker=self._worker, what=fault, clearing=True))

    def _restore(self) -> None:
        """Undo the changes that a test has made to the operators. If that fails, give up, because later tests would
        judge the wrong operator."""
        try:
            self.driver.operators.reset()
        except HarnessError as error:
            self._refusal = GivenUp(f"given up: the operator cannot be restored: {error}")
            raise self._refusal from error

    def _write_bundle(
        self,
        running: RunningTest,
        case: Case,
        api: Api,
        offsets: Mapping[str, int],
        checks: Sequence[Check],
        tests: Sequence[str],
    ) -> None:
        """Write the bundle of a test or a scene, or update it with more checks."""
        case.history.end()
        if not running.removed and not self._watcher.overlapping(time.monotonic()):
            # During an outage, each request would wait for its timeout.
            running.removed = removed(api, self.driver.installer.installed, self._audit)
        bundles = self._settings.folder / "bundles"
        running.bundle = bundles / folder_name(running.test)
        bundle.write(
            running.bundle,
            include_large_files=disk.used_bytes(bundles) < self._settings.bundle_limit << 20,
            test=running.test,
            checks=checks,
            history=case.history,
            acts=case.acts,
            neighbor=None if case.neighbor is None else case.neighbor.history,
            logs={name: (log, offsets[name]) for name, log in self._logs().items()},
            reproduce=self._reproduce(tests, [check.id for check in checks if check.outcome != "passed"]),
            steps=[(step.at, step.name) for step in case.steps.values()],
        )

    def _logs(self) -> dict[str, Path]:
        """Return all logs that belong in a bundle: the logs of the implementation and, on a cluster of the suite, of
        the components that act on pods."""
        component_logs = (
            {f"cluster/{name}": self._cluster.monitor.log(name) for name in POD_COMPONENTS} if self._cluster else {}
        )
        return self.driver.logs() | component_logs

    def _judge_invariants(self, running: RunningTest, case: Case, finished: bool) -> None:
        """Judge the invariants: a violated invariant fails every test; an unknown result fails only a test that
        declares the invariant and ran to its end."""
        declared = running.checks.declared if finished else ()
        roles, features = self._settings.roles, self._settings.features
        settle = self.driver.descriptor.settle
        judge = partial(invariants.judge, settle=settle, foreign_spans=case.roles.earlier_spans)
        for space in (case, case.neighbor):
            if space is not None:
                space.complete_origins()
        verdicts = judge(case.history)
        if case.neighbor is not None:
            neighbor_verdicts = judge(case.neighbor.history)
            verdicts += [verdict for verdict in neighbor_verdicts if verdict.holds is False]
        for verdict in verdicts:
            entry = self._registry.requirements.get(verdict.id)
            claimed = entry is not None and not not_claimed(
                entry, roles, features, self._settings.kubernetes, self._settings.release
            )
            if claimed and (verdict.id in declared or verdict.holds is False):
                at = verdict.records[-1] if verdict.records else None
                if verdict.holds is False and verdict.id in invariants.timed():
                    age = case.history.now() - (at.at if at else 0.0)
                    start = case.machine.now() - age - SECONDS_BEFORE_VIOLATION
                    try:
                        case.machine.require(start, f"{verdict.id} depends on how fast things are noticed")
                    except HarnessError as error:
                        running.checks.record_doubt(verdict.id, error)
                        continue
                running.checks.invariant(verdict.id, verdict.statement, verdict.holds, str(verdict), at=at)

    def _restart_processes(self) -> None:
        """Restart processes that ended in an earlier test, so that one crash does not affect all later tests."""
        if self._refusal is not None:
            raise self._refusal
        if broken := self._lasting_outage():
            try:
                self._replace(broken)
            except GivenUp as error:
                self._refusal = error
                raise
        try:
            self._run_driver_step("start", self.driver.start)  # processes that are already running are left alone
        except GivenUp as error:  # every later test would also time out
            self._refusal = error
            raise
        if self._channel is not None and self._worker == shared.FIRST_WORKER:
            self._announce(shared.RunningImplementation.of(self.driver))

    def _create_namespace(self, api: Api, name: str) -> None:
        try:
            api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        except (ApiError, HarnessError) as error:
            fault = f"the namespace {name} cannot be made: {words(error) if isinstance(error, ApiError) else error}"
            if reason := self._interference(name):
                raise Blocked(f"{fault}: {reason}", "implementation") from error
            self._namespace_failures += 1
            # No later test can be played, and each of them would wait just as long for a rejection.
            if isinstance(error, ApiError) and refusals.by_cluster(error.message, (), self._hooks):
                self._refusal = Blocked(fault, "circumstances")
            elif is_admission_error(error):
                self._refusal = Blocked(fault, "implementation")
            elif self._namespace_failures >= MAX_NAMESPACE_FAILURES:
                self._refusal = GivenUp(f"given up: {fault}")
            raise self._refusal or HarnessError(fault) from error
        self._namespace_failures = 0
        policy_objects.wait(api, name, self._policies.objects_without_namespace)

    def _interference(self, namespace: str) -> str:
        """Return what the implementation has done to keep a namespace from being created; empty if nothing."""
        if self._audit is None:
            return ""
        place, supplied = interference.Place(namespace, namespace), set(Role) - self.driver.descriptor.roles
        return interference.first(self._audit, self._audit.mark(), place, supplied, self._hooks)

    def _reproduce(self, tests: Sequence[str], failed: Sequence[str]) -> list[str]:
        lines = [f"# Runs {'this test' if len(tests) == 1 else 'these tests'} again:"]
        lines.append(" ".join([self._settings.reproduce, *(f"--test {shlex.quote(test)}" for test in tests)]))
        for id in dict.fromkeys(failed):
            entry = self._registry.requirements.get(id)
            if entry is not None and entry.reproduce:
                lines += ["", f"# {id} by hand: {entry.text}", *entry.reproduce]
        return lines

    def _report_phase(self, phase: str, detail: str = "") -> None:
        self._ledger.write(Phase(worker=self._worker, phase=phase, detail=detail))


def _with_scaled_timeouts(descriptor: Descriptor, time_scale: float) -> Descriptor:
    """Return the implementation with its readiness timeouts multiplied by the time scale."""

    def scaled(process: Process) -> Process:
        ready = msgspec.structs.replace(process.ready, within=process.ready.within * time_scale)
        return msgspec.structs.replace(process, ready=ready)

    processes = {role: tuple(map(scaled, group)) for role, group in descriptor.processes.items()}
    earlier = descriptor.predecessor and _with_scaled_timeouts(descriptor.predecessor, time_scale)
    return msgspec.structs.replace(descriptor, processes=processes, predecessor=earlier)


def _second_name(namespace: str) -> str:
    """Return the name of the second namespace of a test."""
    return f"{namespace}-b"


def _file_size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
