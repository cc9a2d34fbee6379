"""Tests that the groups and Workloads of a PodGang are found, whatever object controls them."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.grove import labels
from conformance.grove.expected import expected
from conformance.grove.fields import name
from conformance.grove.workloads import load
from conformance.history.view import View
from conformance.tests.workload_api import objects_of_gangs as objects
from tests.history.story import Story

EXPECTED = expected(dict(load("components", {})))
[GANG] = EXPECTED.base_gangs
CLIQUES = sorted(GANG.minimums)
LEAVES = [f"leaf-of-{clique}" for clique in CLIQUES]
GANG_KIND, SET_KIND, NO_CONTROLLER = "PodGang", "PodCliqueSet", ""


def _view(controllers: dict[str, str], *, grouped: bool = True) -> View:
    """Return a view of a gang with one pod per clique.

    A Workload, a CompositePodGroup and PodGroups belong to the gang; `controllers` has the kinds that control them. The
    view has the same objects again without a controller. The pods name their PodGroups only if they are `grouped`.
    """
    story = Story()
    groups = [{"name": clique, "minReplicas": 1} for clique in CLIQUES]
    owners = {SET_KIND: story.owned("podcliquesets", "of-gangs", None).uid}
    owners[GANG_KIND] = story.record("podgangs", GANG.name, {"spec": {"podgroups": groups}}).uid

    def create(resource: str, object_name: str, spec: dict[str, Any]) -> None:
        kind = "" if object_name.startswith("other") else controllers[resource]
        references = [{"kind": kind, "name": "any", "uid": owners[kind], "controller": True}] if kind else []
        story.record(resource, object_name, {"metadata": {"ownerReferences": references}, "spec": spec})

    for prefix in ("", "other-"):
        of = {"workloadRef": {"workloadName": f"{prefix}workload"}}
        create("workloads", f"{prefix}workload", {})
        create("compositepodgroups", f"{prefix}root", of)
        for leaf in LEAVES:
            create("podgroups", f"{prefix}{leaf}", {**of, "parentCompositePodGroupName": f"{prefix}root"})
    for clique, leaf in zip(CLIQUES, LEAVES, strict=True):
        group = {"schedulingGroup": {"podGroupName": leaf}} if grouped else {}
        story.record("pods", f"{clique}-x", {"metadata": {"labels": {labels.CLIQUE: clique}}, "spec": group})
    return story.history.view()


@pytest.mark.parametrize(
    "controllers",
    [
        {"workloads": of_workload, "compositepodgroups": of_composite, "podgroups": of_leaf}
        for of_workload in (GANG_KIND, SET_KIND)
        for of_composite in (GANG_KIND, NO_CONTROLLER)
        for of_leaf in (GANG_KIND, SET_KIND)
    ],
)
def test_objects_are_found_regardless_of_their_controller(controllers: dict[str, str]) -> None:
    view = _view(controllers)
    gang_objects = objects.objects_of_gang(view, GANG)
    assert [name(item) for item in gang_objects.workloads] == ["workload"]
    assert [name(item) for item in gang_objects.roots] == ["root"]
    assert sorted(map(name, gang_objects.leaves)) == LEAVES
    assert objects.is_tree_complete(EXPECTED, GANG)(view) is True


def test_pods_that_name_no_group_do_not_hide_the_tree_of_the_gang() -> None:
    kinds = ("workloads", "compositepodgroups", "podgroups")
    view = _view(dict.fromkeys(kinds, GANG_KIND), grouped=False)
    assert objects.is_tree_complete(EXPECTED, GANG)(view) is True


def test_groups_without_a_connection_to_the_gang_do_not_belong_to_it() -> None:
    kinds = ("workloads", "compositepodgroups", "podgroups")
    view = _view(dict.fromkeys(kinds, SET_KIND), grouped=False)
    assert objects.objects_of_gang(view, GANG) == objects.GangObjects([], [], [])
