"""Writes with their bodies, read from the audit log of a cluster whose settings request bodies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from conformance.cluster.audit import READ_VERBS
from kube import nesting


class _Metadata(msgspec.Struct):
    name: str = ""
    uid: str = ""


class _Response(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _Reference(msgspec.Struct, rename="camel"):
    namespace: str = ""
    name: str = ""
    resource: str = ""
    subresource: str = ""
    api_group: str = ""


class _User(msgspec.Struct):
    username: str = ""


class _Status(msgspec.Struct):
    code: int = 0


class _Event(msgspec.Struct, rename="camel"):
    stage: str
    verb: str
    request_uri: str = msgspec.field(name="requestURI", default="")
    user: _User = msgspec.field(default_factory=_User)
    user_agent: str = ""
    object_ref: _Reference = msgspec.field(default_factory=_Reference)
    response_status: _Status = msgspec.field(default_factory=_Status)
    request_object: msgspec.Raw = msgspec.Raw(b"")
    response_object: msgspec.Raw = msgspec.Raw(b"")


_EVENT_DECODER, _RESPONSE_DECODER = msgspec.json.Decoder(_Event), msgspec.json.Decoder(_Response)


@dataclass(frozen=True)
class Write:
    """An accepted write. `resource` is `pods` or `pods/status`. `target` is the changed object: group, resource,
    namespace and name. `uid` is the uid of the object if the write created it, otherwise empty."""

    user: str
    program: str
    verb: str
    group: str
    resource: str
    uri: str
    body: bytes
    target: tuple[str, str, str, str]
    uid: str


def writes(path: Path, namespace: str, begin: int = 0) -> Iterator[Write]:
    """Yield the accepted writes to a namespace since a mark (`AuditLog.mark`, taken while the cluster was idle)."""
    with path.open("rb") as log:
        log.seek(begin)
        for line in log:
            event = _EVENT_DECODER.decode(nesting.limit_depth(line, "the audit log"))
            if (
                event.stage == "ResponseComplete"
                and event.verb not in READ_VERBS
                and event.response_status.code < 300
                and event.object_ref.namespace == namespace
            ):
                yield _write(event)


def _write(event: _Event) -> Write:
    reference = event.object_ref
    metadata = _RESPONSE_DECODER.decode(event.response_object).metadata if event.response_object else _Metadata()
    creates = event.verb == "create" and not reference.subresource
    return Write(
        user=event.user.username,
        program=event.user_agent.partition("/")[0],
        verb=event.verb,
        group=reference.api_group,
        resource=f"{reference.resource}/{reference.subresource}" if reference.subresource else reference.resource,
        uri=event.request_uri,
        body=bytes(event.request_object),
        target=(reference.api_group, reference.resource, reference.namespace, reference.name or metadata.name),
        uid=metadata.uid if creates else "",
    )
