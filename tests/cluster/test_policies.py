"""Tests that policies are read by name and from files, and that their objects go to the right namespaces."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from conformance.cluster import policies
from conformance.cluster.settings import NAMESPACE_OBJECTS_FILE, ClusterSettings, extra_files
from conformance.errors import UsageError
from conformance.implementation import loading, rights

POLICY = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: house-rules}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: house}
webhooks: [{name: pods.house.example}]
---
apiVersion: v1
kind: Secret
metadata: {name: registry, namespace: default}
"""


def test_names_and_files_of_several_options_are_merged_into_one_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.yaml").write_text(POLICY)
    monkeypatch.chdir(tmp_path)
    chosen_policies = policies.select(["restricted,quota", "mine.yaml", "quota"])
    assert chosen_policies == ("restricted", "quota", str(tmp_path / "mine.yaml"))


def test_every_name_is_in_the_help_of_the_option() -> None:
    command = [sys.executable, "-m", "grove_conformance", "cluster", "up", "--help"]
    result = subprocess.run(command, text=True, capture_output=True, check=True)
    help_text = " ".join(result.stdout.replace("│", " ").split())
    assert f"policy: {', '.join(policies.names())}, or a file or folder" in help_text


def test_objects_without_a_namespace_go_to_every_namespace_and_configuration_to_the_api_server(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(POLICY)
    loaded_policies = policies.load(["restricted", "quota", "sidecar", "rbac", str(tmp_path)])
    files = extra_files(ClusterSettings(policies=loaded_policies))
    kinds = [manifest["kind"] for manifest in files[NAMESPACE_OBJECTS_FILE]["objects"]]
    hooks = ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"]
    assert kinds == ["ResourceQuota", *hooks, "ConfigMap", "ValidatingWebhookConfiguration"]
    [plugin] = files["admission.yaml"]["plugins"]
    assert plugin["configuration"]["defaults"]["enforce"] == "restricted"
    assert loaded_policies.hook_names == {"sidecar", "pods.house.example"}
    assert {NAMESPACE_OBJECTS_FILE, "admission.yaml"}.isdisjoint(extra_files(ClusterSettings()))


INVALID_FILES = {
    "no YAML": ("a: [}", "mine.yaml:1: is not YAML: "),
    "no manifest": ("[1]", "mine.yaml: holds something else than a manifest — give kind and apiVersion"),
    "no name": ("{apiVersion: v1, kind: Secret}", "mine.yaml: holds a Secret without a name — give metadata.name"),
    "empty": ("# nothing", "mine.yaml: holds no manifest — give at least one"),
}


@pytest.mark.parametrize("case", INVALID_FILES)
def test_an_invalid_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    text, message = INVALID_FILES[case]
    (tmp_path / "mine.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as caught:
        policies.load(policies.select(["mine.yaml"]))
    assert str(caught.value).startswith(message) and len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("option_value", "message"),
    [
        ("quotas", "--policy: unknown policy 'quotas' — did you mean \"quota\"? or give a file"),
        ("none", "--policy: unknown policy 'none' — known: limits, quota, rbac, restricted, sidecar or give a file"),
        ("./nine.yaml", '--policy ./nine.yaml: no such file — did you mean "mine.yaml"?'),
        ("absent/", "--policy absent/: no such file — give a file or folder of manifests"),
    ],
)
def test_an_unknown_name_or_file_is_reported_with_a_suggestion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option_value: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").touch()
    with pytest.raises(UsageError) as caught:
        policies.select([f"restricted,{option_value}"])
    assert str(caught.value).startswith(message)


def test_an_admission_plugin_cannot_be_configured_twice(tmp_path: Path) -> None:
    policy_file = tmp_path / "mine.yaml"
    policy_file.write_text("{apiVersion: v1, kind: AdmissionConfiguration, plugins: [{name: PodSecurity}]}")
    with pytest.raises(UsageError, match="configures the admission plugin PodSecurity, as another policy does"):
        policies.load(["restricted", str(policy_file)])


def test_rbac_needs_an_implementation_that_declares_its_rights() -> None:
    with pytest.raises(UsageError, match=r"reference\.yaml:\d+: clusterRoles: declares no rights for the role gang"):
        rights.require_declared(loading.load("reference"))
