"""Finds MUSTs that rest on a place in a document which another requirement quotes as a contradiction.

Where public documents disagree, what all of them say is a MUST, and the rest is a SHOULD that quotes both sides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from conformance.suite.registry.basis import Quotation
from conformance.suite.registry.requirement import Level, Requirement


def contested(entries: Iterable[Requirement]) -> Iterator[tuple[Requirement, str]]:
    """Yield each MUST that a document contradicts, and each MUST that quotes the same place or the same words as a
    contradiction to another requirement. Each comes with a message."""
    requirements = list(entries)
    contradictions = [(quotation, entry.id) for entry in requirements for quotation in entry.basis.contradictions]
    for entry in requirements:
        if entry.level is not Level.MUST:
            continue
        if entry.basis.contradictions:
            yield entry, "a MUST that a document contradicts"
        for quotation in entry.basis.quotations:
            if contradicted := dict.fromkeys(id for other, id in contradictions if _same(quotation, other)):
                yield (
                    entry,
                    f"quotes {quotation.document}, {quotation.place}, which contradicts {', '.join(contradicted)}",
                )


def _same(one: Quotation, other: Quotation) -> bool:
    """Return whether two quotations are from the same place, or one has the words of the other."""
    if one.document != other.document:
        return False
    return one.place == other.place or (bool(one.words) and (one.words in other.words or other.words in one.words))
