"""Tests of the comparison of pod specs with their templates."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.grove import pod_specs

Spec = dict[str, Any]

MAIN: Spec = {
    "name": "main",
    "command": ["serve"],
    "args": ["--a", "1", "--b", "2"],
    "env": [{"name": "A", "value": "x"}, {"name": "B", "value": "$(A)"}],
    "resources": {},
}
TEMPLATE: Spec = {
    "initContainers": [{"name": "download"}, {"name": "wait-for-leader"}],
    "containers": [MAIN],
    "nodeSelector": {"example.com/pool": "a"},
    "tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}],
}
GROVES = {"name": "GROVE_PCS_NAME", "value": "set"}


def same_pod(pod: Spec, accepted: Spec = TEMPLATE) -> bool:
    return pod_specs.of_pod(pod, accepted, TEMPLATE) == pod_specs.of_pod(accepted, accepted, TEMPLATE)


def same_clique(pod_spec: Spec, accepted: Spec) -> bool:
    return pod_specs.of_clique(pod_spec, TEMPLATE, accepted) == pod_specs.of_clique(TEMPLATE, TEMPLATE, accepted)


def with_main(**fields: Any) -> Spec:
    return {**TEMPLATE, "containers": [{**MAIN, **fields}]}


WRONG = {
    "init containers reversed": {**TEMPLATE, "initContainers": TEMPLATE["initContainers"][::-1]},
    "a container added": {**TEMPLATE, "containers": [MAIN, {"name": "more"}]},
    "arguments reversed": with_main(args=MAIN["args"][::-1]),
    "an argument added": with_main(args=[*MAIN["args"], "--a", "9"]),
    "variables reversed": with_main(env=MAIN["env"][::-1]),
    "a variable added": with_main(env=[*MAIN["env"], {"name": "C", "value": "y"}]),
    "a field added": {**TEMPLATE, "hostNetwork": True},
    "a field of a container added": with_main(tty=True),
    "tolerations reversed": {**TEMPLATE, "tolerations": TEMPLATE["tolerations"][::-1]},
    "a selector changed": {**TEMPLATE, "nodeSelector": {"example.com/pool": "b"}},
    "containers of the wrong type": {**TEMPLATE, "containers": "main"},
    **{f"{field} dropped": {key: value for key, value in TEMPLATE.items() if key != field} for field in TEMPLATE},
}


@pytest.mark.parametrize("name", WRONG)
def test_pods_and_cliques_that_differ_are_seen(name: str) -> None:
    assert not same_pod(WRONG[name])
    assert not same_clique(WRONG[name], TEMPLATE)


RIGHT = {
    "as the template": TEMPLATE,
    "variables of Grove in front": with_main(env=[GROVES, *MAIN["env"]]),
    "variables of Grove at the end": with_main(env=[*MAIN["env"], GROVES]),
    "what Grove sets": {**TEMPLATE, "hostname": "a", "subdomain": "b", "schedulingGates": [{"name": "c"}]},
    "what a scheduler sets": {**TEMPLATE, "nodeName": "n", "schedulingGroup": {"podGroupName": "g"}},
    "a selector of the back-end": {**TEMPLATE, "nodeSelector": {**TEMPLATE["nodeSelector"], "example.com/x": "y"}},
    "a toleration of the back-end": {**TEMPLATE, "tolerations": [{"key": "x"}, *TEMPLATE["tolerations"]]},
    "an affinity of the back-end": {**TEMPLATE, "affinity": {"nodeAffinity": {}}},
    "a claim": {**with_main(resources={"claims": [{"name": "x"}]}), "resourceClaims": [{"name": "x"}]},
}


WAIT: Spec = {"name": "wait", "volumeMounts": [{"name": "token"}]}
WAITING: Spec = {
    **TEMPLATE,
    "initContainers": [*TEMPLATE["initContainers"], WAIT],
    "volumes": [{"name": "token"}],
    "serviceAccountName": "waits",
}


SIDECAR: Spec = {**WAIT, "restartPolicy": "Always"}


def test_pods_and_cliques_may_have_init_containers_that_wait() -> None:
    assert same_pod(WAITING)
    assert same_clique(WAITING, TEMPLATE)
    waiting = {**WAITING, "initContainers": [*TEMPLATE["initContainers"], WAIT]}
    assert same_clique({**waiting, "serviceAccount": "waits"}, {**TEMPLATE, "serviceAccountName": "default"})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("initContainers", [WAIT], id="those of the template are lost"),
        pytest.param("initContainers", [*TEMPLATE["initContainers"], SIDECAR], id="it does not end"),
        pytest.param("volumes", [*WAITING["volumes"], {"name": "more"}], id="nothing mounts it"),
    ],
)
def test_they_may_have_nothing_else_for_that(field: str, value: list[Spec]) -> None:
    assert not same_pod({**WAITING, field: value})
    assert not same_clique({**WAITING, field: value}, TEMPLATE)


def test_an_account_of_the_template_stays() -> None:
    template = {**TEMPLATE, "serviceAccountName": "own"}
    other = {**template, "serviceAccountName": "waits"}
    assert pod_specs.of_clique(other, template, template) != pod_specs.of_clique(template, template, template)


@pytest.mark.parametrize("name", RIGHT)
def test_permitted_additions_are_ignored(name: str) -> None:
    assert same_pod(RIGHT[name])
    assert same_clique(RIGHT[name], TEMPLATE)


def test_variables_of_grove_may_be_the_only_ones() -> None:
    plain = {"containers": [{"name": "main"}]}
    assert same_pod({"containers": [{"name": "main", "env": [GROVES]}]}, plain)


def test_the_random_names_of_token_volumes_are_alike() -> None:
    def pod(name: str) -> Spec:
        mounts = [{"name": name, "mountPath": "/token"}]
        return {**with_main(volumeMounts=mounts), "volumes": [{"name": name, "projected": {}}]}

    assert same_pod(pod("kube-api-access-x4b2z"), pod("kube-api-access-9zzzz"))
    assert not same_pod(pod("kube-api-access"), pod("other"))


def test_cliques_may_have_defaults_and_no_other_values() -> None:
    accepted = {**TEMPLATE, "dnsPolicy": "ClusterFirst", "containers": [{**MAIN, "imagePullPolicy": "Always"}]}
    assert same_clique({**with_main(imagePullPolicy="Always"), "dnsPolicy": "ClusterFirst"}, accepted)
    assert not same_clique({**TEMPLATE, "dnsPolicy": "None"}, accepted)
    assert not same_clique(with_main(imagePullPolicy="Never"), accepted)


def test_cliques_may_lack_empty_values_that_the_api_server_leaves_out() -> None:
    lists: Spec = {"initContainers": [], "imagePullSecrets": []}
    nonempty = {"affinity": {}, "securityContext": {"runAsUser": 0}, "containers": [MAIN]}
    sent, accepted = {**lists, **nonempty, "containers": [{**MAIN, "ports": []}]}, nonempty

    def fields(pod_spec: Spec) -> dict[str, object]:
        return pod_specs.of_clique(pod_spec, sent, accepted)

    assert fields(nonempty) == fields(sent)
    assert fields({**nonempty, "affinity": None}) != fields(sent)
    assert fields({**nonempty, "securityContext": {}}) != fields(sent), "the user 0 is a user"


def test_fields_without_a_schema_are_pruned() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "array", "items": {"type": "object", "properties": {"b": {"type": "string"}}}},
            "limits": {"type": "object", "additionalProperties": {"type": "string"}},
            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    value = {"a": [{"b": "1", "c": "2"}], "limits": {"cpu": "1"}, "any": {"x": {"y": 1}}, "new": 1}
    assert pod_specs.prune(value, schema) == {"a": [{"b": "1"}], "limits": {"cpu": "1"}, "any": {"x": {"y": 1}}}
