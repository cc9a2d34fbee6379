"""Mutants of the scheduler in devices that fail and are repaired."""

from __future__ import annotations

from typing import Final

from mutants.registry import mutant
from mutants.replacement import replace
from reference_impl.scheduler.devices.inventory import PublishedDevice
from reference_impl.scheduler.devices.objects import DeviceId, DeviceTaint, DeviceToleration

ROLE: Final = "gang-scheduler"


def _taints(device: PublishedDevice, *effects: str) -> tuple[DeviceTaint, ...]:
    return tuple(taint for taint in device.device.taints if taint.effect in effects)


@mutant(ROLE, "allocates devices that have failed", "DEV-022")
def _device_taints_ignored() -> None:
    replace(PublishedDevice, "taints", property(lambda self: ()))


@mutant(ROLE, "keeps off devices with a taint NoSchedule, not with NoExecute", "DEV-022")
def _drained_devices_allocated() -> None:
    replace(PublishedDevice, "taints", property(lambda self: _taints(self, "NoSchedule")))


@mutant(ROLE, "allocates no device with a taint, whatever is tolerated", "DEV-023")
def _device_tolerations_ignored() -> None:
    replace(DeviceToleration, "tolerates", lambda self, taint: False)


@mutant(ROLE, "allocates no device that has ever failed", "DEV-025")
def _repairs_unseen() -> None:
    taints_by_device = dict[DeviceId, tuple[DeviceTaint, ...]]()

    def taints(self: PublishedDevice) -> tuple[DeviceTaint, ...]:
        if current := _taints(self, "NoSchedule", "NoExecute"):
            taints_by_device[self.device_id] = current
        return taints_by_device.get(self.device_id, ())

    replace(PublishedDevice, "taints", property(taints))
