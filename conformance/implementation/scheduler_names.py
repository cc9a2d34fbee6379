"""Which scheduler answers to which name: a cluster has one `default-scheduler`."""

from __future__ import annotations

from conformance.cluster.settings import DEFAULT_SCHEDULER
from conformance.implementation.descriptor import Descriptor, Role

BESIDE = "kube-scheduler"
"""What kube-scheduler is called where a gang scheduler has its name."""


def kube_scheduler(judged: Descriptor, supplied: Descriptor | None) -> str:
    """Return the name that kube-scheduler answers to: its own, unless a gang scheduler that the suite starts has it."""
    owner = judged if Role.GANG_SCHEDULER in judged.roles else supplied
    taken = owner is not None and Role.GANG_SCHEDULER in owner.processes
    return BESIDE if taken and judged.scheduler_name == DEFAULT_SCHEDULER else DEFAULT_SCHEDULER
