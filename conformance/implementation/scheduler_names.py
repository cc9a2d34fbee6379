"""The names of the schedulers of a cluster, which has one `default-scheduler`."""

from __future__ import annotations

from conformance.cluster.settings import DEFAULT_SCHEDULER
from conformance.implementation.descriptor import Descriptor, Role

SECOND_NAME = "kube-scheduler"
"""The name of kube-scheduler if a gang scheduler uses its default name."""


def started(judged: Descriptor, supplied: Descriptor | None) -> bool:
    """Return whether the gang scheduler is a process that the suite starts."""
    owner = judged if Role.GANG_SCHEDULER in judged.roles else supplied
    return owner is not None and Role.GANG_SCHEDULER in owner.processes


def kube_scheduler(judged: Descriptor, supplied: Descriptor | None) -> str:
    """Return the name that kube-scheduler uses: its default, unless a gang scheduler that the suite starts uses
    that."""
    in_use = started(judged, supplied)
    return SECOND_NAME if in_use and judged.scheduler_name == DEFAULT_SCHEDULER else DEFAULT_SCHEDULER
