"""Tests of the start-up order: the parents of each clique, and the init container that waits for them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from reference_impl.api.models import PodCliqueSet
from reference_impl.plan import children, labels, pods, startup
from tests.reference import examples
from tests.reference.test_objects import scaling_group

ANY, IN_ORDER, EXPLICIT = (f"CliqueStartupType{word}" for word in ("AnyOrder", "InOrder", "Explicit"))


def pcs(
    kind: str,
    cliques: dict[str, list[str]],
    group: list[str] | None = None,
    *,
    minimum: int = 1,
    replicas: int = 3,
    minimums: dict[str, int] | None = None,
) -> PodCliqueSet:
    """Return a PodCliqueSet named `p`. `cliques` maps each clique name to its `startsAfter`; `group` lists the cliques
    of scaling group `sg`."""
    templates: list[Any] = [
        {
            "name": name,
            "spec": {
                "roleName": name,
                "replicas": 3,
                "minAvailable": (minimums or {}).get(name, 1),
                "startsAfter": after,
                "podSpec": {"containers": [{"name": "main", "image": "x"}]},
            },
        }
        for name, after in cliques.items()
    ]
    groups = [{"name": "sg", "cliqueNames": group, "replicas": replicas, "minAvailable": minimum}] if group else []
    template = {"cliqueStartupType": kind, "cliques": templates, "podCliqueScalingGroups": groups}
    metadata = {"name": "p", "namespace": "ns", "uid": "u"}
    return msgspec.convert({"metadata": metadata, "spec": {"replicas": 1, "template": template}}, PodCliqueSet)


def cliques(pod_clique_set: PodCliqueSet) -> dict[str, children.Manifest]:
    manifests = [examples.standalone(pod_clique_set, 0, t) for t in children.standalone_templates(pod_clique_set)]
    if children.group_configs(pod_clique_set):
        manifests += examples.members(pod_clique_set, scaling_group(pod_clique_set))
    return {m["metadata"]["name"]: m for m in manifests}


def parents(pod_clique_set: PodCliqueSet) -> dict[str, list[str]]:
    """Return `startsAfter` by clique, for the cliques that have it."""
    specs = {name: manifest["spec"] for name, manifest in cliques(pod_clique_set).items()}
    return {name: spec["startsAfter"] for name, spec in specs.items() if "startsAfter" in spec}


def pod_spec(pod_clique_set: PodCliqueSet, name: str) -> dict[str, Any]:
    clique, placement = examples.clique(cliques(pod_clique_set)[name]), examples.placement(pod_clique_set)
    gang = clique.metadata.label(labels.PODGANG)
    template = children.clique_template(pod_clique_set, clique)
    assert template is not None
    waits = startup.awaited_cliques(pod_clique_set, template, 0, placement.gangs[gang])
    return dict(pods.PodBuilder(clique, "s", waits, "initc:1").pod(0, gang)["spec"])


def test_any_order_has_no_parents_regardless_of_the_template():
    assert parents(pcs(ANY, {"fe": [], "ld": ["fe"], "wk": ["ld"]}, ["ld", "wk"])) == {}


def test_in_order_cliques_wait_for_the_previous_clique_within_their_gang():
    assert parents(pcs(IN_ORDER, {"fe": [], "ld": [], "wk": []}, ["ld", "wk"], replicas=2)) == {
        "p-0-sg-0-ld": ["p-0-fe"],
        "p-0-sg-0-wk": ["p-0-sg-0-ld"],
        "p-0-sg-1-wk": ["p-0-sg-1-ld"],
    }


def test_in_order_base_replicas_wait_for_all_base_replicas():
    both = ["p-0-sg-0-ld", "p-0-sg-1-ld"]
    by_clique = parents(pcs(IN_ORDER, {"fe": [], "ld": [], "wk": []}, ["ld", "wk"], minimum=2))
    assert by_clique["p-0-sg-0-wk"] == by_clique["p-0-sg-1-wk"] == both
    assert by_clique["p-0-sg-2-wk"] == ["p-0-sg-2-ld"]


def test_in_order_a_scaled_gang_follows_the_order_of_its_own_cliques():
    """A standalone clique between two members is not in their scaled gang, but it is in the base gang."""
    by_clique = parents(pcs(IN_ORDER, {"a": [], "x": [], "b": []}, ["a", "b"], replicas=2))
    assert by_clique == {"p-0-x": ["p-0-sg-0-a"], "p-0-sg-0-b": ["p-0-x"], "p-0-sg-1-b": ["p-0-sg-1-a"]}


def test_explicit_cliques_wait_for_named_parents_within_their_gang():
    assert parents(pcs(EXPLICIT, {"fe": [], "ld": [], "wk": ["fe", "ld"]}, ["ld", "wk"])) == {
        "p-0-sg-0-wk": ["p-0-fe", "p-0-sg-0-ld"],
        "p-0-sg-1-wk": ["p-0-sg-1-ld"],
        "p-0-sg-2-wk": ["p-0-sg-2-ld"],
    }


def test_explicit_a_standalone_clique_waits_only_for_base_replicas():
    by_clique = parents(pcs(EXPLICIT, {"z": ["wk"], "wk": []}, ["wk"], minimum=2))
    assert by_clique == {"p-0-z": ["p-0-sg-0-wk", "p-0-sg-1-wk"]}


def test_the_init_container_comes_last_and_names_each_parent_with_its_minimum():
    pod_clique_set = pcs(EXPLICIT, {"fe": [], "ld": [], "wk": ["fe", "ld"]}, ["ld", "wk"], minimums={"fe": 3, "ld": 2})
    pod_clique_set.spec.template.cliques[2].spec.pod_spec |= {
        "initContainers": [{"name": "own", "image": "y"}],
        "volumes": [{"name": "data", "emptyDir": {}}],
    }
    spec = pod_spec(pod_clique_set, "p-0-sg-0-wk")
    user_container, waiter = spec["initContainers"]
    assert user_container["name"] == "own" and user_container["env"]
    assert waiter == {
        "name": "grove-initc",
        "image": "initc:1",
        "args": ["--podcliques=p-0-fe:3", "--podcliques=p-0-sg-0-ld:2"],
        "volumeMounts": [
            {"name": "pod-info-vol", "mountPath": "/var/grove/pod-info", "readOnly": True},
            {
                "name": "sa-token-secret-vol",
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
                "readOnly": True,
            },
        ],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    data, token, info = spec["volumes"]
    assert data == {"name": "data", "emptyDir": {}}
    assert token["secret"] == {"secretName": "p-ic-sat", "defaultMode": 420}
    paths = {item["path"]: item["fieldRef"]["fieldPath"] for item in info["downwardAPI"]["items"]}
    assert paths == {"namespace": "metadata.namespace", "podgangname": "metadata.labels['grove.io/podgang']"}
    scaled = pod_spec(pod_clique_set, "p-0-sg-2-wk")["initContainers"][-1]
    assert scaled["args"] == ["--podcliques=p-0-sg-2-ld:2"]


@pytest.mark.parametrize("name", ["p-0-fe", "p-0-sg-0-ld"])
def test_pods_without_parents_have_no_init_container_and_no_volumes(name: str):
    spec = pod_spec(pcs(EXPLICIT, {"fe": [], "ld": [], "wk": ["ld"]}, ["ld", "wk"]), name)
    assert "initContainers" not in spec and "volumes" not in spec


def test_minimums_are_found_by_full_names():
    """Matching by suffix would use the minimum of `b` for `a-b` (OBJ-634)."""
    pod_clique_set = pcs(EXPLICIT, {"b": [], "a-b": [], "c": ["a-b", "b"]}, minimums={"b": 1, "a-b": 2})
    assert pod_spec(pod_clique_set, "p-0-c")["initContainers"][-1]["args"] == [
        "--podcliques=p-0-a-b:2",
        "--podcliques=p-0-b:1",
    ]
