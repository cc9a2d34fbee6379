"""Tests that a set in which two objects would have the same name is rejected, and that such a set remains editable if
it is already stored."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest

from kube.informer import Informer
from kube.objects import ObjectMeta, OwnerReference
from reference_impl.admission.rules import collisions
from reference_impl.api.models import PodClique, PodCliqueSet
from reference_impl.control.cache import Cache
from reference_impl.plan.labels import SET_FINALIZER
from tests.reference import apiserver

SCALED = {"minReplicas": 1, "maxReplicas": 3}
SHARED = [{"name": "gpu", "scope": "AllReplicas", "namespace": "elsewhere"}]


def clique(name: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "registry.example/app:1"}]
    sharing = {"resourceSharing": spec.pop("sharing")} if "sharing" in spec else {}
    return {
        "name": name,
        **sharing,
        "spec": {"roleName": name, "replicas": 1, "podSpec": {"containers": containers}, **spec},
    }


def group(name: str, *members: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "cliqueNames": list(members), **fields}


def a_set(cliques: list[dict[str, Any]], *groups: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "s", "namespace": "n"},
        "spec": {"replicas": 1, "template": {"cliques": cliques, "podCliqueScalingGroups": list(groups)}},
    }


COLLIDING = {
    "clique and member": a_set([clique("wk"), clique("sg-0-wk")], group("sg", "wk")),
    "clique and member of a later replica": a_set([clique("sg-17-wk"), clique("wk")], group("sg", "wk")),
    "members of two groups": a_set([clique("1-b"), clique("b")], group("a", "1-b"), group("a-0", "b")),
    "members of two groups, far apart": a_set([clique("x-1-b"), clique("b")], group("a-0-x", "b"), group("a", "x-1-b")),
    "autoscalers": a_set([clique("x", autoScalingConfig=SCALED), clique("wk")], group("x", "wk", scaleConfig=SCALED)),
    "claims": a_set([clique("x", sharing=SHARED), clique("wk")], group("x", "wk", resourceSharing=SHARED)),
}
NOT_COLLIDING = {
    "another member": a_set([clique("wk"), clique("sg-0-other")], group("sg", "wk")),
    "no index": a_set([clique("wk"), clique("sg-00-wk"), clique("sg-a-wk")], group("sg", "wk")),
    "the group has it as its own member": a_set([clique("sg-0-wk"), clique("wk")], group("sg", "wk", "sg-0-wk")),
    "one autoscaler": a_set([clique("x", autoScalingConfig=SCALED), clique("wk")], group("x", "wk")),
    "claims of two scopes": a_set(
        [clique("x", sharing=SHARED), clique("wk")],
        group("x", "wk", resourceSharing=[{**SHARED[0], "scope": "PerReplica"}]),
    ),
    "groups alike": a_set([clique("a"), clique("b")], group("g", "a"), group("g-0", "b")),
}


@pytest.mark.parametrize("name", COLLIDING)
def test_a_set_with_a_collision_is_rejected_on_create(name: str) -> None:
    reply = apiserver.ask(COLLIDING[name])
    assert reply.refused and [error.kind for error in reply.errors] == ["Invalid"], reply


@pytest.mark.parametrize("name", NOT_COLLIDING)
def test_a_set_without_a_collision_is_accepted(name: str) -> None:
    assert apiserver.ask(NOT_COLLIDING[name]).accepted, apiserver.ask(NOT_COLLIDING[name])


@pytest.mark.parametrize("name", COLLIDING)
def test_a_stored_set_with_a_collision_remains_editable(name: str) -> None:
    stored = COLLIDING[name]
    changed = {**stored, "spec": {**stored["spec"], "replicas": 2}}
    reply = apiserver.ask(changed, before=stored)
    assert reply.accepted, reply


@pytest.mark.parametrize("name", COLLIDING)
def test_a_stored_set_with_a_collision_can_be_deleted(name: str) -> None:
    """The operator removes its finalizer by an update, so a rejection would keep the set forever."""
    metadata = {**COLLIDING[name]["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    stored = {**COLLIDING[name], "metadata": {**metadata, "finalizers": [SET_FINALIZER]}}
    reply = apiserver.ask({**stored, "metadata": {**metadata, "finalizers": []}}, before=stored)
    assert reply.accepted, reply


def test_an_update_that_adds_a_collision_is_rejected() -> None:
    stored, changed = NOT_COLLIDING["one autoscaler"], COLLIDING["autoscalers"]
    assert apiserver.ask(changed, before=stored).refused
    assert apiserver.ask(stored, before=changed).accepted


class SingleCliqueInformer(Informer[PodClique]):
    """An informer that contains one clique."""

    def __init__(self, clique: PodClique) -> None:
        self._clique = clique

    def get(self, namespace: str | None, name: str) -> PodClique | None:
        return self._clique if name == self._clique.metadata.name else None


@pytest.mark.parametrize(("controller", "is_child"), [("u-own", True), ("u-other", False), (None, False)])
def test_an_object_of_another_owner_is_not_a_child(controller: str | None, is_child: bool) -> None:
    owners = (
        [OwnerReference("grove.io/v1alpha1", "PodCliqueSet", "s", controller, controller=True)] if controller else []
    )
    existing = PodClique(metadata=ObjectMeta(name="c", namespace="n", owner_references=owners))
    owner = PodClique(metadata=ObjectMeta(name="o", namespace="n", uid="u-own"))
    child = Cache.child_finder(object.__new__(Cache), SingleCliqueInformer(existing), owner)
    assert (child("c") is not None) == is_child and child("d") is None


@pytest.mark.parametrize(
    ("names", "groups"),
    [
        (["1-" * 50_000 + "a"], {}),
        ([], {"a": [f"b-{i}-x" for i in range(2000)], **{f"a-{i}-b": ["x"] for i in range(2000)}}),
        ([], {"a": [f"b-{i}-y" for i in range(2000)], **{f"a-{i}-b": ["x"] for i in range(2000)}}),
    ],
    ids=["a long name", "many collisions", "many that only look so"],
)
def test_a_hostile_set_does_not_slow_down_the_operator(names: list[str], groups: dict[str, list[str]]) -> None:
    spec = {"roleName": "r", "podSpec": {}, "replicas": 1, "minAvailable": 1}
    template = {
        "cliques": [{"name": name, "spec": spec} for name in names],
        "podCliqueScalingGroups": [
            {"name": name, "cliqueNames": clique_names, "minAvailable": 1} for name, clique_names in groups.items()
        ],
    }
    pcs = msgspec.convert({"metadata": {"name": "s"}, "spec": {"replicas": 1, "template": template}}, PodCliqueSet)
    began = time.process_time()
    assert len(list(collisions.violations(pcs, pcs))) == 0
    assert len(list(collisions.violations(pcs, None))) <= collisions.MAX_ERRORS
    assert time.process_time() - began < 1
