"""Tests of dry-run requests to a scripted API server."""

from __future__ import annotations

import asyncio

from conformance.suite.scenes.api import NotServed
from conformance.suite.scenes.dry_run import DryRun, _reply
from kube.client import Answer
from kube.resource import NODES, PODS


class Api:
    """An API that serves pods and nodes, but gets no request."""

    def of_object(self, obj):
        return self.of_plural(f"{obj['kind'].lower()}s")

    def of_plural(self, plural):
        resources = {"pods": PODS, "nodes": NODES}
        if plural not in resources:
            raise NotServed(f"no {plural}")
        return resources[plural]


def test_objects_go_to_the_test_namespace_unless_they_have_none():
    dry_run = DryRun(Api(), "ns")
    pod = dry_run.create({"kind": "Pod", "metadata": {"name": "a"}})
    assert pod.path == "/api/v1/namespaces/ns/pods" and pod.body["metadata"]["namespace"] == "ns" and pod.dry_run
    node = dry_run.create({"kind": "Node", "metadata": {"name": "a"}})
    assert node.path == "/api/v1/nodes" and "namespace" not in node.body["metadata"]
    assert dry_run.delete("pods", "a", user="alice").user == "alice"


def test_a_request_for_an_unserved_kind_is_not_sent():
    assert DryRun(Api(), "ns").create({"kind": "Thing", "metadata": {}}).unsent_reason == "no things"


class Server(Api):
    """An API server whose response depends on the method and on whether the request is a dry run."""

    def __init__(self, answer):
        self.answer, self.sent = answer, []

    def work(self, action):
        return asyncio.run(action(self))

    async def exchange(self, method, path, *, params, body, content_type, headers):
        self.sent.append((method, path, bool(params)))
        return self.answer(method, bool(params))


POD = {"kind": "Pod", "metadata": {"name": "a"}}
DENIED = Answer(403, b'{"kind":"Status","reason":"Forbidden","code":403,"message":"no"}')
MADE = Answer(201, b'{"kind":"Pod","metadata":{"name":"a","namespace":"ns"}}')


def test_a_rejected_dry_run_is_repeated_without_dry_run():
    server = Server(lambda method, dry: DENIED)
    assert DryRun(server, "ns").ask(DryRun(server, "ns").create(POD)).refused
    path = "/api/v1/namespaces/ns/pods"
    assert server.sent == [("POST", path, True), ("POST", path, False)]


def test_a_rejection_of_dry_runs_alone_does_not_count_and_created_objects_are_deleted():
    server = Server(lambda method, dry: DENIED if dry else MADE)
    dry_run = DryRun(server, "ns")
    reply = dry_run.ask(dry_run.create(POD))
    assert reply.accepted and str(reply) == "accepted, although a dry run was refused (403: no)"
    assert server.sent[-1] == ("DELETE", "/api/v1/namespaces/ns/pods/a", False)


def test_accepted_and_unjudged_dry_runs_are_not_repeated():
    for answer in (MADE, Answer(500, b"{}")):
        server = Server(lambda method, dry, answer=answer: answer)
        dry_run = DryRun(server, "ns")
        dry_run.all([dry_run.create(POD), dry_run.create({"kind": "Thing", "metadata": {}}), dry_run.get("pods", "a")])
        assert [dry for method, _, dry in server.sent if method == "POST"] == [True]


def test_replies_contain_verdict_errors_and_warnings():
    denied = b'{"kind":"Status","reason":"Forbidden","code":403,"message":"no: [a.b: Required value, c: Forbidden: x]"}'
    reply = _reply(Answer(403, denied, ('299 - "say \\"when\\""', "odd")))
    assert reply.refused and not reply.accepted and reply.warnings == ('say "when"',)
    assert [str(error) for error in reply.errors] == ["a.b Required", "c Forbidden"]
    broken = _reply(Answer(500, b"{}"))
    assert not broken.refused and not broken.accepted
    assert _reply(Answer(201, b'{"a":1}')).object == {"a": 1}
