"""Tests of the defaulting webhook."""

from __future__ import annotations

import pytest

from reference_impl.plan import defaults


def paths(pcs):
    return {operation["path"]: operation["value"] for operation in defaults.patch(pcs)}


def test_missing_fields_are_added():
    clique = {
        "name": "a",
        "spec": {
            "roleName": "a",
            "replicas": 3,
            "podSpec": {"containers": []},
            "autoScalingConfig": {"maxReplicas": 5},
        },
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


def test_given_values_are_kept():
    pod = {"containers": [], "restartPolicy": "Never", "terminationGracePeriodSeconds": 0}
    clique = {"name": "a", "spec": {"roleName": "a", "replicas": 1, "minAvailable": 0, "podSpec": pod}}
    template = {
        "terminationDelay": "1h0m0s",
        "headlessServiceConfig": {"publishNotReadyAddresses": False},
        "cliques": [clique],
    }
    assert paths({"spec": {"template": template}}) == {}


def test_zero_replicas_become_one_before_the_minimum_is_derived():
    """Unlike upstream, which keeps 0 (DEF-11)."""
    values = paths({"spec": {"template": {"cliques": [{"name": "a", "spec": {"replicas": 0, "roleName": "a"}}]}}})
    assert values["/spec/template/cliques/0/spec/replicas"] == 1
    assert values["/spec/template/cliques/0/spec/minAvailable"] == 1


@pytest.mark.parametrize("wrong", [None, 5, "x", [], {"template": None}, {"template": {"cliques": [None, 3, {}]}}])
def test_defaulting_accepts_every_object(wrong):
    assert isinstance(defaults.patch({"spec": wrong}), list)


def test_absent_required_scalars_get_zero_values():
    """Go writes such fields as empty values (DFT-23)."""
    clique = {"spec": {"autoScalingConfig": {}}}
    values = paths({"spec": {"template": {"cliques": [clique], "resourceSharing": [{}]}}})
    root = "/spec/template"
    assert values[f"{root}/cliques/0/name"] == values[f"{root}/cliques/0/spec/roleName"] == ""
    assert values[f"{root}/cliques/0/spec/autoScalingConfig/maxReplicas"] == 0
    assert values[f"{root}/resourceSharing/0/name"] == ""


@pytest.mark.parametrize(("given", "stored"), [("90m", "1h30m0s"), ("1h30m0s", None), ("abc", None), (5, None)])
def test_durations_are_written_in_the_notation_of_go(given, stored):
    assert paths({"spec": {"template": {"terminationDelay": given}}}).get("/spec/template/terminationDelay") == stored
