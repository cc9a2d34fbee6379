"""The times in which a component of a cluster did not work, or the recording process itself did not run.

Nothing that happens during an outage says anything about an implementation. An outage that is over leaves no trace in
the state of the cluster, so each component is observed continuously: its process and, over a connection that is kept
open, its health page.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import psutil

from conformance.cluster import processes, suspension
from conformance.cluster.controlplane import Cluster
from conformance.cluster.health import COMPONENTS
from conformance.cluster.kubelet_sim import process as kubelet
from conformance.cluster.lateness import LATE_SECONDS, Delay, Lateness
from conformance.cluster.state import Owner

CHECK_INTERVAL = 0.5
"""Seconds between two checks of the processes and the clocks."""
REQUEST_INTERVAL = 2.0
"""Seconds between two requests for a health page."""
SILENCE_SECONDS = 10.0
"""Seconds without a response that count as an outage. A busy machine occasionally responds late."""
UNNOTICED_SECONDS = 5.0
"""Seconds by which the recording process may be late, or the wall clock may jump, before that counts as an outage."""
DEAD = "does not run"
SUITE = "the suite"


@dataclass(frozen=True)
class MonitoredComponent:
    """An observed component. Both functions return an error message, or an empty string if the component works:
    `process` immediately, `page` within seconds."""

    name: str
    process: Callable[[], str] | None = None
    page: Callable[[], str] | None = None


@dataclass(frozen=True)
class Outage:
    """A time in which a component did not work, in seconds of the monotonic clock. `end` is None while the outage
    lasts."""

    component: str
    problem: str
    begin: float
    end: float | None = None

    @property
    def final(self) -> bool:
        """Return whether the outage cannot end, because nothing restarts a component."""
        return self.problem == DEAD and self.end is None

    @property
    def reason(self) -> str:
        """Return the reason why there is no verdict."""
        problem = (
            "a process was kept from running" if suspension.is_problem(self.problem) else "the cluster is not well"
        )
        return f"{problem}: {self}"

    def __str__(self) -> str:
        if self.final:
            return f"{self.component} {self.problem}"
        duration = "" if self.end is None else f", for {self.end - self.begin:.0f} s"
        return f"{self.component} {self.problem}{duration}"


@dataclass
class _ProbeState:
    """The state of the checks of one component, either of its process or of its page. `last_success` is the start time
    of the last successful check."""

    name: str
    grace: float
    last_success: float
    outage: Outage | None = None


class Watcher:
    """Observes components from separate threads between `start` and `stop`. Any thread may query the results."""

    def __init__(
        self,
        components: Sequence[MonitoredComponent],
        *,
        silence: float = SILENCE_SECONDS,
        time_scale: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        on_stop: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_stop` closes the connections that the components' functions use. A `time_scale` above 1 means a slow
        machine: it multiplies how long components may be silent and how late this process may be."""
        silence, self._unnoticed = silence * max(1.0, time_scale), UNNOTICED_SECONDS * max(1.0, time_scale)
        self._clock, self._wall_clock, self._silence, self._on_stop = clock, wall_clock, silence, on_stop
        now = clock()
        self._processes = [(_ProbeState(c.name, 0.0, now), c.process) for c in components if c.process is not None]
        self._pages = [(_ProbeState(c.name, silence, now), c.page) for c in components if c.page is not None]
        self._probes = [probe for probe, _ in (*self._processes, *self._pages)]
        self._lateness = Lateness(LATE_SECONDS * max(1.0, time_scale))
        self._past_outages: deque[Outage] = deque(maxlen=1000)
        self._last_run, self._offset = now, wall_clock() - now
        self._changes = threading.Condition(threading.RLock())
        self._check_lock = threading.Lock()
        self._stopped = threading.Event()
        self._wake_events = [threading.Event() for _ in self._pages]
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start observing."""
        self._last_run = self._clock()
        self._threads = [threading.Thread(target=self._watch_processes, name="outages", daemon=True)]
        for (probe, page), wake_event in zip(self._pages, self._wake_events, strict=True):
            target = threading.Thread(
                target=self._watch_page, args=(probe, page, wake_event), name=f"outages-{probe.name}", daemon=True
            )
            self._threads.append(target)
        for thread in self._threads:
            thread.start()

    def time(self, name: str, request: Callable[[], object]) -> None:
        """Record from now on how long another server takes to respond, regardless of the response. The server is not a
        component and may be stopped."""

        def page() -> str:
            request()
            return ""

        now, wake_event = self._clock(), threading.Event()
        probe = _ProbeState(name, self._silence, now)
        with self._changes:
            self._probes, self._wake_events = [*self._probes, probe], [*self._wake_events, wake_event]
            self._pages = [*self._pages, (probe, page)]
        thread = threading.Thread(
            target=self._watch_page, args=(probe, page, wake_event), name=f"outages-{name}", daemon=True
        )
        self._threads.append(thread)
        thread.start()

    def add_process(self, name: str, process: Callable[[], str]) -> None:
        """Observe one more process from now on, as `MonitoredComponent.process` does."""
        probe = _ProbeState(name, 0.0, self._clock())
        with self._changes:
            self._probes = [*self._probes, probe]
            self._processes = [*self._processes, (probe, process)]

    def stop(self) -> None:
        """Stop observing. The recorded outages are kept."""
        self._stopped.set()
        for wake_event in self._wake_events:
            wake_event.set()
        for thread in self._threads:
            thread.join(timeout=5)
        self._on_stop()

    def overlapping(self, begin: float) -> list[Outage]:
        """Return the outages that overlap the time from `begin` until now, in order."""
        with self._changes:
            outages = [*(probe.outage for probe in self._probes if probe.outage is not None), *self._past_outages]
        overlapping = (outage for outage in outages if outage.end is None or outage.end >= begin)
        return sorted(overlapping, key=lambda outage: outage.begin)

    def settled(self, begin: float) -> list[Outage]:
        """Check every component, and return the outages that overlap the time from `begin` until now, including those
        that have just started."""
        self.check()
        if outages := self.overlapping(begin):
            return outages
        requested_at = self._clock()
        for wake_event in self._wake_events:
            wake_event.set()
        with self._changes:
            self._changes.wait_for(
                lambda: (
                    any(probe.outage for probe in self._probes)
                    or all(probe.last_success >= requested_at for probe, _ in self._pages)
                ),
                timeout=2 * self._silence + 2,
            )
        return self.overlapping(begin)

    def wait_until_over(self, timeout: float) -> list[Outage]:
        """Wait until all outages are over. Return the outages that are not over after `timeout` seconds, or that cannot
        end."""
        begin = self._clock()

        def ongoing_outages() -> list[Outage]:
            return [probe.outage for probe in self._probes if probe.outage is not None]

        self.settled(begin)
        with self._changes:
            self._changes.wait_for(
                lambda: not ongoing_outages() or any(outage.final for outage in ongoing_outages()), timeout
            )
            return ongoing_outages()

    def slow(self, begin: float) -> tuple[float, list[Delay]]:
        """Return the number of seconds since `begin` in which the machine was too slow, and the delays, the worst
        first."""
        now = self._clock()
        return self._lateness.seconds(begin, now), self._lateness.find_delays(begin, now)

    def check(self) -> None:
        """Check the clocks and the processes."""
        with self._check_lock:
            self._check_clocks()
            for probe, process in self._processes:
                begin = self._clock()
                self._record(probe, _result_of(process), begin)

    def _check_clocks(self) -> None:
        now = self._clock()
        offset = self._wall_clock() - now
        if now - self._last_run > CHECK_INTERVAL + self._unnoticed:
            with self._changes:
                self._past_outages.append(Outage(SUITE, "did not run itself", self._last_run, now))
        elif abs(offset - self._offset) > self._unnoticed:  # the machine was asleep, or its clock was set
            with self._changes:
                self._past_outages.append(
                    Outage("the wall clock", f"jumped by {offset - self._offset:+.0f} s", self._last_run, now)
                )
        self._lateness.record_wake_up(SUITE, self._last_run + CHECK_INTERVAL, now)
        # Use the time at which this check started: the process may be suspended before the check finishes.
        self._last_run, self._offset = now, offset

    def _watch_processes(self) -> None:
        while not self._stopped.wait(CHECK_INTERVAL):
            self.check()

    def _watch_page(self, probe: _ProbeState, page: Callable[[], str], wake_event: threading.Event) -> None:
        while not self._stopped.is_set():
            wake_event.clear()
            begin = self._clock()
            complaint = _result_of(lambda: _unanswered(page()))
            self._lateness.record_response(probe.name, begin, self._clock(), not complaint)
            self._record(probe, complaint, begin)
            # After a failed check, check more often, so that an outage is known as soon as it counts as one.
            wake_event.wait(CHECK_INTERVAL if complaint else REQUEST_INTERVAL)

    def _record(self, probe: _ProbeState, complaint: str, begin: float) -> None:
        now = self._clock()
        with self._changes:
            if not complaint:
                if probe.outage is not None:
                    self._past_outages.append(replace(probe.outage, end=now))
                    probe.outage = None
                probe.last_success = begin
            elif probe.outage is not None:
                probe.outage = replace(probe.outage, problem=complaint)
            elif now - probe.last_success >= probe.grace:
                probe.outage = Outage(probe.name, complaint, probe.last_success)
            self._changes.notify_all()


def watch(cluster: Cluster, time_scale: float = 1.0) -> Watcher:
    """Return a watcher, not yet started, for every component of a cluster of the suite."""

    def process(name: str) -> Callable[[], str]:
        return lambda: _complaint(cluster.monitor.process(name))

    health = cluster.monitor.health()
    components = [
        MonitoredComponent(COMPONENTS[port], process(COMPONENTS[port]), lambda port=port: health.find_problem(port))  # type: ignore[misc]
        for port in cluster.monitor.ports()
    ]
    components.append(MonitoredComponent(kubelet.COMPONENT, process(kubelet.COMPONENT)))
    return Watcher(components, time_scale=time_scale, on_stop=health.close)


def process_component(name: str, owner: Owner) -> MonitoredComponent:
    """Return a component that consists of one process."""

    def find_problem() -> str:
        return _complaint(psutil.Process(owner.pid)) if owner.is_alive() else DEAD

    return MonitoredComponent(name, find_problem)


def _result_of(check: Callable[[], str]) -> str:
    """Return the result of a check. An exception counts as a failed check, because it would otherwise end the thread
    unnoticed."""
    try:
        return check()
    except Exception as error:
        return f"cannot be watched: {type(error).__name__}: {error}"


def _unanswered(complaint: str) -> str:
    return f"does not answer: {complaint}" if complaint else ""


def _complaint(process: psutil.Process | None) -> str:
    state = processes.find_state(process.pid) if process is not None else ""
    if process is None or state in ("", psutil.STATUS_DEAD, psutil.STATUS_ZOMBIE):
        return DEAD
    return suspension.STOPPED if state == psutil.STATUS_TRACING_STOP else suspension.find_problem(process.pid)
