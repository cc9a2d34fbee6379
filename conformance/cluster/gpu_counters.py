"""The counters of GPUs that a node or a pod can declare."""

from __future__ import annotations

from collections.abc import Mapping

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
