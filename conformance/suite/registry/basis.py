"""The basis of a requirement: the public document that states it, and the place in that document.

`documents.yaml` lists the documents. A requirement quotes them, so that readers who disagree can check the source.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from conformance import documents
from conformance.documents import suggestion
from conformance.errors import UsageError

FILE = Path(__file__).parent / "documents.yaml"
SCHEMA = Path(__file__).parent / "documents.schema.json"
ANCHORS = Path(__file__).parent / "anchors.json"
"""A file written by `tests/citations/quotations.py`: document id → place of a quotation → anchor of its heading or
line."""


class BasisKind(StrEnum):
    """The basis of a requirement. Only a document or a convention can justify a MUST."""

    DOCUMENT = "document"
    """A proposal, a user guide, a comment of an API type, or a CRD's schema."""
    CONVENTION = "convention"
    """A convention of Kubernetes for all APIs and controllers, or a promise of Kubernetes' own API."""
    DECISION = "decision"
    """Documents are silent or contradict each other, and this project chose."""
    CODE = "code"
    """Only upstream's code does so, which makes it a matter of compatibility, not of conformance."""


BINDING_KINDS = frozenset({BasisKind.DOCUMENT, BasisKind.CONVENTION})


class DocumentState(StrEnum):
    """The state that a document has in the project of its authors."""

    MERGED = "merged"
    PUBLISHED = "published"
    """A web page, of which only the newest version exists."""
    OPEN = "open"
    CLOSED = "closed"
    """A proposal that was not accepted, or a closed issue."""
    REVERTED = "reverted"
    """Merged, and later reverted."""
    UNPUBLISHED = "unpublished"
    """The text is not public."""


AUTHORITATIVE_STATES = frozenset({DocumentState.MERGED, DocumentState.PUBLISHED})
"""States in which a document can support a MUST by itself."""
UNAUTHORITATIVE_KINDS = frozenset({"code", "discussion"})
"""Kinds of documents that do not bind implementations."""


@dataclass(frozen=True)
class PublicDocument:
    """A public document. `commit` is the commit with its text (for a thread, its change); `date` is the day of the
    commit, or the month in which the document was read; `thread` determines the state of a file that has no state of
    its own."""

    id: str
    title: str
    kind: str
    state: DocumentState
    link: str
    date: str
    commit: str = ""
    thread: str = ""
    reverted_by: str = ""

    @property
    def version(self) -> str:
        """Return a description of the version of the document that was read."""
        version = f"commit {self.commit} of {self.date}" if self.commit else f"read {self.date}"
        state = "" if self.state in AUTHORITATIVE_STATES else f"{self.state}, "
        reverted = f", reverted by {self.reverted_by}" if self.reverted_by else ""
        return f"{state}{version}{reverted}"


@dataclass(frozen=True)
class Quotation:
    """A quotation: the id of the document, the heading or field, and the words."""

    document: str
    place: str
    words: str = ""


@dataclass(frozen=True)
class Basis:
    """The basis of a requirement. `contradictions` quote documents that contradict the requirement, `unwritten` is the
    part of its sentence that no quotation supports, and `reason` says why it was decided this way."""

    kind: BasisKind = BasisKind.DECISION
    quotations: tuple[Quotation, ...] = ()
    contradictions: tuple[Quotation, ...] = ()
    unwritten: str = ""
    reason: str = ""


NO_BASIS = Basis()


@functools.cache
def load_documents() -> Mapping[str, PublicDocument]:
    """Return all documents by id. Raises UsageError with file, line and field if the list is invalid."""
    entries = documents.read(FILE, SCHEMA).value["documents"]
    return {entry["id"]: _document(entry) for entry in entries}


def read(entry: Mapping[str, Any]) -> Basis:
    """Return the basis from a requirement's entry in its file."""
    return Basis(
        BasisKind(entry["basis"]),
        _quotations(entry.get("quotes", ())),
        _quotations(entry.get("contradicts", ())),
        _one_line(entry.get("unwritten", "")),
        _one_line(entry.get("reason", "")),
    )


def _quotations(quotes: Iterable[Iterable[str]]) -> tuple[Quotation, ...]:
    return tuple(Quotation(*map(_one_line, quote)) for quote in quotes)


def check(document: documents.Document) -> None:
    """Raise UsageError (file, line, field) if a file of requirements quotes a document that is not listed."""
    for number, entry in enumerate(document.value["requirements"]):
        for part in ("quotes", "contradicts"):
            for place, (id, *_) in enumerate(entry.get(part, ())):
                if id not in load_documents():
                    location = document.location("requirements", number, part, place)
                    raise UsageError(
                        f"{id!r} is not a listed document", where=location, hint=suggestion(id, load_documents())
                    )


def _document(entry: Mapping[str, Any]) -> PublicDocument:
    fields = {**entry, "state": DocumentState(entry["state"]), "reverted_by": entry.get("revertedBy", "")}
    fields.pop("revertedBy", None)
    return PublicDocument(**fields)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def summary(basis: Basis) -> str:
    """Return the basis as one line: the first document with its words, or the kind of the basis."""
    if basis.kind not in BINDING_KINDS or not basis.quotations:
        return f"no document ({basis.kind})"
    return _cited(basis.quotations[0])


def contradictions(basis: Basis) -> str:
    """Return the documents that contradict a requirement, each with its words; empty if there are none."""
    return "; ".join(map(_cited, basis.contradictions))


def _cited(quotation: Quotation) -> str:
    document = load_documents()[quotation.document]
    return f"{document.title}, {quotation.place}: “{quotation.words}” {address(quotation)}"


def address(quotation: Quotation) -> str:
    """Return the link of a quotation: to the heading or the line of its words, if that is known."""
    anchor = _anchors().get(quotation.document, {}).get(quotation.place)
    return load_documents()[quotation.document].link + (f"#{anchor}" if anchor else "")


@functools.cache
def _anchors() -> Mapping[str, Mapping[str, str]]:
    return msgspec.json.decode(ANCHORS.read_bytes(), type=dict[str, dict[str, str]])
