"""Tests of policies by name and from files: how they are read, and where their objects go."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from conformance.cluster import policies
from conformance.cluster.settings import NAMESPACE_OBJECTS, ClusterSettings, extra_files
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


def test_names_and_files_of_several_options_are_one_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.yaml").write_text(POLICY)
    monkeypatch.chdir(tmp_path)
    words = policies.chosen(["restricted,quota", "mine.yaml", "quota"])
    assert words == ("restricted", "quota", str(tmp_path / "mine.yaml"))


def test_every_name_is_in_the_help_of_the_option() -> None:
    command = [sys.executable, "-m", "grove_conformance", "cluster", "up", "--help"]
    done = subprocess.run(command, text=True, capture_output=True, check=True)
    printed = " ".join(done.stdout.replace("│", " ").split())
    assert f"policy: {', '.join(policies.names())}, or a file or folder" in printed


def test_objects_without_a_namespace_are_for_each_and_configuration_is_for_the_api_server(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(POLICY)
    chosen = policies.load(["restricted", "quota", "sidecar", "rbac", str(tmp_path)])
    files = extra_files(ClusterSettings(policies=chosen))
    kinds = [manifest["kind"] for manifest in files[NAMESPACE_OBJECTS]["objects"]]
    hooks = ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"]
    assert kinds == ["ResourceQuota", *hooks, "ConfigMap", "ValidatingWebhookConfiguration"]
    [plugin] = files["admission.yaml"]["plugins"]
    assert plugin["configuration"]["defaults"]["enforce"] == "restricted"
    assert chosen.hooks == {"sidecar", "pods.house.example"}
    assert {NAMESPACE_OBJECTS, "admission.yaml"}.isdisjoint(extra_files(ClusterSettings()))


WRONG_FILES = {
    "no YAML": ("a: [}", "mine.yaml:1: is not YAML: "),
    "no manifest": ("[1]", "mine.yaml: holds something else than a manifest — give kind and apiVersion"),
    "no name": ("{apiVersion: v1, kind: Secret}", "mine.yaml: holds a Secret without a name — give metadata.name"),
    "empty": ("# nothing", "mine.yaml: holds no manifest — give at least one"),
}


@pytest.mark.parametrize("case", WRONG_FILES)
def test_a_file_that_is_wrong_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    text, line = WRONG_FILES[case]
    (tmp_path / "mine.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as refused:
        policies.load(policies.chosen(["mine.yaml"]))
    assert str(refused.value).startswith(line) and len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("word", "line"),
    [
        ("quotas", "--policy: unknown policy 'quotas' — did you mean \"quota\"? or give a file"),
        ("none", "--policy: unknown policy 'none' — known: limits, quota, rbac, restricted, sidecar or give a file"),
        ("./nine.yaml", '--policy ./nine.yaml: no such file — did you mean "mine.yaml"?'),
        ("absent/", "--policy absent/: no such file — give a file or folder of manifests"),
    ],
)
def test_an_unknown_name_or_file_is_told_with_the_one_that_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").touch()
    with pytest.raises(UsageError) as refused:
        policies.chosen([f"restricted,{word}"])
    assert str(refused.value).startswith(line)


def test_one_admission_plugin_is_configured_once(tmp_path: Path) -> None:
    policy_file = tmp_path / "mine.yaml"
    policy_file.write_text("{apiVersion: v1, kind: AdmissionConfiguration, plugins: [{name: PodSecurity}]}")
    with pytest.raises(UsageError, match="configures the admission plugin PodSecurity, as another policy does"):
        policies.load(["restricted", str(policy_file)])


def test_rbac_needs_an_implementation_that_declares_its_rights() -> None:
    with pytest.raises(UsageError, match=r"reference\.yaml:\d+: clusterRoles: declares no rights for the role gang"):
        rights.require_declared(loading.load("reference"))
