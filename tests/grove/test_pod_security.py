"""Tests that the pods of all fixtures satisfy the Pod Security Standard `restricted`, by a check that needs no
cluster."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from conformance.grove import template_pairs, workloads
from conformance.scale import scenario

Spec = Mapping[str, Any]
VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
ALLOWED: Spec = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [
        {
            "name": "main",
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        }
    ],
}


def violations(spec: Spec) -> Iterator[str]:
    """Yield the rules of the standard that a pod spec breaks (concepts/security/pod-security-standards)."""
    pod = spec.get("securityContext") or {}
    yield from (field for field in ("hostNetwork", "hostPID", "hostIPC") if spec.get(field))
    for volume in spec.get("volumes") or ():
        yield from (f"volume {key}" for key in volume.keys() - VOLUMES - {"name"})
    if pod.get("sysctls") or pod.get("seLinuxOptions") or pod.get("appArmorProfile"):
        yield "options that the check does not judge"
    for key in ("initContainers", "containers"):
        for container in spec.get(key) or ():
            yield from (f"{container['name']}: {wrong}" for wrong in _of_container(container, pod))


def _of_container(container: Spec, pod: Spec) -> Iterator[str]:
    context = container.get("securityContext") or {}
    both = {**pod, **context}
    capabilities = context.get("capabilities") or {}
    if context.get("privileged") or context.get("allowPrivilegeEscalation") is not False:
        yield "privileges"
    if "ALL" not in capabilities.get("drop", ()) or set(capabilities.get("add", ())) - {"NET_BIND_SERVICE"}:
        yield "capabilities"
    if both.get("runAsNonRoot") is not True or both.get("runAsUser") == 0:
        yield "runs as root"
    if (both.get("seccompProfile") or {}).get("type") not in ("RuntimeDefault", "Localhost"):
        yield "seccomp"
    if context.get("procMount") not in (None, "Default"):
        yield "procMount"
    if any(port.get("hostPort") for port in container.get("ports") or ()):
        yield "hostPort"


def with_container(**fields: object) -> Spec:
    [container] = ALLOWED["containers"]
    return {**ALLOWED, "containers": [{**container, **fields}]}


@pytest.mark.parametrize(
    ("spec", "wrong"),
    [
        (ALLOWED, []),
        ({**ALLOWED, "hostNetwork": True}, ["hostNetwork"]),
        ({**ALLOWED, "volumes": [{"name": "v", "hostPath": {"path": "/"}}]}, ["volume hostPath"]),
        ({**ALLOWED, "securityContext": {"runAsNonRoot": True}}, ["main: seccomp"]),
        ({"containers": ALLOWED["containers"]}, ["main: runs as root", "main: seccomp"]),
        (with_container(securityContext={}), ["main: privileges", "main: capabilities"]),
        (with_container(ports=[{"hostPort": 80}]), ["main: hostPort"]),
        ({**ALLOWED, "initContainers": [{"name": "first"}]}, ["first: privileges", "first: capabilities"]),
    ],
)
def test_the_check_names_violations_of_the_standard(spec: Spec, wrong: list[str]) -> None:
    assert list(violations(spec)) == wrong


def violations_of_set(manifest: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the violations by clique, for the cliques that have violations."""
    cliques = manifest["spec"]["template"]["cliques"]
    by_clique = {clique["name"]: list(violations(clique["spec"]["podSpec"])) for clique in cliques}
    return {name: wrong for name, wrong in by_clique.items() if wrong}


@pytest.mark.parametrize("name", workloads.names())
def test_workloads_satisfy_the_standard(name: str) -> None:
    assert violations_of_set(workloads.load(name)) == {}


@pytest.mark.parametrize("name", scenario.names())
def test_scale_scenarios_satisfy_the_standard(name: str) -> None:
    assert violations_of_set(scenario.load(name).manifest) == {}


def test_templates_of_hashes_satisfy_the_standard() -> None:
    pairs = template_pairs.read()
    all_pairs = [
        *(pairs.keyed + pairs.ordered + pairs.open + pairs.changed + pairs.outside_pod_spec),
        *(pairs.notations + pairs.foreign_notations),
        template_pairs.random_notations(random.Random(1), pairs.base, "chance"),
    ]
    cliques = [side for pair in all_pairs for side in (pair.before, pair.after)]
    for seed in range(20):
        chance = random.Random(seed)
        random_spec = template_pairs.random_pod_spec(chance)
        cliques += [
            template_pairs.template(name, change(chance, random_spec))
            for name, change in {"r": template_pairs.reordered_spec, "c": template_pairs.changed_spec}.items()
        ]
    assert violations_of_set({"spec": {"template": {"cliques": cliques}}}) == {}
