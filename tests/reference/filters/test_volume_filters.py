"""Tests of the filters for volumes."""

from __future__ import annotations

import pytest

from tests.reference.filters.scenes import HOST, ZONE, cluster, feasible, node, pod, reasons

NODES = [node("a", "z1"), node("b", "z2")]
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


def using(*claims, **fields):
    return pod(volumes=[{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims], **fields)


def claim(name="c", size="1Gi", *, volume="", storage_class="later", modes=("ReadWriteOnce",), **metadata):
    annotations = (BOUND if volume else {}) | metadata.pop("annotations", {})
    spec = {"volumeName": volume, "storageClassName": storage_class, "accessModes": list(modes)}
    spec["resources"] = {"requests": {"storage": size}}
    return {"metadata": {"name": name, "namespace": "ns", "annotations": annotations, **metadata}, "spec": spec}


def volume(name="v", size="1Gi", host="", *, labels=None, phase="Available", **spec):
    required = {"nodeSelectorTerms": [{"matchExpressions": [{"key": HOST, "operator": "In", "values": [host]}]}]}
    spec = {"capacity": {"storage": size}, "storageClassName": "later", "accessModes": ["ReadWriteOnce"], **spec}
    spec |= {"nodeAffinity": {"required": required}} if host else {}
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": spec, "status": {"phase": phase}}


def storage_class(name="later", mode="WaitForFirstConsumer", provisioner="kubernetes.io/no-provisioner", zone=""):
    item = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode}
    expressions = [{"key": ZONE, "values": [zone]}]
    return item | ({"allowedTopologies": [{"matchLabelExpressions": expressions}]} if zone else {})


LATER = {
    "storage_classes": [storage_class(), storage_class("now", "Immediate"), storage_class("made", provisioner="x")]
}


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        ({}, 'persistentvolumeclaim "c" not found'),
        ({"claims": [claim(deletionTimestamp="2026-01-01T00:00:00Z")]}, "is being deleted"),
        ({"claims": [claim(storage_class="now")]}, "unbound immediate"),
        ({"claims": [claim(storage_class="")]}, "unbound immediate"),
        ({"claims": [claim(storage_class="none")]}, "unbound immediate"),
        ({"claims": [claim(volume="v", annotations={})]}, "doesn't exist"),
        ({"claims": [{**claim(), "status": {"phase": "Lost"}}]}, "non-existent persistentvolume"),
        ({"claims": [claim()]}, "didn't find available persistent volumes"),
    ],
)
def test_some_claims_keep_a_pod_from_every_node(objects, reason):
    state = cluster(NODES, **{**LATER, **objects})
    assert feasible(using("c"), state) == "" and reason in reasons(using("c"), state)


@pytest.mark.parametrize(
    ("claims", "volumes", "expected"),
    [
        ([claim()], [volume(host="a")], "a"),
        ([claim(size="2Gi")], [volume(host="a"), volume("w", "2Gi", "b")], "b"),
        ([claim(modes=["ReadWriteMany"])], [volume()], ""),
        ([claim()], [volume(phase="Bound")], ""),
        ([claim()], [volume(storageClassName="other")], ""),
        ([claim()], [volume(volumeMode="Block")], ""),
        ([claim()], [volume(claimRef={"namespace": "ns", "name": "other"})], ""),
        ([claim()], [volume(host="a", claimRef={"namespace": "ns", "name": "c"}, phase="Pending")], "a"),
        ([claim(annotations={"volume.kubernetes.io/selected-node": "b"})], [volume()], ""),
        ([claim(storage_class="made")], [], "a b"),
        ([claim(storage_class="made", annotations={"volume.kubernetes.io/selected-node": "b"})], [], "b"),
        ([claim(volume="v")], [volume(host="b", phase="Bound")], "b"),
        ([claim(volume="v")], [volume(labels={ZONE: "z1__z3"})], "a"),
        ([claim(volume="v")], [volume(labels={"failure-domain.beta.kubernetes.io/zone": "z2"})], "b"),
    ],
)
def test_volumes_limit_the_nodes_of_a_pod(claims, volumes, expected):
    assert feasible(using("c"), cluster(NODES, claims=claims, volumes=volumes, **LATER)) == expected


def test_two_claims_of_a_pod_need_two_volumes():
    claims = [claim("c"), claim("d")]
    assert feasible(using("c", "d"), cluster(NODES, claims=claims, volumes=[volume(host="a")], **LATER)) == ""
    both = [volume(host="a"), volume("w", host="a")]
    assert feasible(using("c", "d"), cluster(NODES, claims=claims, volumes=both, **LATER)) == "a"


def test_allowed_topologies_and_storage_capacity_limit_nodes():
    classes = [storage_class(provisioner="x", zone="z2")]
    assert feasible(using("c"), cluster(NODES, claims=[claim()], storage_classes=classes)) == "b"
    drivers = [{"metadata": {"name": "x"}, "spec": {"storageCapacity": True}}]
    capacity = {"metadata": {"name": "i", "namespace": "ns"}, "storageClassName": "made", "capacity": "2Gi"}
    capacity["nodeTopology"] = {"matchLabels": {ZONE: "z1"}}
    objects = {"csi_drivers": drivers, "storage_capacities": [capacity], **LATER}
    for size, expected in (("2Gi", "a"), ("3Gi", "")):
        state = cluster(NODES, claims=[claim(size=size, storage_class="made")], **objects)
        assert feasible(using("c"), state) == expected


def test_ephemeral_claims_belong_to_their_pod():
    subject = pod(volumes=[{"name": "s", "ephemeral": {"volumeClaimTemplate": {}}}])
    assert "waiting for ephemeral volume controller" in reasons(subject, cluster(NODES, **LATER))
    for uid, expected in (("u-p", "a b"), ("u-q", "")):
        owners = [{"kind": "Pod", "name": "p", "uid": uid, "controller": True}]
        owned = claim("p-s", storage_class="made", ownerReferences=owners)
        assert feasible(subject, cluster(NODES, claims=[owned], **LATER)) == expected


@pytest.mark.parametrize(("modes", "expected"), [(["ReadWriteOncePod"], ""), (["ReadWriteMany"], "a b")])
def test_a_read_write_once_pod_claim_is_used_by_one_pod_in_the_cluster(modes, expected):
    objects = {"claims": [claim(volume="v", modes=modes)], "volumes": [volume()]}
    state = cluster(NODES, using("c", name="q", at="a"), **objects)
    assert feasible(using("c"), state) == expected


def disk(**source):
    return pod(volumes=[{"name": "d", **source}])


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ({"gcePersistentDisk": {"pdName": "x"}}, {"gcePersistentDisk": {"pdName": "x"}}, False),
        ({"gcePersistentDisk": {"pdName": "x"}}, {"gcePersistentDisk": {"pdName": "y"}}, True),
        *(
            ({kind: {**source, "readOnly": True}}, {kind: {**source, "readOnly": both}}, both and kind != EBS)
            for EBS in ("awsElasticBlockStore",)
            for kind, source in (
                ("gcePersistentDisk", {"pdName": "x"}),
                (EBS, {"volumeID": "x"}),
                ("iscsi", {"iqn": "x"}),
                ("rbd", {"monitors": ["m"], "image": "i"}),
            )
            for both in (True, False)
        ),
        ({"rbd": {"monitors": ["m"], "image": "i"}}, {"rbd": {"monitors": ["n"], "image": "i"}}, True),
    ],
)
def test_some_disks_are_used_by_one_pod_per_node(one, other, shared):
    state = cluster(NODES, pod("q", "a", volumes=[{"name": "d", **other}]))
    assert feasible(disk(**one), state) == ("a b" if shared else "b")


def attached(count):
    drivers = [{"name": "x", "nodeID": "i", "allocatable": {"count": count}}]
    return {"csi_nodes": [{"metadata": {"name": "a"}, "spec": {"drivers": drivers}}]}


def test_a_node_limits_the_number_of_attached_volumes():
    csi = [volume(name, csi={"driver": "x", "volumeHandle": name}) for name in "vw"]
    objects = {"claims": [claim("c", volume="v"), claim("d", volume="w")], "volumes": csi, **attached(1)}
    other = using("c", name="q", at="a")
    assert feasible(using("d"), cluster(NODES, other, **objects)) == "b"
    assert feasible(using("c"), cluster(NODES, other, **objects)) == "a b"
    assert reasons(using("c", "d"), cluster(NODES, **objects)) == "NodeVolumeLimits: node exceeds max volume count"
    attachment = {"metadata": {"name": "i"}, "spec": {"attacher": "x", "nodeName": "a", "source": {}}}
    attachment["spec"]["source"] = {"persistentVolumeName": "v"}
    assert feasible(using("d"), cluster(NODES, attachments=[attachment], **objects)) == "b"


def test_volumes_yet_to_be_provisioned_are_counted():
    objects = {"claims": [claim("c", storage_class="made"), claim("d", storage_class="made")], **attached(1), **LATER}
    assert feasible(using("c", "d"), cluster(NODES, **objects)) == "b"
    assert feasible(using("c"), cluster(NODES, **objects)) == "a b"
