"""Tests that the verb and the object of a request are read from only its method, path and query."""

from __future__ import annotations

import pytest

from conformance.nemesis.proxy.calls import Call, parse_call

PODS, POD_CLIQUE_SETS = "/api/v1/namespaces/n/pods", "/apis/grove.io/v1alpha1/namespaces/n/podcliquesets"


@pytest.mark.parametrize(
    ("method", "path", "query", "expected"),
    [
        ("POST", PODS, {}, Call("create", "pods", "n")),
        ("PATCH", f"{PODS}/p", {}, Call("patch", "pods", "n", "p")),
        ("PUT", f"{POD_CLIQUE_SETS}/s/status", {}, Call("update", "podcliquesets.grove.io", "n", "s", "status")),
        ("DELETE", f"{PODS}/p", {}, Call("delete", "pods", "n", "p")),
        ("DELETE", PODS, {}, Call("deletecollection", "pods", "n")),
        ("GET", PODS, {}, Call("list", "pods", "n")),
        ("GET", "/api/v1/pods", {"watch": "1"}, Call("watch", "pods")),
        ("GET", "/api/v1/pods", {"watch": "false"}, Call("list", "pods")),
        ("GET", f"{PODS}/p/log", {}, Call("get", "pods", "n", "p", "log")),
        ("GET", "/api/v1/namespaces/n", {}, Call("get", "namespaces", "", "n")),
        ("PUT", "/api/v1/namespaces/n/finalize", {}, Call("update", "namespaces", "", "n", "finalize")),
        ("POST", PODS, {"dryRun": "All"}, Call("create", "pods", "n", is_dry_run=True)),
    ],
)
def test_verb_and_object_are_read_from_a_request(method: str, path: str, query: dict[str, str], expected: Call) -> None:
    assert parse_call(method, path, query) == expected


@pytest.mark.parametrize("path", ["/healthz", "/api", "/apis/grove.io", "/apis/grove.io/v1alpha1", "/openapi/v3"])
def test_discovery_and_health_requests_have_no_resource(path: str) -> None:
    assert parse_call("GET", path, {}) is None


def test_only_requests_that_change_an_object_are_writes() -> None:
    review = parse_call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {})
    dry_run = parse_call("POST", PODS, {"dryRun": "All"})
    assert review is not None and dry_run is not None and not review.is_write and not dry_run.is_write
    calls = [parse_call(method, f"{PODS}/p", {}) for method in ("PUT", "PATCH", "DELETE")]
    assert all(call is not None and call.is_write for call in calls)
