"""The basis of a requirement: the public document that states it, and the place in that document.

`documents.yaml` lists the documents. A requirement quotes them, so that readers who disagree can check the source.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from conformance import documents, formats
from conformance.documents import suggestion
from conformance.errors import UsageError
from conformance.formats import Format, Text

FILE = Path(__file__).parent / "documents.yaml"
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


Commit = Annotated[str, Meta(pattern="^[0-9a-f]{8}$")]


class PublicDocument(Format, frozen=True):
    """A public document. `commit` is the commit with its text (for a thread, its change)."""

    id: Annotated[str, Meta(pattern="^[a-z0-9]+(-[a-z0-9]+)*$")]
    title: Annotated[str, Meta(min_length=3)]
    kind: Literal["proposal", "guide", "api", "schema", "convention", "discussion", "code"]
    state: DocumentState
    link: Annotated[str, Meta(pattern="^https://")]
    date: Annotated[
        str,
        Meta(
            pattern="^[0-9]{4}-[0-9]{2}(-[0-9]{2})?$",
            description="day of the commit; month of reading where no commit is known",
        ),
    ]
    commit: Commit = ""
    thread: Annotated[
        str,
        Meta(
            pattern="^[^/#]+/[^/#]+#[0-9]+$",
            description="the pull request that decides the state of a file outside upstream's main branch",
        ),
    ] = ""
    reverted_by: Commit = ""

    @property
    def version(self) -> str:
        """Return a description of the version of the document that was read."""
        version = f"commit {self.commit} of {self.date}" if self.commit else f"read {self.date}"
        state = "" if self.state in AUTHORITATIVE_STATES else f"{self.state}, "
        reverted = f", reverted by {self.reverted_by}" if self.reverted_by else ""
        return f"{state}{version}{reverted}"


class DocumentList(Format, frozen=True):
    """The format of documents.yaml."""

    api_version: Literal["conformance.grove.io/v1alpha1"]
    kind: Literal["PublicDocuments"]
    documents: list[
        Annotated[PublicDocument, Meta(extra_json_schema={"dependentRequired": {"revertedBy": ["commit"]}})]
    ]


class Quotation(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """id of a document; heading, field or path in it; its words, one sentence at most"""

    document: str
    place: Text
    words: Annotated[str, Meta(min_length=5, max_length=320)] = ""


class Basis(Format, frozen=True, kw_only=True):
    """The basis of a requirement: the part of its entry that says why."""

    basis: Annotated[BasisKind, Meta(description="what says so")]
    quotes: Annotated[tuple[Quotation, ...], Meta(min_length=1, max_length=8)] = ()
    contradicts: Annotated[
        tuple[Annotated[Quotation, Meta(extra_json_schema={"minItems": 3})], ...],
        Meta(min_length=1, max_length=5, description="documents that say otherwise, with their words: no MUST then"),
    ] = ()
    unwritten: Annotated[str, Meta(min_length=5, description="what of the sentence no quotation carries")] = ""
    reason: Annotated[str, Meta(min_length=5, description="why it was decided so")] = ""


@functools.cache
def load_documents() -> Mapping[str, PublicDocument]:
    """Return all documents by id. Raises UsageError with file, line and field if the list is invalid."""
    return {document.id: document for document in formats.read(FILE, DocumentList)[1].documents}


def check(document: documents.Document, entries: Sequence[Basis]) -> None:
    """Raise UsageError (file, line, field) if a file of requirements quotes a document that is not listed."""
    for number, entry in enumerate(entries):
        for part, quotations in (("quotes", entry.quotes), ("contradicts", entry.contradicts)):
            for place, quotation in enumerate(quotations):
                if quotation.document not in load_documents():
                    raise UsageError(
                        f"{quotation.document!r} is not a listed document",
                        where=document.location("requirements", number, part, place),
                        hint=suggestion(quotation.document, load_documents()),
                    )


def summary(basis: Basis) -> str:
    """Return the basis as one line: the first document with its words, or the kind of the basis."""
    if basis.basis not in BINDING_KINDS or not basis.quotes:
        return f"no document ({basis.basis})"
    return _cited(basis.quotes[0])


def contradictions(basis: Basis) -> str:
    """Return the documents that contradict a requirement, each with its words; empty if there are none."""
    return "; ".join(map(_cited, basis.contradicts))


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
