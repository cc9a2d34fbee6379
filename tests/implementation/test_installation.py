"""Tests on a real API server that the objects of an implementation are in effect when `install` returns."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from conformance.cluster.controlplane import Cluster
from conformance.errors import HarnessError, UsageError
from conformance.implementation import deployment, installation, loading, objects, succession
from conformance.implementation.descriptor import Role
from conformance.implementation.driver import ClusterFacts, Driver
from conformance.implementation.objects import DesiredObject
from kube.client import Client
from kube.errors import ApiError
from kube.resource import CRDS, NODES, PODS, Resource

pytestmark = pytest.mark.cluster

T = TypeVar("T")
POD_CLIQUE_SETS = Resource("grove.io", "v1alpha1", "podcliquesets", "PodCliqueSet")
GADGETS = Resource("example.com", "v1", "gadgets", "Gadget")
GADGET_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GROVE_CONFORMANCE_STATE", str(tmp_path_factory.mktemp("state")))
        new_cluster = Cluster.up("install", owner=True)
        yield new_cluster
        new_cluster.down()


@pytest.fixture
def run_request(cluster: Cluster) -> Callable[[Callable[[Client], Awaitable[T]]], T]:
    """A function that runs a coroutine function with a client of the cluster, and returns its result."""

    def run_request(request: Callable[[Client], Awaitable[T]]) -> T:
        async def main() -> T:
            async with Client.from_kubeconfig(cluster.kubeconfig, user_agent="test") as client:
                return await request(client)

        return asyncio.run(main())

    return run_request


def names(objects: list[dict[str, Any]]) -> set[str]:
    return {item["metadata"]["name"] for item in objects}


def test_crds_are_usable_when_install_returns(cluster: Cluster, run_request) -> None:
    facts = ClusterFacts(cluster.kubeconfig, cluster.directory, cluster.marker(), cluster.port)
    driver = Driver(loading.load("blank"), facts)
    driver.install()
    assert run_request(lambda client: client.list(POD_CLIQUE_SETS)) == []
    assert "podcliquesets.grove.io" in names(run_request(lambda client: client.list(CRDS)))
    driver.install()  # the second call changes nothing and does not wait


def test_an_installed_crd_is_applied_again_only_if_it_or_its_manifest_has_changed(run_request) -> None:
    spec = GADGET_CRD["spec"]
    crd = GADGET_CRD | {
        "metadata": {"name": "widgets.example.com", "labels": {"app": "widgets"}},
        "spec": spec | {"names": {"plural": "widgets", "singular": "widget", "kind": "Widget"}},
    }
    longer = crd | {"spec": crd["spec"] | {"names": crd["spec"]["names"] | {"shortNames": ["wi"]}}}

    async def installed(client: Client, manifest: dict[str, Any]) -> list[str]:
        """Install a CRD. Return the names of the CRDs that were applied."""
        applied = []
        apply = client.apply

        async def record(resource, body, **options):
            applied.append(body["metadata"]["name"])
            return await apply(resource, body, **options)

        client.apply = record
        await installation.install_crds(client, [manifest])
        return applied

    name = crd["metadata"]["name"]
    assert run_request(lambda client: installed(client, crd)) == [name]
    assert run_request(lambda client: installed(client, crd)) == []
    assert run_request(lambda client: installed(client, longer)) == [name]
    assert run_request(lambda client: installed(client, crd)) == [name]
    assert run_request(lambda client: installed(client, crd)) == []
    for patch in ({"spec": {"names": {"singular": "wdg"}}}, {"metadata": {"labels": {"app": "other"}}}):
        run_request(lambda client, patch=patch: client.patch(CRDS, None, name, patch))
        assert run_request(lambda client: installed(client, crd)) == [name]
    run_request(lambda client: client.patch(CRDS, None, name, {"metadata": {"labels": {"more": "x"}}}))
    assert run_request(lambda client: installed(client, crd)) == []


def test_a_crd_that_the_api_server_refuses_is_reported(run_request) -> None:
    invalid_crd = GADGET_CRD | {"metadata": {"name": "gadgets.example.org"}}
    with pytest.raises(HarnessError, match=r"refused CustomResourceDefinition gadgets\.example\.org: .*must be"):
        run_request(lambda client: installation.install_crds(client, [invalid_crd]))


def test_a_crd_that_never_establishes_is_reported_with_the_reason(run_request, monkeypatch: pytest.MonkeyPatch) -> None:
    conflicting_crd = GADGET_CRD | {
        "metadata": {"name": "podz.example.com"},
        "spec": GADGET_CRD["spec"] | {"names": {"plural": "podz", "singular": "gadget", "kind": "Gadget"}},
    }
    run_request(lambda client: installation.install_crds(client, [GADGET_CRD]))
    monkeypatch.setattr(installation, "TIMEOUT_SECONDS", 1.0)
    with pytest.raises(HarnessError, match=r"not established after \d+ s: podz\.example\.com: .*in use"):
        run_request(lambda client: installation.install_crds(client, [conflicting_crd]))


@pytest.mark.parametrize("kind", sorted(installation.WEBHOOKS))
def test_a_webhook_is_called_from_the_first_request_on(run_request, kind: str) -> None:
    hook = {
        "name": "deaf.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [{"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["gadgets"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    resource = installation.WEBHOOKS[kind]
    configuration = {
        "apiVersion": resource.api_version, "kind": kind, "metadata": {"name": "deaf"}, "webhooks": [hook]
    }  # fmt: skip
    gadget = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g", "namespace": "default"}}

    async def request(client: Client) -> list[dict[str, Any]]:
        await installation.install_crds(client, [GADGET_CRD])
        await installation.install_webhooks(client, [configuration])
        with pytest.raises(ApiError, match=r"deaf\.example\.com"):
            await client.create(GADGETS, gadget)
        configurations = await client.list(resource)
        await client.delete(resource, None, "deaf")
        return configurations

    assert names(run_request(request)) == {"deaf"}  # no configuration of the barrier is left


MUTATING_POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {{name: {group}}}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{{apiGroups: [{group}], apiVersions: [v1], operations: [CREATE], resources: [widgets]}}]
  mutations:
    - patchType: ApplyConfiguration
      applyConfiguration: {{expression: 'Object{{metadata: Object.metadata{{labels: {{"size": "small"}}}}}}'}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {{name: {group}}}
spec: {{policyName: {group}}}
"""


@pytest.mark.parametrize("is_older", [False, True])
def test_a_mutating_policy_applies_to_a_new_kind_from_the_first_request_on(run_request, is_older: bool) -> None:
    group = "older.example.org" if is_older else "example.org"
    widgets = Resource(group, "v1", "widgets", "Widget")
    names = {"plural": widgets.plural, "singular": "widget", "kind": widgets.kind}
    crd = GADGET_CRD | {
        "metadata": {"name": f"{widgets.plural}.{group}"},
        "spec": GADGET_CRD["spec"] | {"group": group, "names": names},
    }
    manifests = yaml.safe_load_all(MUTATING_POLICY.format(group=group))
    policy = [DesiredObject(manifest, Path("policy.yaml")) for manifest in manifests]
    metadata = {"name": "w", "namespace": "default"}
    widget = {"apiVersion": widgets.api_version, "kind": widgets.kind, "metadata": metadata}

    async def request(client: Client) -> bytes:
        if is_older:
            await objects.install(client, policy, [])
        await installation.install_crds(client, [crd])
        await objects.install(client, [] if is_older else policy, [crd])
        return await client.create(widgets, widget)

    assert json.loads(run_request(request))["metadata"]["labels"] == {"size": "small"}


OPERATOR_DESCRIPTOR = """\
apiVersion: conformance.grove.io/v1alpha1
kind: Implementation
name: {name}
version: "1"
roles: [operator]
schedulerName: some-scheduler
install: {{webhooks: ["${{here}}/{name}-hooks.yaml"]}}
processes:
  operator:
    argv: ["${{python}}", -c, "print('up', flush=True); import signal; signal.pause()"]
    ready: {{log: up, within: 20}}
"""
HOOKS_MANIFEST = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {{name: {name}}}
webhooks:
- name: {name}.example.com
  clientConfig: {{url: "https://127.0.0.1:${{port.webhook}}/"}}
  rules: [{{apiGroups: [example.com], apiVersions: [v1], operations: ["*"], resources: [gadgets]}}]
  sideEffects: None
  admissionReviewVersions: [v1]
"""


def test_the_installed_webhooks_belong_to_the_running_operator(cluster: Cluster, run_request, tmp_path: Path) -> None:
    for name in ("mine", "theirs"):
        (tmp_path / f"{name}.yaml").write_text(OPERATOR_DESCRIPTOR.format(name=name))
        (tmp_path / f"{name}-hooks.yaml").write_text(HOOKS_MANIFEST.format(name=name))
    own_operator, former_operator = (loading.load(str(tmp_path / f"{name}.yaml")) for name in ("mine", "theirs"))
    implementation = succession.take_over(own_operator, former_operator)
    facts = ClusterFacts(cluster.kubeconfig, cluster.directory, cluster.marker(), cluster.port)
    resource = installation.WEBHOOKS["ValidatingWebhookConfiguration"]

    def hooks() -> set[str]:
        return names(run_request(lambda client: client.list(resource)))

    with Driver(implementation, facts, loading.load("reference")) as driver:
        driver.install()
        assert hooks() == {"mine"}
        driver.operators.replace_operator(implementation.earlier(implementation.upgrades[0]))
        assert hooks() == {"theirs"}
        driver.operators.replace_operator(implementation)
        assert hooks() == {"mine"}
        driver.operators.replace_operator(implementation.earlier(implementation.upgrades[0]))
        driver.operators.reset()
        assert hooks() == {"mine"}
    run_request(lambda client: installation.install_webhooks(client, [], {("ValidatingWebhookConfiguration", "mine")}))
    assert hooks() == set()


def test_webhooks_are_removed_temporarily_and_restored_after_an_error(
    cluster: Cluster, run_request, tmp_path: Path
) -> None:
    (tmp_path / "mine.yaml").write_text(OPERATOR_DESCRIPTOR.format(name="mine"))
    (tmp_path / "mine-hooks.yaml").write_text(HOOKS_MANIFEST.format(name="mine"))
    facts = ClusterFacts(cluster.kubeconfig, cluster.directory, cluster.marker(), cluster.port)
    run_request(lambda client: installation.install_crds(client, [GADGET_CRD]))

    def create_gadget(name: str) -> None:
        metadata = {"name": name, "namespace": "default"}
        gadget = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": metadata}
        run_request(lambda client: client.create(GADGETS, gadget))

    with Driver(loading.load(str(tmp_path / "mine.yaml")), facts, loading.load("reference")) as driver:
        assert not driver.installer.has_webhooks
        driver.install()
        with pytest.raises(ApiError, match=r"mine\.example\.com"):
            create_gadget("before")
        with pytest.raises(RuntimeError), driver.installer.without_webhooks():
            create_gadget("meanwhile")
            raise RuntimeError("the test goes wrong")
        with pytest.raises(ApiError, match=r"mine\.example\.com"):
            create_gadget("after")
        assert driver.installer.has_webhooks
    run_request(lambda client: installation.install_webhooks(client, [], {("ValidatingWebhookConfiguration", "mine")}))


READER_ROLE = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [pods], verbs: [list]}]
"""


def test_each_role_is_a_user_with_the_permissions_in_the_descriptor(
    cluster: Cluster, run_request, tmp_path: Path
) -> None:
    text = OPERATOR_DESCRIPTOR.format(name="mine").replace("webhooks", "objects").replace("mine-hooks", "reader")
    (tmp_path / "mine.yaml").write_text(text + "clusterRoles: {operator: reader}\n")
    (tmp_path / "reader.yaml").write_text(READER_ROLE)
    facts = deployment.facts_of(cluster)
    Driver(loading.load(str(tmp_path / "mine.yaml")), facts, loading.load("reference")).install()

    def access_of(path: Path) -> tuple[str, bool]:
        """Return the user that the API server authenticates by a kubeconfig, and whether that user may list nodes."""

        async def main() -> tuple[str, bool]:
            async with Client.from_kubeconfig(path, user_agent="grove-conformance") as client:
                review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
                answer = await client.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=review)
                await client.list(PODS)
                try:
                    await client.list(NODES)
                except ApiError as error:
                    assert error.status == 403
                    return json.loads(answer)["status"]["userInfo"]["username"], False
                return json.loads(answer)["status"]["userInfo"]["username"], True

        return asyncio.run(main())

    assert facts.role_kubeconfig is not None
    assert access_of(facts.role_kubeconfig(Role.OPERATOR)) == ("operator", False)
    assert access_of(facts.role_kubeconfig(Role.GANG_SCHEDULER)) == ("gang-scheduler", True)
    assert access_of(facts.kubeconfig) == ("grove-conformance", True)
    assert access_of(cluster.kubeconfig) == ("kubernetes-admin", True)


def test_a_cluster_role_that_does_not_exist_is_reported(cluster: Cluster, tmp_path: Path) -> None:
    text = OPERATOR_DESCRIPTOR.format(name="mine").replace('install: {webhooks: ["${here}/mine-hooks.yaml"]}\n', "")
    (tmp_path / "mine.yaml").write_text(text + "clusterRoles: {operator: nobody}\n")
    driver = Driver(loading.load(str(tmp_path / "mine.yaml")), deployment.facts_of(cluster), loading.load("reference"))
    with pytest.raises(UsageError, match=r"mine\.yaml:\d+: clusterRoles\.operator: there is no ClusterRole nobody"):
        driver.install()


def test_a_manifest_of_another_kind_is_reported(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"x\.yaml: holds an object of kind 'Pod' — only CustomResourceDefinition"):
        installation.read_manifests(
            tmp_path / "x.yaml", "kind: Pod\nmetadata: {name: a}", ("CustomResourceDefinition",)
        )
