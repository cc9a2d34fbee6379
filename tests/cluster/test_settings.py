"""Tests of the configuration that is passed to kwokctl."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance.cluster.assets import Assets
from conformance.cluster.features import Features
from conformance.cluster.mutating import resources
from conformance.cluster.ports import Port
from conformance.cluster.settings import (
    NODE_LEASES,
    ClusterSettings,
    audit_policy,
    extra_files,
    kwokctl_configuration,
    scheduler_configuration,
)

ASSETS = Assets(**{name: Path("/bin") / name for name in Assets.__dataclass_fields__})
PORTS = {port: 20000 + port for port in Port}
DIRECTORY = Path("/state/dev")


def documents(memory: int = 8, features: Features = Features(), **choices: Any) -> list[dict[str, Any]]:  # noqa: B008
    versions = {"kubernetes": "1.2.3", "etcd": "4.5.6", "kwok": "0.8.0"}
    return kwokctl_configuration(ClusterSettings(**choices), features, ASSETS, PORTS, versions, DIRECTORY, memory)


def test_components_listen_on_loopback_only_and_every_port_is_set() -> None:
    options = documents()[0]["options"]
    assert options["bindAddress"] == "127.0.0.1" and options["runtime"] == "binary"
    ports = [value for key, value in options.items() if key.endswith("Port")]
    assert sorted(ports) == [20000, 20001, 20002, 20003, 20004, 20005]


def test_every_program_is_given_so_that_nothing_is_downloaded() -> None:
    options = documents()[0]["options"]
    binaries = {value for key, value in options.items() if key.endswith("Binary")}
    assert binaries == {str(path) for name, path in vars(ASSETS).items() if name != "kwokctl"}


def test_the_kwok_document_sets_every_field_because_fields_have_no_defaults() -> None:
    options = documents()[1]["options"]
    assert all(options.values()) and len(options) == 7  # FC-031


def test_nodes_and_pods_both_have_stages() -> None:
    kinds = {stage["spec"]["resourceRef"]["kind"] for stage in documents() if stage["kind"] == "Stage"}
    assert kinds == {"Node", "Pod"}  # FC-032


def test_requested_gates_follow_the_gates_of_every_cluster() -> None:
    """If a feature gate is set twice, Kubernetes uses the last value."""
    requested_features = Features({"kube-apiserver": {"GenericWorkload": True}})
    [server] = [
        p for p in documents(features=requested_features)[0]["componentsPatches"] if p["name"] == "kube-apiserver"
    ]
    [gates] = [argument["value"] for argument in server["extraArgs"] if argument["key"] == "feature-gates"]
    assert gates == "UnknownVersionInteroperabilityProxy=false,GenericWorkload=true"


def test_kube_scheduler_can_be_disabled() -> None:
    options = documents(scheduler=False)[0]["options"]
    assert options["disable"] == ["kube-scheduler"] and "kubeSchedulerConfig" not in options


@pytest.mark.parametrize("audit", [True, False])
@pytest.mark.parametrize("scheduler", [True, False])
def test_the_configured_files_are_the_files_that_are_written(audit: bool, scheduler: bool) -> None:
    choices = {"audit": audit, "scheduler": scheduler}
    options = documents(**choices)[0]["options"]
    configured_files = {value for key, value in options.items() if key in ("kubeAuditPolicy", "kubeSchedulerConfig")}
    assert configured_files == {str(DIRECTORY / name) for name in extra_files(ClusterSettings(**choices))}


def test_only_writes_except_leases_are_audited() -> None:
    policy = audit_policy()
    assert policy["omitStages"] == ["RequestReceived"]
    assert [rule["level"] for rule in policy["rules"] if "resources" not in rule] == ["None", "Metadata"]


def audit_level(user: str, group: str, resource: str, verb: str = "patch", namespace: str = "") -> str:
    """Return the audit level of a request: the level of the first matching rule."""
    for rule in audit_policy()["rules"]:
        kinds = {(entry["group"], kind) for entry in rule.get("resources", ()) for kind in entry["resources"]}
        matches = verb in rule.get("verbs", (verb,)) and user in rule.get("users", (user,))
        if matches and namespace in rule.get("namespaces", (namespace,)) and (not kinds or (group, resource) in kinds):
            return str(rule["level"])
    return ""


@pytest.mark.parametrize(
    ("user", "verb", "namespace", "level"),
    [
        ("kwok-admin", "create", NODE_LEASES, "Metadata"),
        ("kwok-admin", "update", NODE_LEASES, "None"),
        ("operator", "update", NODE_LEASES, "Metadata"),
        ("operator", "create", "default", "None"),
    ],
)
def test_of_leases_only_those_of_nodes_are_audited_when_they_are_created_or_written_by_strangers(
    user: str, verb: str, namespace: str, level: str
) -> None:
    assert audit_level(user, "coordination.k8s.io", "leases", verb, namespace) == level


@pytest.mark.parametrize("user", ["kwok-admin", "grove-conformance", "operator"])
def test_requests_that_admission_can_change_unnoticed_are_audited_with_their_bodies(user: str) -> None:
    assert audit_level(user, "", "pods/status") == "RequestResponse"
    assert (
        audit_level(user, "", "nodes")
        == audit_level(user, "", "pods")
        == audit_level(user, "grove.io", "podcliques")
        == "Metadata"
    )


@pytest.mark.parametrize(
    "group, resource", [(entry["group"], kind) for entry in resources() for kind in entry["resources"]]
)
def test_objects_by_which_the_api_server_changes_other_objects_are_audited_with_their_bodies(
    group: str, resource: str
) -> None:
    assert audit_level("operator", group, resource) == audit_level("kwok-admin", group, resource) == "RequestResponse"
    assert audit_level("grove-conformance", group, resource) == "Metadata"


def test_kube_scheduler_has_the_given_name_and_is_not_throttled() -> None:
    configuration = scheduler_configuration("other")
    assert [profile["schedulerName"] for profile in configuration["profiles"]] == ["other"]
    assert configuration["clientConnection"]["qps"] >= 1000


def test_only_token_requests_of_components_are_audited_with_the_response() -> None:
    [rule] = [rule for rule in audit_policy()["rules"] if "serviceaccounts/token" in str(rule)]
    assert rule["level"] == "RequestResponse" and rule["users"] == ["kwok-admin"]


@pytest.mark.parametrize("addons", [True, False])
def test_aggregated_servers_receive_the_certificate_of_the_components_for_metrics_only(addons: bool) -> None:
    empty_flags = {
        flag: value for flag, value in flags("kube-apiserver", addons=addons).items() if "proxy-client" in flag
    }
    assert empty_flags == ({} if addons else {"proxy-client-cert-file": "", "proxy-client-key-file": ""})


def flags(component: str, **choices: Any) -> dict[str, str]:
    patches = {patch["name"]: patch["extraArgs"] for patch in documents(**choices)[0]["componentsPatches"]}
    return {argument["key"]: argument["value"] for argument in patches[component]}


def test_kwok_simulates_all_nodes_except_lost_ones() -> None:
    options = flags("kwok-controller")
    assert options["manage-all-nodes"] == "false"
    assert options["manage-nodes-with-label-selector"] == "!conformance.grove.io/lost"


def test_a_busy_machine_does_not_fail_nodes() -> None:
    renewal_seconds = int(flags("kwok-controller")["node-lease-duration-seconds"]) / 4
    assert flags("kube-controller-manager")["node-monitor-grace-period"] == "1h" and renewal_seconds * 10 < 3600


@pytest.mark.parametrize(("memory", "limit"), [(4, "3GiB"), (16, "4GiB"), (64, "16GiB")])
def test_the_memory_limit_of_the_api_server_depends_on_the_machine(memory: int, limit: str) -> None:
    [server] = [patch for patch in documents(memory)[0]["componentsPatches"] if patch["name"] == "kube-apiserver"]
    assert {"name": "GOMEMLIMIT", "value": limit} in server["extraEnvs"]


def test_every_component_collects_garbage_rarely() -> None:
    assert all({"name": "GOGC", "value": "400"} in patch["extraEnvs"] for patch in documents()[0]["componentsPatches"])


def test_etcd_serves_its_data_on_sockets_only() -> None:
    etcd_flags, apiserver_flags = flags("etcd"), flags("kube-apiserver")
    assert all(etcd_flags[key].startswith("unix://") for key in ("listen-client-urls", "listen-peer-urls"))
    assert apiserver_flags["etcd-servers"] == etcd_flags["listen-client-urls"]
