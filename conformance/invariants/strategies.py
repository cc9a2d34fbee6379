"""The sets whose pods need no gate. For sets with the update strategy Coherent, the diagrams of GREP-393 show pods
without a gate, although its text describes one."""

from __future__ import annotations

from conformance.grove import labels
from conformance.grove.coherent.served import COHERENT
from conformance.grove.fields import Document, label, text
from conformance.history.record import Record


class CoherentSets:
    """The sets whose strategy is or was Coherent. Sets that have changed their strategy are included, because their
    pods may be older than the change."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def observe(self, record: Record) -> None:
        """Track the strategy of a set."""
        if record.resource == "podcliquesets" and text(record.object, "spec", "updateStrategy", "type") == COHERENT:
            self._names.add(record.name)

    def include(self, pod: Document) -> bool:
        """Return whether the pod belongs to such a set."""
        return label(pod, labels.PART_OF) in self._names
