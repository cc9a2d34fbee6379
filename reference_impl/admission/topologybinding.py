"""The validating webhook of ClusterTopologyBindings (CTV-01 to CTV-05)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from reference_impl.admission.errors import FieldError, decode_error, duplicate, invalid
from reference_impl.admission.result import AdmissionResult
from reference_impl.api.models import ClusterTopologyBinding
from reference_impl.runtime.configuration import Configuration, Scheduler

TOPOLOGY_AWARE = ("kai-scheduler",)
"""Schedulers that have their own topology resource (CFG-22)."""


def judge(new: Any, settings: Configuration) -> AdmissionResult:
    """Validate a new binding, or an update of a binding."""
    try:
        binding = msgspec.convert(new, ClusterTopologyBinding)
    except msgspec.ValidationError as error:
        return AdmissionResult([decode_error(error)])
    return AdmissionResult([*level_errors(binding), *scheduler_errors(binding, settings.scheduler)])


def level_errors(binding: ClusterTopologyBinding) -> Iterator[FieldError]:
    """Reject duplicate domains and keys (CTV-01, CTV-02)."""
    for field in ("domain", "key"):
        earlier_values: set[str] = set()
        for i, level in enumerate(binding.spec.levels):
            value: str = getattr(level, field)
            if value in earlier_values:
                yield duplicate(f"spec.levels[{i}].{field}", value)
            earlier_values.add(value)


def scheduler_errors(binding: ClusterTopologyBinding, settings: Scheduler) -> Iterator[FieldError]:
    """Validate the scheduler names (CTV-03 to CTV-05). Errors use the field name of the API. Upstream's errors use
    another name (DFT-07)."""
    earlier_names: set[str] = set()
    for i, entry in enumerate(binding.spec.scheduler_topology_bindings or []):
        path = f"spec.schedulerTopologyBindings[{i}].schedulerName"
        name = entry.scheduler_name
        if name in earlier_names:
            yield duplicate(path, name)
        earlier_names.add(name)
        if name not in settings.names:
            yield invalid(path, name, "scheduler backend is not enabled in Grove")
        elif name not in TOPOLOGY_AWARE:
            yield invalid(path, name, "scheduler backend does not implement topology-aware scheduling")
