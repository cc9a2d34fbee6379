"""CORE-007: a pod's name, hostname and subdomain follow from its clique and its index (OBJ-106, OBJ-251, OBJ-260)."""

from __future__ import annotations

from conformance.grove import expected_pods, labels, pods
from conformance.grove.fields import label, text
from conformance.history.gangs import Gangs
from conformance.history.record import Record
from conformance.invariants.creations import Creations
from conformance.invariants.invariant import Invariant


class PodNames(Invariant):
    """CORE-007."""

    id = "CORE-007"
    statement = (
        "a pod's name and hostname are those of its clique and its index, and its subdomain is that of its replica if "
        "the set has a headlessServiceConfig"
    )

    def __init__(self) -> None:
        super().__init__()
        self._creations = Creations()
        self._judged = 0
        self._serviceless: set[str] = set()
        """Sets that have at any time had no headlessServiceConfig."""

    def observe(self, record: Record, gangs: Gangs) -> None:
        """Judge pods at their creation."""
        if record.resource == "podcliquesets" and not expected_pods.has_subdomain(record.object):
            self._serviceless.add(record.name)
        if record.resource != "pods" or not pods.is_of_grove(record.object) or not self._creations.shows(record):
            return
        clique = pods.clique(record.object)
        index, host = expected_pods.index(record.object), text(record.object, "spec", "hostname")
        set_name = label(record.object, labels.PART_OF)
        service = f"{set_name}-{label(record.object, labels.SET_INDEX)}"
        self._judged += 1
        if not record.name.startswith(f"{clique}-"):
            self._report_violation(f"pod {record.name} is not named after its clique {clique}", record)
        if index is None or host != f"{clique}-{index}":
            self._report_violation(f"pod {record.name} of {clique} has the hostname {host!r}", record)
        if set_name not in self._serviceless and text(record.object, "spec", "subdomain") != service:
            deviation = f"the subdomain {text(record.object, 'spec', 'subdomain')!r} instead of {service!r}"
            self._report_violation(f"pod {record.name} has {deviation}", record)

    def _unknown_reason(self, gangs: Gangs, now: float) -> str:
        return "" if self._judged else "an operator created no pod"
