"""Tests that children without a controller are adopted, unless they belong to another owner (CHG-DEL-07, decision
010)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kube.objects import ObjectMeta, OwnerReference
from reference_impl.api.models import PodClique, PodCliqueSet
from reference_impl.plan import labels, ownership
from tests.reference.coherent.world import World, the_set, world

SIZES = {"F": (2, 1), "P": (2, 1)}
KINDS = ("podcliques", "podcliquescalinggroups", "podgangs", "podgangmaps", "services", "pods")
STRATEGIES = ["RollingRecreate", "Coherent"]
Object = dict[str, Any]


def uids(w: World, *kinds: str) -> set[str]:
    return {item["metadata"]["uid"] for kind in kinds for item in w.api.all(kind)}


def uncontrolled(w: World) -> list[str]:
    """Return the objects whose controller does not exist."""
    present = {item["metadata"]["uid"] for item in w.api.objects.values()}
    return [
        f"{kind} {item['metadata']['name']}"
        for (kind, _, _), item in w.api.objects.items()
        if kind != "podcliquesets"
        and not any(owner["uid"] in present for owner in item["metadata"].get("ownerReferences", ()))
    ]


async def orphan(w: World) -> None:
    """Delete the set as `kubectl delete --cascade=orphan` does, so that the objects that it controls lose their
    controller."""
    pcs = w.api.get("podcliquesets", "s")
    assert pcs is not None
    w.api.collects = False
    await w.api.delete(("podcliquesets", "ns", "s"))
    await w.soon(lambda: w.api.get("podcliquesets", "s") is None)
    await remove_controllers(
        w, lambda item: item["metadata"].get("ownerReferences", [{}])[0].get("uid") == pcs["metadata"]["uid"]
    )


async def remove_controllers(w: World, chosen: Callable[[Object], bool]) -> None:
    for address, item in list(w.api.objects.items()):
        if address[0] != "podcliquesets" and chosen(item):
            await w.api.patch(address, {"metadata": {"ownerReferences": None}}, "merge", False)


async def wait_until_adopted(w: World, expected: set[str], strategy: str, *, pods: int = 4) -> None:
    """Wait until all objects have a controller again, and check that the next update ends."""
    await w.until(lambda: w.serving(pods) and w.status().get("availableReplicas") and not uncontrolled(w), "adopted")
    assert uids(w, *KINDS) == expected
    assert w.status().get("lastErrors") is None
    await w.change(the_set("v2", strategy=strategy, **SIZES))
    await w.until(lambda: w.ended() and w.images() == {"x:v2"}, "updated")


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_orphans_of_a_deleted_set_are_adopted(strategy: str):
    async with world(the_set(strategy=strategy, **SIZES), 4) as w:
        uids_before = uids(w, *KINDS)
        await orphan(w)
        await w.create(the_set(strategy=strategy, **SIZES))
        await wait_until_adopted(w, uids_before, strategy)


async def test_orphans_of_another_template_are_updated():
    async with world(the_set(strategy="RollingRecreate", **SIZES), 4) as w:
        await orphan(w)
        await w.create(the_set("v1", strategy="RollingRecreate", **SIZES))
        await w.until(lambda: w.ended() and w.images() == {"x:v1"} and not uncontrolled(w), "updated")
        assert w.serving(4)


@pytest.mark.parametrize("kind", KINDS)
async def test_an_object_that_loses_its_controller_is_adopted_again(kind: str):
    async with world(the_set(**SIZES), 4) as w:
        uids_before, uids_of_kind = uids(w, *KINDS), uids(w, kind)
        await remove_controllers(w, lambda item: item["metadata"]["uid"] in uids_of_kind)
        await wait_until_adopted(w, uids_before, "Coherent")


async def test_objects_restored_from_a_backup_are_adopted():
    """The objects have new UIDs but refer to the old UIDs of their owners, and their statuses are lost.

    The garbage collector, which would delete the objects, lags. The token Secret was not backed up.
    """
    async with world(the_set(**SIZES), 4) as w:
        w.api.collects = False
        await w.stop()
        for (kind, namespace, name), item in list(w.api.objects.items()):
            del w.api.objects[kind, namespace, name]
            if kind != "secrets":
                await w.api.restored(kind, item)
        uids_before = uids(w, *KINDS)
        await w.start()
        await wait_until_adopted(w, uids_before, "Coherent")


async def test_the_token_secret_is_replaced_instead_of_adopted():
    async with world(the_set(**SIZES), 4) as w:
        [uid_before] = uids(w, "secrets")
        await remove_controllers(w, lambda item: item["metadata"]["uid"] == uid_before)
        await w.until(lambda: len(uids(w, "secrets")) == 1 and not uncontrolled(w), "created again")
        assert uids(w, "secrets") != {uid_before}


@pytest.mark.parametrize("label", [labels.MANAGED_BY, labels.PODCLIQUE, labels.PART_OF])
async def test_a_lost_label_of_a_pod_is_restored(label: str):
    async with world(the_set(**SIZES), 4) as w:
        uids_before, tags = uids(w, "pods"), {pod["metadata"]["name"]: pod["metadata"]["labels"] for pod in w.pods()}
        name = sorted(tags)[0]
        await w.api.patch(("pods", "ns", name), {"metadata": {"labels": {label: None}}}, "merge", False)
        await w.until(lambda: w.api.objects["pods", "ns", name]["metadata"]["labels"] == tags[name], "labelled")
        assert uids(w, "pods") == uids_before


def meta(name: str, uid: str, created: str, *owners: OwnerReference) -> ObjectMeta:
    return ObjectMeta(name=name, uid=uid, creation_timestamp=f"2026-01-01T00:00:{created}Z", owner_references=[*owners])


def reference(kind: str, name: str, uid: str) -> OwnerReference:
    return OwnerReference(api_version="grove.io/v1alpha1", kind=kind, name=name, uid=uid, controller=True)


@pytest.mark.parametrize(
    ("name", "created", "owners", "expected"),
    [
        ("s-0-f", "05", [], True),
        ("other", "05", [], False),
        ("s-0-f", "20", [reference("PodCliqueSet", "s", "gone")], True),
        ("s-0-f", "05", [reference("PodCliqueSet", "s", "gone")], False),
        ("s-0-f", "20", [reference("PodCliqueSet", "s", "living")], False),
        ("s-0-f", "20", [reference("PodCliqueSet", "s-0", "other")], False),
        ("s-0-f", "20", [reference("Deployment", "s", "other")], False),
    ],
)
def test_only_objects_without_a_living_controller_are_adopted(
    name: str, created: str, owners: list[OwnerReference], expected: bool
) -> None:
    pcs, candidate = (
        PodCliqueSet(metadata=meta("s", "living", "10")),
        PodClique(metadata=meta(name, "x", created, *owners)),
    )
    assert ownership.is_orphan(pcs, "PodCliqueSet", candidate) is expected


def test_owners_that_are_not_controllers_are_kept() -> None:
    other = OwnerReference(api_version="v1", kind="ConfigMap", name="c", uid="u")
    candidate = PodClique(metadata=meta("s-0-f", "x", "05", other))
    controller = {"kind": "PodCliqueSet", "name": "s", "uid": "living", "controller": True}
    [existing, added] = ownership.adoption_patch(controller, candidate)["metadata"]["ownerReferences"]
    assert (existing["uid"], added) == ("u", controller)
