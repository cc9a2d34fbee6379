"""Typed views of the fields that every Kubernetes object has. Only fields that are used are declared; all others are
ignored."""

from __future__ import annotations

from typing import Protocol

import msgspec


class OwnerReference(msgspec.Struct, rename="camel", gc=False):
    """`metadata.ownerReferences[]`."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(msgspec.Struct, rename="camel"):
    """`metadata`. `deletion_timestamp` is the RFC 3339 text, or None for an object that is not being deleted."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    owner_references: list[OwnerReference] | None = None

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return (self.namespace, self.name)

    @property
    def controller(self) -> OwnerReference | None:
        """The owner reference with `controller: true`, if any."""
        return next((o for o in self.owner_references or () if o.controller), None)

    def label(self, key: str) -> str:
        """Return the value of a label, or an empty string if the label is absent."""
        return (self.labels or {}).get(key, "")


class Object(Protocol):
    """Any object with metadata; the informer cache can hold it."""

    @property
    def metadata(self) -> ObjectMeta:
        """The object's metadata."""
        ...


Key = tuple[str, str]
"""Namespace (empty for cluster-scoped objects) and name."""


class Envelope(msgspec.Struct):
    """An object whose metadata alone is decoded; `raw` keeps all bytes as received."""

    metadata: ObjectMeta
    raw: bytes = b""


class _MetadataOnly(msgspec.Struct):
    metadata: ObjectMeta


_metadata = msgspec.json.Decoder(_MetadataOnly)


def envelope(raw: bytes | msgspec.Raw) -> Envelope:
    """Decode the metadata and keep the bytes, so that no evidence is lost."""
    data = bytes(raw)
    return Envelope(_metadata.decode(data).metadata, data)
