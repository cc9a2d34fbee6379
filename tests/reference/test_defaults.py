"""The defaulting webhook."""

from __future__ import annotations

import base64

import orjson
import pytest

from reference_impl.admission import server
from reference_impl.plan import defaults


def paths(pcs):
    return {operation["path"]: operation["value"] for operation in defaults.patch(pcs)}


def test_what_is_missing_is_added():
    clique = {
        "name": "a",
        "spec": {"replicas": 3, "podSpec": {"containers": []}, "autoScalingConfig": {"maxReplicas": 5}},
    }
    group = {"name": "g", "cliqueNames": ["a"], "replicas": 2, "scaleConfig": {"maxReplicas": 4}}
    template = {"cliques": [clique], "podCliqueScalingGroups": [group]}
    root = "/spec/template"
    assert paths({"spec": {"template": template}}) == {
        f"{root}/terminationDelay": "4h0m0s",
        f"{root}/headlessServiceConfig": {"publishNotReadyAddresses": True},
        f"{root}/cliques/0/spec/minAvailable": 3,
        f"{root}/cliques/0/spec/autoScalingConfig/minReplicas": 3,
        f"{root}/cliques/0/spec/podSpec/restartPolicy": "Always",
        f"{root}/cliques/0/spec/podSpec/terminationGracePeriodSeconds": 30,
        f"{root}/podCliqueScalingGroups/0/scaleConfig/minReplicas": 2,
    }


def test_what_is_given_is_kept():
    pod = {"containers": [], "restartPolicy": "Never", "terminationGracePeriodSeconds": 0}
    clique = {"name": "a", "spec": {"replicas": 1, "minAvailable": 0, "podSpec": pod}}
    template = {
        "terminationDelay": "1h",
        "headlessServiceConfig": {"publishNotReadyAddresses": False},
        "cliques": [clique],
    }
    assert paths({"spec": {"template": template}}) == {}


def test_replicas_of_zero_become_one_before_the_floor_is_taken_from_them():
    """DEF-11 done right."""
    found = paths({"spec": {"template": {"cliques": [{"name": "a", "spec": {"replicas": 0, "roleName": "a"}}]}}})
    assert found["/spec/template/cliques/0/spec/replicas"] == 1
    assert found["/spec/template/cliques/0/spec/minAvailable"] == 1


@pytest.mark.parametrize("wrong", [None, 5, "x", [], {"template": None}, {"template": {"cliques": [None, 3, {}]}}])
def test_no_object_makes_the_webhook_stumble(wrong):
    answer = server.review({"request": {"uid": "1", "object": {"spec": wrong}}})["response"]
    assert answer["allowed"] and answer["uid"] == "1"


def test_the_patch_is_base64_of_json():
    answer = server.review({"request": {"uid": "1", "object": {"spec": {"template": {}}}}})["response"]
    assert {operation["op"] for operation in orjson.loads(base64.b64decode(answer["patch"]))} == {"add"}
