"""Dry-run requests, against a scripted API server."""

from __future__ import annotations

from conformance.suite.api import NotServed
from conformance.suite.dry_run import DryRun, _reply
from kube.client import Answer
from kube.resource import NODES, PODS


class Api:
    """Serves pods and nodes, and is never asked."""

    def of_object(self, obj):
        return self.of_plural(f"{obj['kind'].lower()}s")

    def of_plural(self, plural):
        known = {"pods": PODS, "nodes": NODES}
        if plural not in known:
            raise NotServed(f"no {plural}")
        return known[plural]


def test_objects_go_to_the_test_namespace_unless_they_have_none():
    dry_run = DryRun(Api(), "ns")
    pod = dry_run.create({"kind": "Pod", "metadata": {"name": "a"}})
    assert pod.path == "/api/v1/namespaces/ns/pods" and pod.body["metadata"]["namespace"] == "ns" and pod.dry_run
    node = dry_run.create({"kind": "Node", "metadata": {"name": "a"}})
    assert node.path == "/api/v1/nodes" and "namespace" not in node.body["metadata"]
    assert dry_run.delete("pods", "a", user="alice").user == "alice"


def test_a_kind_that_is_not_served_is_an_answer():
    assert DryRun(Api(), "ns").create({"kind": "Thing", "metadata": {}}).hopeless == "no things"


def test_replies_tell_verdict_errors_and_warnings():
    denied = b'{"kind":"Status","reason":"Forbidden","code":403,"message":"no: [a.b: Required value, c: Forbidden: x]"}'
    reply = _reply(Answer(403, denied, ('299 - "say \\"when\\""', "odd")))
    assert reply.refused and not reply.accepted and reply.warnings == ('say "when"',)
    assert [str(error) for error in reply.errors] == ["a.b Required", "c Forbidden"]
    broken = _reply(Answer(500, b"{}"))
    assert not broken.refused and not broken.accepted
    assert _reply(Answer(201, b'{"a":1}')).object == {"a": 1}
