"""Tests of health, readiness, metrics and structured logs of both processes."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from typing import Any

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from kube.workqueue import WorkQueue, work
from reference_impl.control.metrics import OperatorMetrics
from reference_impl.runtime import health, logs
from reference_impl.scheduler.metrics import SchedulerMetrics

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def parse_samples(page: str) -> Samples:
    """Return every sample of a metrics page, as read by the library's own parser."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def value(samples: Samples, metric: str, /, **labels: str) -> float:
    return samples[metric, frozenset(labels.items())]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


async def test_health_readiness_and_metrics_are_served_on_loopback() -> None:
    port, ready, metrics = free_port(), asyncio.Event(), OperatorMetrics()
    metrics.count_created("Pod")
    async with health.serve(port, ready, metrics), aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:

        async def get(path: str) -> tuple[int, str, str]:
            async with session.get(path) as answer:
                return answer.status, await answer.text(), answer.content_type

        assert (await get("/healthz"))[0] == 200
        assert (await get("/readyz"))[0] == 503
        ready.set()
        assert (await get("/readyz"))[0] == 200
        status, page, kind = await get("/metrics")
    assert (status, kind) == (200, "text/plain")
    samples = parse_samples(page)
    assert value(samples, "grove_operator_objects_created_total", kind="Pod") == 1
    assert ("process_cpu_seconds_total", frozenset()) in samples
    assert not [name for name, _ in samples if name.endswith("_created")], "no second series for each counter"


async def test_queues_and_reconciles_are_counted() -> None:
    metrics, queue = OperatorMetrics(), WorkQueue[tuple[str, str]](first_retry=0.001)
    metrics.measure_controller("podclique", queue, 1)
    results: list[Any] = [None, 0.001, ValueError("no"), None]
    finished = asyncio.Event()

    async def reconcile(key: tuple[str, str]) -> float | None:
        result = results.pop(0)
        if not results:
            finished.set()
        if isinstance(result, Exception):
            raise result
        return result

    queue.add(("ns", "a"))
    queue.add(("ns", "b"))
    assert value(parse_samples(metrics.render().decode()), "workqueue_depth", name="podclique") == 2
    working = asyncio.create_task(work(queue, reconcile, 1))
    await finished.wait()
    queue.close()
    await working
    samples = parse_samples(metrics.render().decode())
    for name, count in {"adds": 4, "retries": 1}.items():
        assert value(samples, f"workqueue_{name}_total", name="podclique") == count
    for name in ("workqueue_queue_duration_seconds_count", "workqueue_work_duration_seconds_count"):
        assert value(samples, name, name="podclique") == 4
    assert value(samples, "workqueue_depth", name="podclique") == 0
    for result, count in {"success": 2, "requeue_after": 1, "error": 1}.items():
        assert value(samples, "controller_runtime_reconcile_total", controller="podclique", result=result) == count
    assert value(samples, "controller_runtime_reconcile_errors_total", controller="podclique") == 1
    assert value(samples, "controller_runtime_reconcile_time_seconds_count", controller="podclique") == 4
    assert value(samples, "controller_runtime_max_concurrent_reconciles", controller="podclique") == 1


def test_requests_webhooks_and_leadership_are_counted() -> None:
    metrics, leads = OperatorMetrics(), False
    metrics.report_leadership("lease", lambda: leads)
    for method, status in (("GET", 200), ("GET", 200), ("POST", 0), ("PATCH", 409)):
        metrics._on_answer(method, status)
    with metrics.measure_webhook("/webhooks/a"):
        during = parse_samples(metrics.render().decode())
    with pytest.raises(ValueError), metrics.measure_webhook("/webhooks/a"):
        raise ValueError
    metrics.count_initialized_gang()
    samples = parse_samples(metrics.render().decode())
    assert value(samples, "rest_client_requests_total", method="GET", code="200") == 2
    assert value(samples, "rest_client_requests_total", method="POST", code="<error>") == 1
    assert value(samples, "rest_client_requests_total", method="PATCH", code="409") == 1
    in_flight = "controller_runtime_webhook_requests_in_flight"
    assert (
        value(during, in_flight, webhook="/webhooks/a") == 1 and value(samples, in_flight, webhook="/webhooks/a") == 0
    )
    for code in ("200", "500"):
        assert value(samples, "controller_runtime_webhook_requests_total", webhook="/webhooks/a", code=code) == 1
    assert value(samples, "controller_runtime_webhook_latency_seconds_count", webhook="/webhooks/a") == 2
    assert value(samples, "leader_election_master_status", name="lease") == 0
    assert value(samples, "grove_operator_podgangs_initialized_total") == 1
    leads = True
    assert value(parse_samples(metrics.render().decode()), "leader_election_master_status", name="lease") == 1


def test_scheduling_cycles_are_counted() -> None:
    metrics = SchedulerMetrics()
    metrics.record_cycle(3, 2, 0.02)
    metrics.record_cycle(1, 1, 0.002)
    metrics.successful_bindings.inc(5)
    metrics.failed_bindings.inc()
    samples = parse_samples(metrics.render().decode())
    assert value(samples, "grove_scheduler_gang_attempts_total", result="placed") == 4
    assert value(samples, "grove_scheduler_gang_attempts_total", result="waiting") == 3
    assert value(samples, "grove_scheduler_waiting_gangs") == 1
    assert value(samples, "grove_scheduler_cycle_duration_seconds_count") == 2
    assert value(samples, "grove_scheduler_bindings_total", result="bound") == 5
    assert value(samples, "grove_scheduler_bindings_total", result="error") == 1


async def test_a_log_line_names_its_subject() -> None:
    lines: list[dict[str, str]] = []

    class RecordingHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(json.loads(logs.JsonFormatter().format(record)))

    queue, keep = WorkQueue[tuple[str, str]](first_retry=1000), RecordingHandler()
    root = logging.getLogger()

    async def reconcile(key: tuple[str, str]) -> None:
        await asyncio.gather(log_subject(key[1]), log_subject(key[1]))
        queue.close()
        raise ValueError("cannot go on")

    async def log_subject(name: str) -> None:
        logging.getLogger("a.writer").warning("writing for %s", name)

    root.addHandler(keep)
    try:
        queue.add(("ns", "one"))
        await work(queue, logs.with_subject("podclique", reconcile), 1)
        logging.getLogger("a.bystander").warning("about nothing")
    finally:
        root.removeHandler(keep)
    subject = {"controller": "podclique", "namespace": "ns", "name": "one"}
    assert [line["msg"] for line in lines if subject.items() <= line.items()] == [
        *["writing for one"] * 2,
        "('ns', 'one'): cannot go on",
    ]
    assert lines[-1]["msg"] == "about nothing" and "controller" not in lines[-1]
