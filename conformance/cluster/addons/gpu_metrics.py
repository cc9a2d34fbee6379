"""Metrics of GPUs, with the names and labels of dcgm-exporter and of its default counters. Pure functions.

Nothing runs, so the values are declared: by the annotation `METRICS` of a pod for the GPUs that it holds, and of a node
for all of its GPUs. Without a declaration, a GPU that a pod holds uses half of its time and memory, as containers use
half of their requests, and other GPUs use nothing. What the cluster cannot know, such as power and temperature, has no
series unless it is declared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from conformance.cluster.annotations import decoded
from conformance.cluster.gpu_counters import COUNTERS, FB_FREE, FB_USED, UTIL, XID
from conformance.cluster.nodes import METRICS
from conformance.grove.fields import Document, mapping

_GROWING = frozenset(
    {
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
        "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
        "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
        "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
    }
)
"""The counters that only grow."""
HELD_UTIL, HELD_SHARE = 50.0, 0.5
"""What a GPU uses that a pod holds: percent of its time, and share of its memory."""

Labels = dict[str, str]
Holder = tuple[Labels, Mapping[str, str]]
"""The labels of a container in the metrics, and the annotations of its pod."""


@dataclass
class SimulatedGpu:
    """A GPU, or a partition of one, with the containers that hold it."""

    labels: Labels
    memory: float
    """In MiB."""
    node: Document
    xid: float = 0.0
    is_partition: bool = False
    holders: list[Holder] = field(default_factory=list)

    def samples(self) -> Iterator[tuple[Labels, dict[str, float]]]:
        """Generate the labels and the values of each series."""
        of_node = declared(mapping(self.node, "metadata", "annotations"))
        for pod_labels, pod_annotations in self.holders or [({}, {})]:
            values = {XID: self.xid, **self._usage(bool(self.holders)), **of_node, **declared(pod_annotations)}
            if FB_USED in values:
                values = {FB_FREE: max(self.memory - values[FB_USED], 0.0), **values}
            yield {**self.labels, **pod_labels}, values

    def _usage(self, is_held: bool) -> dict[str, float]:
        used_memory = {FB_USED: self.memory * HELD_SHARE if is_held else 0.0}
        # NVIDIA's driver knows no utilization of partitions.
        return used_memory if self.is_partition else {UTIL: HELD_UTIL if is_held else 0.0, **used_memory}


def declared(annotations: Mapping[str, str] | None) -> dict[str, float]:
    """Return the values that annotations declare; empty if they are malformed. Unknown counters are left out."""
    try:
        values = decoded(annotations, METRICS, dict[str, float]) or {}
    except ValueError:
        return {}
    return {counter: value for counter, value in values.items() if counter in COUNTERS}


class GpuCollector(Collector):
    """The metrics of GPUs."""

    def __init__(self, gpus: Iterable[SimulatedGpu]) -> None:
        self._gpus = gpus

    def collect(self) -> Iterator[Metric]:
        """Generate a metric for each counter that has a value."""
        samples = [sample for gpu in self._gpus for sample in gpu.samples()]
        for counter, documentation in COUNTERS.items():
            # Counters are untyped: the library would append `_total` to their names.
            metric = Metric(counter, documentation, "unknown" if counter in _GROWING else "gauge")
            for labels, values in samples:
                if counter in values:
                    metric.add_sample(counter, labels, values[counter])
            if metric.samples:
                yield metric


def page(gpus: Iterable[SimulatedGpu]) -> bytes:
    """Return the metrics in Prometheus's text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(GpuCollector(gpus))
    return generate_latest(registry)
