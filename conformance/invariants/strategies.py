"""Sets whose pods need no gate: for sets with the update strategy Coherent, the diagrams of GREP-393 show pods without
a gate, while its text gates them."""

from __future__ import annotations

from conformance.grove import labels
from conformance.grove.coherent.served import COHERENT
from conformance.grove.fields import Document, label, text
from conformance.history.record import Record


class CoherentSets:
    """The sets whose strategy is or was Coherent: their pods may be older than a change of the strategy."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def see(self, record: Record) -> None:
        """Note the strategy of a set."""
        if record.resource == "podcliquesets" and text(record.object, "spec", "updateStrategy", "type") == COHERENT:
            self._names.add(record.name)

    def include(self, pod: Document) -> bool:
        """Return whether the pod belongs to such a set."""
        return label(pod, labels.PART_OF) in self._names
