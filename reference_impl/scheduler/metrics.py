"""Prometheus metrics of the gang scheduler."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

from reference_impl.runtime.metrics import SECONDS, Metrics


class SchedulerMetrics(Metrics):
    """The metrics of the scheduler process."""

    def __init__(self) -> None:
        super().__init__()
        registry = self.registry
        attempts = Counter(
            "grove_scheduler_gang_attempts",
            "Decisions about a gang with something left to place, by result.",
            ("result",),
            registry=registry,
        )
        self._placed, self._waiting_again = attempts.labels("placed"), attempts.labels("waiting")
        self.waiting = Gauge("grove_scheduler_waiting_gangs", "Gangs whose minimum does not fit.", registry=registry)
        bindings = Counter("grove_scheduler_bindings", "Bindings of pods, by result.", ("result",), registry=registry)
        self.successful_bindings, self.failed_bindings = bindings.labels("bound"), bindings.labels("error")
        self.cycle = Histogram(
            "grove_scheduler_cycle_duration_seconds",
            "Duration of a scheduling cycle from the snapshot to the plan, without the bindings.",
            buckets=SECONDS,
            registry=registry,
        )

    def record_cycle(self, placed: int, waiting: int, seconds: float) -> None:
        """Record the result of a scheduling cycle."""
        self._placed.inc(placed)
        self._waiting_again.inc(waiting)
        self.waiting.set(waiting)
        self.cycle.observe(seconds)
