"""Tests of the replay of recorded writes: their order, their bodies, and the audit log from which they are read."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest

from conformance.cluster import audit_bodies
from conformance.cluster.audit_bodies import Write
from conformance.cluster.mutating import resources
from conformance.cluster.settings import audit_policy
from conformance.errors import HarnessError
from conformance.scale import replay, write_floor
from conformance.scale.replay import Replay, content_type, dependencies, prepared
from kube.client import APPLY_PATCH, JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from kube.errors import ApiError

SET, CLIQUE, POD = (f"{number * 8}-0000-0000-0000-000000000000" for number in "123")
NEW = "99999999-0000-0000-0000-000000000000"


def write(
    verb: str, resource: str, name: str, body: Any, *, group: str = "", uid: str = "", uri: str = "/there"
) -> Write:
    target = (group, resource.partition("/")[0], "scale", name)
    return Write("operator", "op", verb, group, resource, uri, orjson.dumps(body), target, uid)


def owned(uid: str) -> dict[str, Any]:
    return {"metadata": {"ownerReferences": [{"uid": uid}]}}


WRITES = [
    write("create", "podcliques", "c", owned(SET), group="grove.io", uid=CLIQUE),
    write("create", "serviceaccounts", "account", owned(SET)),
    write("create", "pods", "p", {**owned(CLIQUE), "spec": {"serviceAccountName": "account"}}, uid=POD),
    write("patch", "pods", "p", {"spec": {"schedulingGates": []}}),
    write("patch", "podcliques/status", "c", {"status": {}}, group="grove.io"),
    write("create", "events", "e", {"involvedObject": {"uid": POD}}),
]


def test_a_write_waits_only_for_what_it_needs() -> None:
    assert dependencies(WRITES) == [set(), set(), {0, 1}, {2}, {0}, {2}]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (write("create", "pods", "p", {}), JSON),
        (write("patch", "pods", "p", {"spec": {}}), STRATEGIC_PATCH),
        (write("patch", "deployments", "d", {"spec": {}}, group="apps"), STRATEGIC_PATCH),
        (write("patch", "roles", "r", {}, group="rbac.authorization.k8s.io"), STRATEGIC_PATCH),
        (write("patch", "podcliques", "c", {"spec": {}}, group="grove.io"), MERGE_PATCH),
        (write("patch", "pods", "p", [{"op": "add"}]), JSON_PATCH),
        (write("patch", "pods", "p", {"apiVersion": "v1", "kind": "Pod"}, uri="/p?fieldManager=x"), APPLY_PATCH),
    ],
)
def test_content_types_are_inferred(entry: Write, expected: str) -> None:
    assert content_type(entry) == expected


def body(write: Write, version: str = "") -> Any:
    content = prepared(write, {CLIQUE.encode(): NEW.encode()}, version)
    return None if content is None else orjson.loads(content)


def test_bodies_fit_the_objects_of_the_replay() -> None:
    metadata = {"generateName": "p-", "resourceVersion": "7", "ownerReferences": [{"uid": CLIQUE}]}
    created = body(write("create", "pods", "p-x1", {"metadata": metadata}))
    assert created == {"metadata": {"name": "p-x1", "ownerReferences": [{"uid": NEW}]}}
    assert body(write("patch", "pods", "p", {"metadata": {"resourceVersion": "7"}, "spec": {}})) == {
        "metadata": {},
        "spec": {},
    }
    assert body(write("update", "podcliques", "c", {"metadata": {"resourceVersion": "7"}}), "42") == {
        "metadata": {"resourceVersion": "42"}
    }
    tested = [{"op": "test", "path": "/metadata/resourceVersion", "value": "7"}, {"op": "remove", "path": "/x"}]
    assert body(write("patch", "pods", "p", tested)) == [{"op": "remove", "path": "/x"}]
    assert body(write("delete", "pods", "p", {"preconditions": {"uid": POD}})) is None
    binding = body(write("create", "pods/binding", "p", {"metadata": {"name": "p"}, "target": {"name": "n"}}))
    assert binding == {"metadata": {"name": "p"}, "target": {"name": "n"}}


class FakeClient:
    def __init__(self, refuse: str = "") -> None:
        self.sent: list[tuple[str, str, Any]] = []
        self._refuse = refuse

    async def request(self, method: str, path: str, *, body: bytes | None, content_type: str) -> bytes:
        await asyncio.sleep(0)
        document = None if body is None else orjson.loads(body)
        self.sent.append((method, path, document))
        if method == self._refuse:
            raise ApiError.of(422, b"no", None)
        return orjson.dumps({"metadata": {"uid": NEW, "resourceVersion": "1"}})


async def test_everything_is_sent_once_and_owners_first() -> None:
    client: Any = FakeClient()
    await Replay(client, WRITES, {SET: NEW}, 32).all()
    assert sorted(method for method, _, _ in client.sent) == ["PATCH", "PATCH", "POST", "POST", "POST", "POST"]
    pod = next(document for _, _, document in client.sent if document and "serviceAccountName" in str(document))
    assert pod["metadata"] == {"name": "p", "ownerReferences": [{"uid": NEW}]}


async def test_the_order_is_that_of_the_recording_where_nothing_waits() -> None:
    client: Any = FakeClient()
    status = write("patch", "podcliques/status", "c", {"status": {}}, group="grove.io", uri="/status")
    later_write = write("create", "podgangs", "g", owned(SET), group="scheduler.grove.io", uri="/late")
    await Replay(client, [*WRITES[:4], status, later_write], {SET: NEW}, 1).all()
    assert [path for _, path, _ in client.sent] == ["/there"] * 4 + ["/status", "/late"]


async def test_a_refusal_ends_the_replay() -> None:
    client: Any = FakeClient(refuse="PATCH")
    with pytest.raises(HarnessError, match="could not repeat patch"):
        await Replay(client, WRITES, {SET: NEW}, 32).all()


def test_other_writes_than_the_recorded_ones_are_an_error() -> None:
    recorded = replay.counted(WRITES)
    write_floor._compare(recorded, recorded.copy())
    sent = recorded.copy()
    sent["patch", "pods"] += 1
    del sent["create", "events"]
    with pytest.raises(HarnessError, match="0 instead of 1 create events; 2 instead of 1 patch pods"):
        write_floor._compare(recorded, sent)


def line(verb: str, code: int, namespace: str, **fields: Any) -> bytes:
    event = {
        "stage": "ResponseComplete",
        "verb": verb,
        "requestURI": f"/api/v1/namespaces/{namespace}/pods",
        "user": {"username": "operator"},
        "userAgent": "op/1 (linux)",
        "objectRef": {"resource": "pods", "namespace": namespace, **fields},
        "responseStatus": {"code": code},
        "requestObject": {"spec": {}},
        "responseObject": {"metadata": {"name": "p-x1", "uid": POD}},
    }
    return orjson.dumps(event) + b"\n"


def test_accepted_writes_of_the_namespace_are_read_with_their_bodies(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    first_line = line("create", 201, "scale")
    log.write_bytes(
        first_line
        + line("create", 201, "scale")
        + line("create", 409, "scale", name="p")
        + line("get", 200, "scale", name="p")
        + line("create", 201, "other")
        + line("patch", 200, "scale", name="p", subresource="status")
    )
    created, patched = audit_bodies.writes(log, "scale", len(first_line))
    assert created.target == ("", "pods", "scale", "p-x1") and created.uid == POD and created.body == b'{"spec":{}}'
    assert (patched.resource, patched.uid, patched.user, patched.program) == ("pods/status", "", "operator", "op")


def test_bodies_are_logged_only_where_they_are_asked_for() -> None:
    bodies = [rule for rule in audit_policy()["rules"] if rule["level"] == "RequestResponse"]
    logged = [rule["resources"] for rule in bodies]
    assert logged[:2] == [
        [{"group": "", "resources": [resource]}] for resource in ("pods/status", "serviceaccounts/token")
    ]
    assert logged[2:] == [resources()]
    assert [rule["level"] for rule in audit_policy(bodies=True)["rules"]] == [
        "None",
        "None",
        "RequestResponse",
        "Metadata",
    ]
