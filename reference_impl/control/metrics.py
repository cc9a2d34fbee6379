"""Prometheus metrics of the operator: queues and reconcilers, webhooks, created objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import perf_counter

from prometheus_client import Counter, Gauge, Histogram

from kube.workqueue import Outcome, WorkQueue
from reference_impl.runtime.metrics import SECONDS, Metrics


class OperatorMetrics(Metrics):
    """The metrics of the operator process."""

    def __init__(self) -> None:
        super().__init__()
        gauge = partial(Gauge, registry=self.registry)
        counter = partial(Counter, registry=self.registry)
        histogram = partial(Histogram, buckets=SECONDS, registry=self.registry)
        queue, controller, webhook = ("name",), ("controller",), ("webhook",)
        self._depth = gauge("workqueue_depth", "Keys that wait to be reconciled.", queue)
        self._adds = counter("workqueue_adds", "Keys that have come in.", queue)
        self._retries = counter("workqueue_retries", "Keys that came again because of an error.", queue)
        self._waits = histogram("workqueue_queue_duration_seconds", "How long keys have waited.", queue)
        self._work = histogram("workqueue_work_duration_seconds", "How long the work on keys has taken.", queue)
        runtime = "controller_runtime"
        self._reconciles = counter(f"{runtime}_reconcile", "Reconciles by result.", ("controller", "result"))
        self._errors = counter(f"{runtime}_reconcile_errors", "Reconciles that failed.", controller)
        self._times = histogram(f"{runtime}_reconcile_time_seconds", "How long reconciles have taken.", controller)
        self._workers = gauge(f"{runtime}_max_concurrent_reconciles", "Workers of a controller.", controller)
        self._webhooks = counter(
            f"{runtime}_webhook_requests", "Admission requests by status code.", ("webhook", "code")
        )
        self._webhook_times = histogram(
            f"{runtime}_webhook_latency_seconds", "How long admission requests have taken.", webhook
        )
        self._in_flight = gauge(
            f"{runtime}_webhook_requests_in_flight", "Admission requests that are being answered.", webhook
        )
        self._leads = gauge("leader_election_master_status", "1 while this process leads.", ("name",))
        self._created = counter("grove_operator_objects_created", "Objects made.", ("kind",))
        self._created_by_kind: dict[str, Counter] = {}
        self._initialized = counter("grove_operator_podgangs_initialized", "Gangs made complete.")

    def measure_controller(self, name: str, queue: WorkQueue[tuple[str, str]], workers: int) -> None:
        """Measure a queue and its reconciler."""
        self._workers.labels(name).set(workers)
        self._depth.labels(name).set_function(lambda: float(len(queue)))
        queue.meter = _QueueMeter(
            self._adds.labels(name),
            self._retries.labels(name),
            self._waits.labels(name),
            self._work.labels(name),
            self._times.labels(name),
            self._errors.labels(name),
            {result: self._reconciles.labels(name, result) for result in ("success", "requeue_after", "error")},
        )

    def report_leadership(self, name: str, leads: Callable[[], bool]) -> None:
        """Report whether this process holds the lease `name`."""
        self._leads.labels(name).set_function(leads)

    @contextmanager
    def measure_webhook(self, path: str) -> Iterator[None]:
        """Measure one admission request."""
        in_flight, started_at, code = self._in_flight.labels(path), perf_counter(), "500"
        in_flight.inc()
        try:
            yield
            code = "200"
        finally:
            in_flight.dec()
            self._webhooks.labels(path, code).inc()
            self._webhook_times.labels(path).observe(perf_counter() - started_at)

    def count_created(self, kind: str) -> None:
        """Count a created object by its kind."""
        counter = self._created_by_kind.get(kind)
        if counter is None:
            counter = self._created_by_kind[kind] = self._created.labels(kind)
        counter.inc()

    def count_initialized_gang(self) -> None:
        """Count a gang that has become complete."""
        self._initialized.inc()


class _QueueMeter:
    """A `Meter` that caches its time series."""

    def __init__(
        self,
        adds: Counter,
        retries: Counter,
        waits: Histogram,
        work: Histogram,
        times: Histogram,
        errors: Counter,
        results: dict[Outcome, Counter],
    ) -> None:
        self.on_add, self.on_retry, self.on_take = adds.inc, retries.inc, waits.observe
        self._work, self._times, self._errors, self._results = work, times, errors, results

    def on_done(self, seconds: float, outcome: Outcome) -> None:
        self._work.observe(seconds)
        self._times.observe(seconds)
        self._results[outcome].inc()
        if outcome == "error":
            self._errors.inc()
