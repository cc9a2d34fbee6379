"""Prometheus metrics that both processes have in common: the registry, requests to the API server, and the process
metrics."""

from __future__ import annotations

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from kube.client import Client

# Created metrics would add an unused second series for each counter.
prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]

SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Histogram buckets for durations, in seconds."""


class Metrics:
    """The metrics of one process, with the names that controller-runtime uses."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._requests = Counter(
            "rest_client_requests",
            "Requests to the API server, by method and status code.",
            ("method", "code"),
            registry=self.registry,
        )
        self._counters: dict[tuple[str, int], Counter] = {}

    def render(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return generate_latest(self.registry)

    def count_requests(self, client: Client) -> None:
        """Count the requests of a client."""
        client.on_answer = self._on_answer

    def _on_answer(self, method: str, status: int) -> None:
        counter = self._counters.get((method, status))
        if counter is None:
            counter = self._requests.labels(method, str(status) if status else "<error>")
            self._counters[method, status] = counter
        counter.inc()
