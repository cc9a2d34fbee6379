"""The API server's audit log: the writes, their clients and their numbers.

The log contains writes, and contains reads only if the settings of the cluster request them; it contains few of the
requests for Leases (see `settings.audit_policy`). A line appears shortly after the client has received its response.
For an exact count, take the final mark while the cluster is idle. The user of a request is its actor (see
`identities`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from conformance.cluster import identities
from conformance.cluster.facts import ClusterProperties
from conformance.cluster.growing import GrowingFile
from conformance.cluster.identities import Identities
from conformance.errors import HarnessError
from kube import nesting


class AuditKey(NamedTuple):
    """One kind of request. `resource` is `pods` or `pods/status`; `group` is empty for the core group."""

    verb: str
    group: str
    resource: str
    user: str
    agent: str
    code: int

    @property
    def program(self) -> str:
        """Return the program from the user agent: `kube-scheduler` from `kube-scheduler/v1.36.3 (linux/amd64) …`."""
        return self.agent.partition("/")[0]


class AuditedRequest(NamedTuple):
    """A request. `program` is the client, as in `AuditKey.program`; `code` is the status code of the response;
    `namespace` is empty for cluster-scoped objects; `at` is in seconds since 1970 by the server's clock; `resource` is
    as in `AuditKey.resource`; `name` is empty if the server generates it. If the log has bodies, `version` is the
    resource version after a write, `sent` the request body and `answer` the response body; otherwise they are empty. A
    dry run stores nothing. `message` is the API server's message if it has rejected the request."""

    program: str
    code: int
    verb: str = ""
    namespace: str = ""
    at: float = 0.0
    resource: str = ""
    name: str = ""
    user: str = ""
    version: str = ""
    sent: bytes = b""
    answer: bytes = b""
    dry_run: bool = False
    message: str = ""


class Writer(NamedTuple):
    """The writer of an accepted write. The client itself chooses the user agent."""

    user: str
    agent: str


class _Extra(msgspec.Struct, frozen=True, gc=False):
    credentials: tuple[str, ...] = msgspec.field(name="authentication.kubernetes.io/credential-id", default=())


class _User(msgspec.Struct, frozen=True, gc=False):
    username: str = ""
    extra: _Extra = _Extra()


class _Annotations(msgspec.Struct, frozen=True, gc=False):
    issued: str = msgspec.field(name="authentication.kubernetes.io/issued-credential-id", default="")


class _Object(msgspec.Struct, frozen=True, gc=False):
    namespace: str = ""
    name: str = ""
    resource: str = ""
    subresource: str = ""
    apiGroup: str = ""  # noqa: N815 - as in the log

    @property
    def path(self) -> str:
        """Return the resource with its subresource: `pods` or `pods/status`."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


class _Status(msgspec.Struct, frozen=True, gc=False):
    code: int = 0
    message: str = ""


class _Metadata(msgspec.Struct, frozen=True, gc=False):
    resourceVersion: str = ""  # noqa: N815


class _Response(msgspec.Struct, frozen=True, gc=False):
    metadata: _Metadata = _Metadata()
    status: msgspec.Raw = msgspec.Raw(b"")


class _Issued(msgspec.Struct, frozen=True, gc=False):
    token: str


class _Event(msgspec.Struct, frozen=True, gc=False):
    stage: str
    verb: str
    user: _User = _User()
    userAgent: str = ""  # noqa: N815
    requestURI: str = ""  # noqa: N815
    objectRef: _Object = _Object()  # noqa: N815
    responseStatus: _Status = _Status()  # noqa: N815
    stageTimestamp: datetime = datetime.fromtimestamp(0, UTC)  # noqa: N815
    requestObject: msgspec.Raw = msgspec.Raw(b"")  # noqa: N815
    responseObject: msgspec.Raw = msgspec.Raw(b"")  # noqa: N815
    annotations: _Annotations = _Annotations()

    @property
    def credential(self) -> str:
        """Return the id of the client's credential; empty if the client has none."""
        return "".join(self.user.extra.credentials)

    @property
    def issued(self) -> str:
        """Return the id of the service account token that the request has issued; empty if there is none. An admission
        webhook can write the annotation before the API server does, so the token itself is used if the log contains
        it."""
        if self.objectRef.path != TOKENS or self.verb != "create" or self.responseStatus.code >= 300:
            return ""
        if self.responseObject and (status := _RESPONSE_DECODER.decode(self.responseObject).status):
            return identities.token_id(_ISSUED_DECODER.decode(status).token)
        return self.annotations.issued

    @property
    def key(self) -> AuditKey:
        """Return the kind of request."""
        return AuditKey(
            self.verb,
            self.objectRef.apiGroup,
            self.objectRef.path,
            self.user.username,
            self.userAgent,
            self.responseStatus.code,
        )

    @property
    def request(self) -> AuditedRequest:
        """Return the event as a request."""
        reference, response = self.objectRef, bytes(self.responseObject)
        return AuditedRequest(
            program=self.userAgent.partition("/")[0],
            code=self.responseStatus.code,
            verb=self.verb,
            namespace=reference.namespace,
            at=self.stageTimestamp.timestamp(),
            resource=reference.path,
            name=reference.name,
            user=self.user.username,
            version=_RESPONSE_DECODER.decode(response).metadata.resourceVersion if response else "",
            sent=bytes(self.requestObject),
            answer=response,
            dry_run="dryRun=" in self.requestURI,
            message=self.responseStatus.message,
        )


_EVENT_DECODER, _RESPONSE_DECODER = msgspec.json.Decoder(_Event), msgspec.json.Decoder(_Response)
_ISSUED_DECODER = msgspec.json.Decoder(_Issued)
TOKENS = "serviceaccounts/token"
_TOKEN_FIELD = b'"token"'
"""A part of every line about a token request. Other lines need not be decoded."""

READ_VERBS = ("get", "list", "watch")
CONFLICT = 409


class AuditTail:
    """Reads a log from its current end, or from a mark. Watches are left out, because clients renew them
    periodically."""

    def __init__(self, log: AuditLog, begin: int | None = None) -> None:
        self._log, self._offset = log, log.mark() if begin is None else begin

    def poll(self) -> list[AuditedRequest]:
        """Return the requests that were answered since the last call."""
        requests: list[AuditedRequest] = []
        for event, end in self._log.events(self._offset):
            self._offset = end
            if event.verb != "watch":
                requests.append(event.request)
        return requests


class AuditLog:
    """The audit log at `path`, which need not exist yet. `certificate` is the id of the certificate of the cluster's
    components. All methods raise HarnessError if a program other than the API server has written to the log."""

    def __init__(self, path: Path, certificate: str = "") -> None:
        self._log, self._identities, self._tokens_read_until = GrowingFile(path), Identities(certificate), 0
        self._log.end()  # the current content cannot be changed unnoticed from now on

    @classmethod
    def of(cls, cluster: ClusterProperties) -> AuditLog:
        """Return the audit log of a cluster of the suite."""
        return cls(cluster.audit_log, identities.certificate_id(cluster.pki / "admin.crt"))

    def mark(self) -> int:
        """Return the current end of the log in bytes, for use as `begin` or `until`."""
        return self._log.end()

    def count(self, begin: int = 0, until: int | None = None, namespace: str | None = None) -> Counter[AuditKey]:
        """Count the finished writes between two marks, whether accepted or rejected (see the code). If a namespace is
        given, count only the writes in that namespace."""
        return Counter(
            event.key for event in self._finished_writes(begin, until) if namespace in (None, event.objectRef.namespace)
        )

    def requests(self, begin: int = 0) -> Counter[AuditKey]:
        """Count all requests since a mark, including reads if the cluster logs them. A watch is counted when it
        starts."""
        return Counter(
            event.key
            for event, _ in self.events(begin)
            if event.stage == ("ResponseStarted" if event.verb == "watch" else "ResponseComplete")
        )

    def refused(self, namespace: str, begin: int = 0) -> Counter[str]:
        """Count the forbidden and invalid writes in a namespace since a mark, by verb and resource. The same requests
        would be rejected again."""
        return Counter(
            f"{event.verb} {event.objectRef.path}"
            for event in self._finished_writes(begin)
            if event.objectRef.namespace == namespace and event.responseStatus.code in (403, 422)
        )

    def refusal_codes(self, namespace: str, resource: str, begin: int = 0) -> set[int]:
        """Return the status codes with which writes of a resource in a namespace were rejected since a mark."""
        return {
            event.responseStatus.code
            for event in self._finished_writes(begin)
            if event.objectRef.path == resource
            and event.objectRef.namespace == namespace
            and event.responseStatus.code >= 400
        }

    def refused_creation_messages(self, namespace: str, begin: int = 0) -> list[str]:
        """Return the messages with which the API server rejected creations in a namespace since a mark, without
        duplicates."""
        messages = {
            event.responseStatus.message: None
            for event in self._finished_writes(begin)
            if event.objectRef.namespace == namespace
            and event.verb == "create"
            and event.responseStatus.code >= 400
            and event.responseStatus.code != CONFLICT
        }
        return list(messages)

    def writers(self, plural: str, names: Collection[str], verbs: Collection[str], begin: int = 0) -> list[Writer]:
        """Return the writers of accepted writes since a mark to cluster-scoped objects with these names, or to a whole
        collection."""
        return [
            Writer(event.user.username, event.userAgent)
            for event in self._finished_writes(begin)
            if event.objectRef.resource == plural
            and event.verb in verbs
            and (event.objectRef.name in names or not event.objectRef.name)
            and event.responseStatus.code < 300
        ]

    def accepted(self, begin: int = 0) -> Iterator[AuditedRequest]:
        """Yield the accepted writes since a mark, without dry runs."""
        requests = (event.request for event in self._finished_writes(begin) if event.responseStatus.code < 300)
        return (request for request in requests if not request.dry_run)

    def rejected(self, mark: int = 0) -> Iterator[AuditedRequest]:
        """Yield the writes since a mark that the API server has rejected."""
        return (event.request for event in self._finished_writes(mark) if event.responseStatus.code >= 400)

    def _finished_writes(self, begin: int, until: int | None = None) -> Iterator[_Event]:
        for event, _ in self.events(begin, until):
            if event.stage == "ResponseComplete" and event.verb not in READ_VERBS:
                yield event

    def events(self, begin: int, until: int | None = None) -> Iterator[tuple[_Event, int]]:
        """Yield the events between two marks, each with the offset at which it ends."""
        until = self.mark() if until is None else until
        self._record_tokens()
        for line, end in self._log.lines(begin):
            if end - len(line) >= until:
                return
            event = self._event(line, end)
            actor = self._actor(event)
            if actor != event.user.username:
                event = msgspec.structs.replace(event, user=_User(actor))
            yield event, end

    def _record_tokens(self) -> None:
        """Record the tokens that were issued since the last call. The API server logs the issue of a token before it
        sends the token."""
        for line, end in self._log.lines(self._tokens_read_until):
            self._tokens_read_until = end
            if _TOKEN_FIELD not in line:
                continue
            event = self._event(line, end)
            try:
                issued = event.issued
            except (msgspec.MsgspecError, ValueError) as error:
                raise self._event_error(end, error) from error
            if issued:
                self._identities.issued(issued, self._actor(event))

    def _actor(self, event: _Event) -> str:
        return self._identities.actor(event.user.username, event.credential)

    def _event(self, line: bytes, end: int) -> _Event:
        try:
            return _EVENT_DECODER.decode(nesting.limit_depth(line, "the audit log"))
        except msgspec.MsgspecError as error:
            raise self._event_error(end, error) from error

    def _event_error(self, end: int, error: Exception) -> HarnessError:
        return self._log.wrong(f"has a line that is no audit event, before byte {end}: {error}")
