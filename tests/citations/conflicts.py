"""Finds MUSTs that quote a place in a document that another requirement quotes as a contradiction.

If public documents disagree, a MUST says what all of them say, and a SHOULD that quotes both sides says the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from conformance.suite.registry.basis import Quotation
from conformance.suite.registry.requirement import Level, Requirement


def contested_musts(entries: Iterable[Requirement]) -> Iterator[tuple[Requirement, str]]:
    """Yield each MUST that a document contradicts, and each MUST that quotes the same place or the same words as a
    contradiction to another requirement, with a message."""
    requirements = list(entries)
    contradictions = [(quotation, entry.id) for entry in requirements for quotation in entry.contradicts]
    for entry in requirements:
        if entry.level is not Level.MUST:
            continue
        if entry.contradicts:
            yield entry, "a MUST that a document contradicts"
        for quotation in entry.quotes:
            if contradicted_ids := dict.fromkeys(
                id for other_quotation, id in contradictions if _are_same(quotation, other_quotation)
            ):
                yield (
                    entry,
                    f"quotes {quotation.document}, {quotation.place}, which contradicts {', '.join(contradicted_ids)}",
                )


def _are_same(quotation: Quotation, other_quotation: Quotation) -> bool:
    """Return whether two quotations are from the same place, or one contains the words of the other."""
    if quotation.document != other_quotation.document:
        return False
    return quotation.place == other_quotation.place or (
        bool(quotation.words) and (quotation.words in other_quotation.words or other_quotation.words in quotation.words)
    )
