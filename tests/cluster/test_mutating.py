"""Tests that policies, webhooks, CRDs and API services that can change other clients' objects are reported.

The tests need no cluster.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from conformance.cluster import mutating
from conformance.data import PROJECT

POLICIES = (
    *(str(path.relative_to(PROJECT)) for path in sorted((PROJECT / "fixtures/policies").glob("*.yaml"))),
    *(f"fixtures/implementations/{path}" for path in ("grove-operator/webhooks.yaml", "volcano/objects.yaml")),
    "fixtures/implementations/kai/objects.yaml",
    "reference_impl/admission/webhooks.yaml",
    "docs/examples/job-bridge/policy.yaml",
)
PODCLIQUESETS = ("grove.io", "podcliquesets")


def rule(group: str, resource: str, *operations: str) -> dict[str, Any]:
    return {
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": list(operations or ("UPDATE",)),
        "resources": [resource],
    }


def policy(*rules: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "MutatingAdmissionPolicy", "spec": {"matchConstraints": {"resourceRules": list(rules)}}}


def hook(*rules: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "MutatingWebhookConfiguration", "webhooks": [{"rules": []}, {"rules": list(rules)}]}


@pytest.mark.parametrize("build", [policy, hook])
@pytest.mark.parametrize(
    ("group", "resource", "expected_effect"),
    [
        (*PODCLIQUESETS, ""),
        ("grove.io", "*", ""),
        ("", "pods", ""),
        ("batch", "jobs", ""),
        ("scheduling.example", "*/*", ""),
        ("kueue.x-k8s.io", "workloads/status", ""),
        ("", "nodes", "changes nodes"),
        ("", "nodes/status", "changes nodes/status"),
        ("", "*", "changes *"),
        ("*", "pods", "changes pods of the group *"),
        ("", "pods/status", "changes pods/status"),
        ("", "pods/binding", "changes pods/binding"),
        ("", "pods/*", "changes pods/*"),
        ("", "resourcequotas", "changes resourcequotas"),
        ("scheduling.k8s.io", "priorityclasses", "changes priorityclasses of the group scheduling.k8s.io"),
        ("grove.io", "*/*", "changes */* of the group grove.io"),
        ("scheduler.grove.io", "podgangs/status", "changes podgangs/status of the group scheduler.grove.io"),
        ("apps", "deployments/status", "changes deployments/status of the group apps"),
    ],
)
def test_the_rules_determine_the_reported_effect(build: Any, group: str, resource: str, expected_effect: str) -> None:
    assert mutating.forbidden_effect(build(rule(*PODCLIQUESETS), rule(group, resource))) == expected_effect
    assert mutating.forbidden_effect(build(rule(group, resource, "DELETE", "CONNECT"))) == ""


@pytest.mark.parametrize("path", POLICIES)
def test_policies_and_webhooks_of_honest_implementations_have_no_effect(path: str) -> None:
    documents = [
        document for document in yaml.safe_load_all((PROJECT / path).read_text()) if isinstance(document, dict)
    ]
    assert documents and [mutating.forbidden_effect(document) for document in documents] == [""] * len(documents)


def crd(group: str, strategy: str) -> dict[str, Any]:
    spec = {"group": group, "names": {"plural": "podcliques"}, "conversion": {"strategy": strategy}}
    return {"kind": "CustomResourceDefinition", "spec": spec}


def test_a_conversion_webhook_for_groves_kinds_is_reported() -> None:
    assert (
        mutating.forbidden_effect(crd("grove.io", "None"))
        == mutating.forbidden_effect(crd("other.example", "Webhook"))
        == ""
    )
    assert mutating.forbidden_effect(crd("grove.io", "Webhook")) == "converts podcliques.grove.io by a webhook"


@pytest.mark.parametrize(
    ("group", "is_reported"), [("grove.io", True), ("", True), ("metrics.k8s.io", False), ("toy.example", False)]
)
def test_an_aggregated_server_for_groves_or_core_kinds_is_reported(group: str, is_reported: bool) -> None:
    service = {"kind": "APIService", "spec": {"group": group, "version": "v1", "service": {"name": "x"}}}
    assert bool(mutating.forbidden_effect(service)) is is_reported
    assert mutating.forbidden_effect({"kind": "APIService", "spec": {"group": group, "version": "v1"}}) == ""


@pytest.mark.parametrize("malformed_object", [{}, {"spec": 1}, {"spec": {"matchConstraints": {"resourceRules": [1]}}}])
def test_malformed_objects_have_no_effect(malformed_object: dict[str, Any]) -> None:
    assert [
        mutating.forbidden_effect({"kind": kind, **malformed_object})
        for kind in ("MutatingAdmissionPolicy", "APIService", "")
    ] == [
        "",
        "",
        "",
    ]
