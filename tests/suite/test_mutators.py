"""Tests that an implementation's policies, webhooks and CRDs that change other clients' writes are reported.

Needs no cluster.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.cluster.audit import AuditLog
from conformance.cluster.audit_losses import AuditLosses
from conformance.data import PROJECT
from conformance.implementation import loading
from conformance.implementation.descriptor import Descriptor
from conformance.suite.session.mutators import Mutators
from tests.cluster.test_audit_losses import POLICY, lost_event_lines
from tests.suite.test_premises import REAPER, SUITE, line

PLURALS = {
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "CustomResourceDefinition": "customresourcedefinitions",
}
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "podcliques.grove.io"},
    "spec": {"group": "grove.io", "names": {"plural": "podcliques"}, "conversion": {"strategy": "Webhook"}},
}


def policy(resource: str) -> dict[str, Any]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": [resource]}
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy"}
    return {**head, "metadata": {"name": "p"}, "spec": {"matchConstraints": {"resourceRules": [rule]}}}


def audit_line(obj: dict[str, Any], writer: tuple[str, str] = REAPER, verb: str = "create", **fields: Any) -> str:
    event = json.loads(line(writer, verb, PLURALS[obj["kind"]], "p"))
    return json.dumps(event | {"responseObject": obj} | fields) + "\n"


def descriptor(folder: Path, part: str = "", obj: dict[str, Any] | None = None) -> Descriptor:
    """Return the descriptor of an operator that declares an object in a part of `install`."""
    install = ""
    if obj is not None:
        (folder / "installed.yaml").write_text(json.dumps(obj))
        install = f'install: {{{part}: ["${{here}}/installed.yaml"]}}\n'
    path = folder / "mine.yaml"
    path.write_text(
        "apiVersion: conformance.grove.io/v1alpha1\nkind: Implementation\nname: mine\nversion: '1'\n"
        f"roles: [operator]\nschedulerName: x\n{install}processes: {{operator: {{argv: [sh], ready: {{log: x}}}}}}\n"
    )
    return loading.load(str(path), {})


def violation(folder: Path, *lines: str, judged: Descriptor | None = None) -> str:
    (folder / "audit.log").write_text("".join(lines))
    return mutators(folder, judged).violation()


def mutators(folder: Path, judged: Descriptor | None = None) -> Mutators:
    losses = AuditLosses(folder / "kube-apiserver.log")
    return Mutators(AuditLog(folder / "audit.log"), 0, judged or descriptor(folder), losses)


def test_a_policy_on_nodes_is_named_with_its_user(tmp_path: Path) -> None:
    sentence = "the MutatingAdmissionPolicy p changes nodes/status: the user operator has written it"
    assert violation(tmp_path, audit_line(policy("nodes/status"))) == sentence
    assert (
        violation(tmp_path, audit_line(policy("pods"), verb="patch"), audit_line(policy("pods/status"), verb="patch"))
        != ""
    )


@pytest.mark.parametrize(
    "text",
    [
        audit_line(policy("nodes"), SUITE),
        audit_line(policy("pods")),
        audit_line(policy("nodes"), responseStatus={"code": 403}),
        audit_line(policy("nodes"), requestURI="/apis/x?dryRun=All"),
        audit_line(policy("nodes"), verb="get"),
    ],
    ids=["of the suite", "on pods", "refused", "a dry run", "a read"],
)
def test_policies_that_do_not_affect_others_are_not_named(tmp_path: Path, text: str) -> None:
    assert violation(tmp_path, text) == ""


def test_a_policy_that_was_removed_is_still_named(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_text("")
    looking = mutators(tmp_path)
    assert looking.violation() == ""
    with path.open("a") as log:
        log.write(audit_line(policy("nodes")) + line(REAPER, "delete", PLURALS["MutatingAdmissionPolicy"], "p"))
    first = looking.violation()
    assert first and looking.violation() == first


def test_a_write_that_is_kept_out_of_the_audit_log_is_named(tmp_path: Path) -> None:
    (tmp_path / "audit.log").write_text("")
    looking = mutators(tmp_path)
    (tmp_path / "kube-apiserver.log").write_text(lost_event_lines("operator"))
    assert looking.violation() == f"the user operator has kept a request out of the audit log: patch {POLICY}"


def test_a_declared_policy_may_change_no_more_than_another(tmp_path: Path) -> None:
    assert violation(tmp_path, judged=descriptor(tmp_path, "objects", policy("pods"))) == ""
    sentence = violation(tmp_path, judged=descriptor(tmp_path, "objects", policy("nodes")))
    assert sentence == "the MutatingAdmissionPolicy p changes nodes"


def test_only_a_declared_crd_converts(tmp_path: Path) -> None:
    assert "converts podcliques.grove.io by a webhook" in violation(tmp_path, audit_line(CRD, verb="patch"))
    assert violation(tmp_path, audit_line(CRD, verb="patch"), judged=descriptor(tmp_path, "crds", CRD)) == ""


def test_the_reference_is_not_accused(tmp_path: Path) -> None:
    assert violation(tmp_path, judged=loading.load("reference", {})) == ""


def test_the_operator_that_writes_its_certificate_into_its_webhooks_is_not_accused(tmp_path: Path) -> None:
    text = (PROJECT / "fixtures/implementations/grove-operator/webhooks.yaml").read_text()
    hook = next(document for document in yaml.safe_load_all(text) if document["kind"] == "MutatingWebhookConfiguration")
    assert violation(tmp_path, audit_line(hook, verb="update")) == ""
