"""TERM-012: a recreated clique has the replicas of its template or of the previous clique (CHG-GT-22, CHG-GT-25)."""

from __future__ import annotations

from conformance.grove import labels
from conformance.grove.fields import count, items, label, text
from conformance.history.gangs import Gangs
from conformance.history.record import Record
from conformance.invariants.creations import Creations
from conformance.invariants.invariant import Invariant


class RecreatedSizes(Invariant):
    """TERM-012. The contract does not say whether a clique that is recreated for a reason other than gang termination
    keeps the replicas that it was scaled to, so these are accepted. The replicas of any earlier version of the template
    are also accepted."""

    id = "TERM-012"
    statement = "a recreated clique has the replicas of its template, or those of the clique before it"

    def __init__(self) -> None:
        super().__init__()
        self._creations = Creations()
        self._sizes: dict[tuple[str, str], set[int]] = {}
        """Set and clique name in its template → all values that the template's `replicas` has had."""
        self._last_records: dict[str, Record] = {}
        """The last record of each clique, by name."""
        self._judged_count = 0

    def observe(self, record: Record, gangs: Gangs) -> None:
        """Track sizes, and judge the creation of cliques."""
        if record.resource == "podcliquesets":
            for clique in items(record.object, "spec", "template", "cliques"):
                sizes = self._sizes.setdefault((record.name, text(clique, "name")), set())
                sizes.add(count(clique, "spec", "replicas") or 1)  # DEF-10
        if record.resource != "podcliques":
            return
        previous, self._last_records[record.name] = self._last_records.get(record.name), record
        template_sizes = self._sizes.get((label(record.object, labels.PART_OF), _template_name(record)))
        if not self._creations.shows(record) or previous is None or template_sizes is None:
            return
        self._judged_count += 1
        size, previous_size = count(record.object, "spec", "replicas"), count(previous.object, "spec", "replicas")
        if size not in {*template_sizes, previous_size}:
            expected = " or ".join(map(str, sorted({*template_sizes, previous_size})))
            reason = f"clique {record.name} was recreated with {size} replicas instead of {expected}"
            self._report_violation(reason, previous, record)

    def _unknown_reason(self, gangs: Gangs, now: float) -> str:
        return "" if self._judged_count else "no clique was recreated"


def _template_name(clique: Record) -> str:
    """Return the name of the clique in the set's template."""
    group, set_name = label(clique.object, labels.GROUP), label(clique.object, labels.PART_OF)
    owner, index = (group, labels.GROUP_INDEX) if group else (set_name, labels.SET_INDEX)
    return clique.name.removeprefix(f"{owner}-{label(clique.object, index)}-")
