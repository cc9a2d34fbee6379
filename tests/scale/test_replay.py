"""Tests of the replay of recorded writes: their order, their bodies, and their extraction from the audit log."""

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
from conformance.scale.replay import Replay, content_type, dependencies, prepare_body
from kube.client import APPLY_PATCH, JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from kube.errors import ApiError

SET_UID, CLIQUE_UID, POD_UID = (f"{number * 8}-0000-0000-0000-000000000000" for number in "123")
NEW_UID = "99999999-0000-0000-0000-000000000000"


def write(
    verb: str, resource: str, name: str, body: Any, *, group: str = "", uid: str = "", uri: str = "/there"
) -> Write:
    target = (group, resource.partition("/")[0], "scale", name)
    return Write("operator", "op", verb, group, resource, uri, orjson.dumps(body), target, uid)


def owned_by(uid: str) -> dict[str, Any]:
    return {"metadata": {"ownerReferences": [{"uid": uid}]}}


WRITES = [
    write("create", "podcliques", "c", owned_by(SET_UID), group="grove.io", uid=CLIQUE_UID),
    write("create", "serviceaccounts", "account", owned_by(SET_UID)),
    write("create", "pods", "p", {**owned_by(CLIQUE_UID), "spec": {"serviceAccountName": "account"}}, uid=POD_UID),
    write("patch", "pods", "p", {"spec": {"schedulingGates": []}}),
    write("patch", "podcliques/status", "c", {"status": {}}, group="grove.io"),
    write("create", "events", "e", {"involvedObject": {"uid": POD_UID}}),
]


def test_a_write_waits_only_for_its_dependencies() -> None:
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


def replayed_body(write: Write, version: str = "") -> Any:
    content = prepare_body(write, {CLIQUE_UID.encode(): NEW_UID.encode()}, version)
    return None if content is None else orjson.loads(content)


def test_bodies_fit_the_objects_of_the_replay() -> None:
    metadata = {"generateName": "p-", "resourceVersion": "7", "ownerReferences": [{"uid": CLIQUE_UID}]}
    created_body = replayed_body(write("create", "pods", "p-x1", {"metadata": metadata}))
    assert created_body == {"metadata": {"name": "p-x1", "ownerReferences": [{"uid": NEW_UID}]}}
    assert replayed_body(write("patch", "pods", "p", {"metadata": {"resourceVersion": "7"}, "spec": {}})) == {
        "metadata": {},
        "spec": {},
    }
    assert replayed_body(write("update", "podcliques", "c", {"metadata": {"resourceVersion": "7"}}), "42") == {
        "metadata": {"resourceVersion": "42"}
    }
    json_patch = [{"op": "test", "path": "/metadata/resourceVersion", "value": "7"}, {"op": "remove", "path": "/x"}]
    assert replayed_body(write("patch", "pods", "p", json_patch)) == [{"op": "remove", "path": "/x"}]
    assert replayed_body(write("delete", "pods", "p", {"preconditions": {"uid": POD_UID}})) is None
    binding = replayed_body(write("create", "pods/binding", "p", {"metadata": {"name": "p"}, "target": {"name": "n"}}))
    assert binding == {"metadata": {"name": "p"}, "target": {"name": "n"}}


class FakeClient:
    def __init__(self, refused_method: str = "") -> None:
        self.requests: list[tuple[str, str, Any]] = []
        self._refused_method = refused_method

    async def request(self, method: str, path: str, *, body: bytes | None, content_type: str) -> bytes:
        await asyncio.sleep(0)
        document = None if body is None else orjson.loads(body)
        self.requests.append((method, path, document))
        if method == self._refused_method:
            raise ApiError.of(422, b"no", None)
        return orjson.dumps({"metadata": {"uid": NEW_UID, "resourceVersion": "1"}})


async def test_all_writes_are_sent_once_and_owners_first() -> None:
    client: Any = FakeClient()
    await Replay(client, WRITES, {SET_UID: NEW_UID}, 32).send_all()
    assert sorted(method for method, _, _ in client.requests) == ["PATCH", "PATCH", "POST", "POST", "POST", "POST"]
    pod = next(document for _, _, document in client.requests if document and "serviceAccountName" in str(document))
    assert pod["metadata"] == {"name": "p", "ownerReferences": [{"uid": NEW_UID}]}


async def test_writes_without_dependencies_keep_the_recorded_order() -> None:
    client: Any = FakeClient()
    status_write = write("patch", "podcliques/status", "c", {"status": {}}, group="grove.io", uri="/status")
    later_write = write("create", "podgangs", "g", owned_by(SET_UID), group="scheduler.grove.io", uri="/late")
    await Replay(client, [*WRITES[:4], status_write, later_write], {SET_UID: NEW_UID}, 1).send_all()
    assert [path for _, path, _ in client.requests] == ["/there"] * 4 + ["/status", "/late"]


async def test_a_refusal_ends_the_replay() -> None:
    client: Any = FakeClient(refused_method="PATCH")
    with pytest.raises(HarnessError, match="could not repeat patch"):
        await Replay(client, WRITES, {SET_UID: NEW_UID}, 32).send_all()


def test_writes_that_differ_from_the_recorded_ones_are_an_error() -> None:
    recorded_counts = replay.count_writes(WRITES)
    write_floor._compare(recorded_counts, recorded_counts.copy())
    requests = recorded_counts.copy()
    requests["patch", "pods"] += 1
    del requests["create", "events"]
    with pytest.raises(HarnessError, match="0 instead of 1 create events; 2 instead of 1 patch pods"):
        write_floor._compare(recorded_counts, requests)


def audit_line(verb: str, code: int, namespace: str, **fields: Any) -> bytes:
    event = {
        "stage": "ResponseComplete",
        "verb": verb,
        "requestURI": f"/api/v1/namespaces/{namespace}/pods",
        "user": {"username": "operator"},
        "userAgent": "op/1 (linux)",
        "objectRef": {"resource": "pods", "namespace": namespace, **fields},
        "responseStatus": {"code": code},
        "requestObject": {"spec": {}},
        "responseObject": {"metadata": {"name": "p-x1", "uid": POD_UID}},
    }
    return orjson.dumps(event) + b"\n"


def test_accepted_writes_of_the_namespace_are_read_with_their_bodies(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    first_line = audit_line("create", 201, "scale")
    log.write_bytes(
        first_line
        + audit_line("create", 201, "scale")
        + audit_line("create", 409, "scale", name="p")
        + audit_line("get", 200, "scale", name="p")
        + audit_line("create", 201, "other")
        + audit_line("patch", 200, "scale", name="p", subresource="status")
    )
    created_write, patched_write = audit_bodies.writes(log, "scale", len(first_line))
    assert (
        created_write.target == ("", "pods", "scale", "p-x1")
        and created_write.uid == POD_UID
        and created_write.body == b'{"spec":{}}'
    )
    assert (patched_write.resource, patched_write.uid, patched_write.user, patched_write.program) == (
        "pods/status",
        "",
        "operator",
        "op",
    )


def test_bodies_are_logged_only_for_requested_resources() -> None:
    body_rules = [rule for rule in audit_policy()["rules"] if rule["level"] == "RequestResponse"]
    logged_resources = [rule["resources"] for rule in body_rules]
    assert logged_resources[:2] == [
        [{"group": "", "resources": [resource]}] for resource in ("pods/status", "serviceaccounts/token")
    ]
    assert logged_resources[2:] == [resources()]
    levels = [rule["level"] for rule in audit_policy(bodies=True)["rules"]]
    assert levels == ["Metadata", "None", "Metadata", "None", "None", "RequestResponse", "Metadata"]
