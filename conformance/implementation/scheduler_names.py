"""Which scheduler uses which name: a cluster has one `default-scheduler`."""

from __future__ import annotations

from conformance.cluster.settings import DEFAULT_SCHEDULER
from conformance.implementation.descriptor import Descriptor, Role

BESIDE = "kube-scheduler"
"""The name of kube-scheduler if a gang scheduler uses its default name."""


def kube_scheduler(judged: Descriptor, supplied: Descriptor | None) -> str:
    """Return the name that kube-scheduler uses: its default, unless a gang scheduler that the suite starts uses
    that."""
    owner = judged if Role.GANG_SCHEDULER in judged.roles else supplied
    taken = owner is not None and Role.GANG_SCHEDULER in owner.processes
    return BESIDE if taken and judged.scheduler_name == DEFAULT_SCHEDULER else DEFAULT_SCHEDULER
