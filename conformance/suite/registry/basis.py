"""What a requirement rests on: which public document says so, and where.

`documents.yaml` lists the documents. A requirement quotes them, so that whoever disagrees can look them up.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from conformance import documents

FILE = Path(__file__).parent / "documents.yaml"
SCHEMA = Path(__file__).parent / "documents.schema.json"


class Kind(StrEnum):
    """What says so. Only the first two carry a MUST."""

    DOCUMENT = "document"
    """A proposal, a user guide, a comment of an API type, or a CRD's schema."""
    CONVENTION = "convention"
    """What Kubernetes asks of every API and controller, or promises of its own."""
    DECISION = "decision"
    """Documents are silent, or contradict each other; this project chose."""
    CODE = "code"
    """Only upstream's code does so: a matter of compatibility, not of conformance."""


BINDING = frozenset({Kind.DOCUMENT, Kind.CONVENTION})


@dataclass(frozen=True)
class PublicDocument:
    """A document that others can read. `read` says which version of it was."""

    id: str
    title: str
    kind: str
    state: str
    link: str
    read: str


@dataclass(frozen=True)
class Quotation:
    """A sentence of a document: its id, the heading or the field, and the words."""

    document: str
    place: str
    words: str = ""


@dataclass(frozen=True)
class Basis:
    """What a requirement rests on. `unwritten` is what of its sentence no quotation carries, `reason` why it was
    decided so."""

    kind: Kind = Kind.DECISION
    quotations: tuple[Quotation, ...] = ()
    unwritten: str = ""
    reason: str = ""


NONE = Basis()


@functools.cache
def known() -> Mapping[str, PublicDocument]:
    """Return all documents by id. Raises UsageError (file, line, field)."""
    listed = documents.read(FILE, SCHEMA).value["documents"]
    return {entry["id"]: PublicDocument(**entry) for entry in listed}


def read(entry: Mapping[str, Any]) -> Basis:
    """Return the basis of a requirement as its file has it."""
    return Basis(
        Kind(entry["basis"]),
        tuple(Quotation(*map(_line, quote)) for quote in entry.get("quotes", ())),
        _line(entry.get("unwritten", "")),
        _line(entry.get("reason", "")),
    )


def _line(text: str) -> str:
    return " ".join(text.split())


def in_short(basis: Basis) -> str:
    """Return who says so, as one line: the first document with its words, or the kind of the basis."""
    if basis.kind not in BINDING or not basis.quotations:
        return f"no document ({basis.kind})"
    first = basis.quotations[0]
    document = known()[first.document]
    return f"{document.title}, {first.place}: “{first.words}” {document.link}"
