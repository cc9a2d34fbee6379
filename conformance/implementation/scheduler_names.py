"""The names of a cluster's schedulers, only one of which can be `default-scheduler`."""

from __future__ import annotations

from conformance.grove.kinds import DEFAULT_SCHEDULER
from conformance.implementation.descriptor import Descriptor, Role

SECOND_NAME = "kube-scheduler"
"""The name that kube-scheduler gets if a gang scheduler uses the default name."""


def suite_starts_scheduler(judged: Descriptor, supplied: Descriptor | None) -> bool:
    """Return whether the gang scheduler is a process that the suite starts."""
    owner = judged if Role.GANG_SCHEDULER in judged.roles else supplied
    return owner is not None and Role.GANG_SCHEDULER in owner.processes


def kube_scheduler_name(judged: Descriptor, supplied: Descriptor | None) -> str:
    """Return the name of kube-scheduler: the default name, unless a gang scheduler that the suite starts uses that
    name."""
    in_use = suite_starts_scheduler(judged, supplied)
    return SECOND_NAME if in_use and judged.scheduler_name == DEFAULT_SCHEDULER else DEFAULT_SCHEDULER
