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
from conformance.cluster.nodes import METRICS
from conformance.grove.fields import Document, mapping

UTIL, FB_USED, FB_FREE, XID = (f"DCGM_FI_DEV_{word}" for word in ("GPU_UTIL", "FB_USED", "FB_FREE", "XID_ERRORS"))
COUNTERS: Mapping[str, str] = {
    "DCGM_FI_DEV_SM_CLOCK": "Clock of the streaming multiprocessors, in MHz.",
    "DCGM_FI_DEV_MEM_CLOCK": "Clock of the memory, in MHz.",
    "DCGM_FI_DEV_MEMORY_TEMP": "Temperature of the memory, in degrees Celsius.",
    "DCGM_FI_DEV_GPU_TEMP": "Temperature of the GPU, in degrees Celsius.",
    "DCGM_FI_DEV_POWER_USAGE": "Power that the GPU draws, in watts.",
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": "Energy consumed since boot, in millijoules.",
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": "Number of retries on the PCIe bus.",
    UTIL: "Share of the time in which the GPU is busy, in percent.",
    "DCGM_FI_DEV_MEM_COPY_UTIL": "Share of the time in which the memory is busy, in percent.",
    "DCGM_FI_DEV_ENC_UTIL": "Share of the time in which the encoder is busy, in percent.",
    "DCGM_FI_DEV_DEC_UTIL": "Share of the time in which the decoder is busy, in percent.",
    XID: "Number of the last XID error; 0 if there is none.",
    FB_FREE: "Free memory, in MiB.",
    FB_USED: "Used memory, in MiB.",
    "DCGM_FI_DEV_FB_RESERVED": "Reserved memory, in MiB.",
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL": "Bandwidth of all NVLink lanes.",
    "DCGM_FI_DEV_VGPU_LICENSE_STATUS": "Whether there is a license for virtual GPUs.",
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": "Number of rows remapped for uncorrectable errors.",
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": "Number of rows remapped for correctable errors.",
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": "Whether a row could not be remapped.",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": "Share of the time in which the graphics engine is active, from 0 to 1.",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": "Share of the cycles in which the tensor pipe is active, from 0 to 1.",
    "DCGM_FI_PROF_DRAM_ACTIVE": "Share of the cycles in which the memory interface is active, from 0 to 1.",
    "DCGM_FI_PROF_PCIE_TX_BYTES": "Bytes sent over the PCIe bus in a second.",
    "DCGM_FI_PROF_PCIE_RX_BYTES": "Bytes received over the PCIe bus in a second.",
}
"""dcgm-exporter's default counters, with what they measure."""
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
