"""Draw pods: the fields that the filters of kube-scheduler read, one function for each group of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.kube_scheduler.draw import Draw
from tests.kube_scheduler.nodes import (
    EPHEMERAL,
    GPU,
    HOSTNAME,
    HUGEPAGES,
    LEVELS,
    NAMESPACES,
    NIC,
    RACK,
    RACKS,
    ZONE,
    ZONES,
    Manifest,
)
from tests.kube_scheduler.storage import DELETED

IMAGE = "example.com/image"
RUNTIME_CLASS, OVERHEAD = "overhead", {"cpu": "250m", "memory": "120Mi"}
"""The one class of the cluster, and what its pods need beside their containers."""
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
LABELS: dict[str, tuple[float, Sequence[str]]] = {
    "app": (0.9, ("web", "db", "cache")),
    "version": (0.8, ("1", "2")),
    "tenant": (0.6, ("x", "y")),
    "track": (0.4, ("stable", "canary")),
}
"""Label → how many pods have it, and its values."""
NODE_LABELS: dict[str, Sequence[str]] = {
    ZONE: ZONES,
    RACK: RACKS,
    "disk": ("ssd", "hdd"),
    "generation": ("1", "3", "7", "12", "old"),
    "absent": ("1",),
}
TOPOLOGIES = {ZONE: 3, RACK: 3, HOSTNAME: 2, "absent": 0.3}


@dataclass
class PodDraw:
    """A pod that is being drawn. `claims` are the names of the claims of its namespace."""

    draw: Draw
    name: str
    namespace: str
    claims: Sequence[str]
    node_names: Sequence[str]

    def __post_init__(self) -> None:
        self.labels = {key: self.draw.one(values) for key, (share, values) in LABELS.items() if self.draw.chance(share)}
        self.main: Manifest = {"name": "main", "image": IMAGE}
        self.spec: Manifest = {"automountServiceAccountToken": False, "containers": [self.main]}
        self.status: Manifest = {}

    def manifest(self) -> Manifest:
        metadata = {"name": self.name, "namespace": self.namespace, "labels": self.labels}
        return {"metadata": metadata, "spec": self.spec, **({"status": self.status} if self.status else {})}

    def request(self, container: Manifest, **amounts: str) -> None:
        container.setdefault("resources", {}).setdefault("requests", {}).update(amounts)

    def affinity(self, kind: str) -> Manifest:
        part: Manifest = self.spec.setdefault("affinity", {}).setdefault(kind, {})
        return part

    def init_containers(self) -> list[Manifest]:
        containers: list[Manifest] = self.spec.setdefault("initContainers", [])
        return containers


# -- nodes -------------------------------------------------------------------------------------------------------------


def node_selector(pod: PodDraw) -> None:
    keys = pod.draw.some(tuple(NODE_LABELS)[:4], 1, 2)
    pod.spec["nodeSelector"] = {key: pod.draw.one(NODE_LABELS[key]) for key in keys}


def node_affinity(pod: PodDraw) -> None:
    terms = [_node_term(pod) for _ in range(pod.draw.weighted({1: 3, 2: 2}))]
    pod.affinity("nodeAffinity")[REQUIRED] = {"nodeSelectorTerms": terms}


def _node_term(pod: PodDraw) -> Manifest:
    draw = pod.draw
    if draw.chance(0.03):
        return {}
    term: Manifest = {"matchExpressions": [_node_expression(draw) for _ in range(draw.weighted({1: 3, 2: 1}))]}
    if draw.chance(0.2):
        operator = draw.weighted({"NotIn": 2, "In": 1})
        term["matchFields"] = [
            {"key": "metadata.name", "operator": operator, "values": [draw.one((*pod.node_names, "missing"))]}
        ]
        if draw.chance(0.3):
            del term["matchExpressions"]
    return term


def _node_expression(draw: Draw) -> Manifest:
    key = draw.one(tuple(NODE_LABELS))
    operator = draw.weighted({"In": 3, "NotIn": 2, "Exists": 1, "DoesNotExist": 1, "Gt": 1.5, "Lt": 1.5})
    if operator in ("Gt", "Lt"):
        values = [draw.weighted({"2": 3, "7": 3, "0": 1, "many": 0.2})]
        return {"key": "generation", "operator": operator, "values": values}
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    return {"key": key, "operator": operator, "values": draw.some(NODE_LABELS[key], 1, 2)}


def tolerations(pod: PodDraw) -> None:
    drawn = pod.spec.setdefault("tolerations", [])
    for _ in range(pod.draw.number(1, 3)):
        toleration = _toleration(pod.draw)
        if toleration not in drawn:
            drawn.append(toleration)


def _toleration(draw: Draw) -> Manifest:
    key = draw.one(("dedicated", "level", "level", "gpu", "node.kubernetes.io/unschedulable"))
    operator = draw.weighted(
        {"Exists": 2, "Equal": 3, "": 1, "Gt": 1.5, "Lt": 1.5} if key == "level" else {"Exists": 2, "Equal": 2}
    )
    toleration: Manifest = {"key": key, **({"operator": operator} if operator else {})}
    if operator in ("Gt", "Lt"):
        toleration["value"] = draw.one(("0", "4", "5", "7"))
    elif operator != "Exists" and (value := draw.one(LEVELS if key == "level" else ("team", "batch", ""))):
        toleration["value"] = value
    if draw.chance(0.5):
        toleration["effect"] = draw.weighted({"NoSchedule": 3, "NoExecute": 2, "PreferNoSchedule": 0.5})
    return toleration


def tolerate_all(pod: PodDraw) -> None:
    pod.spec.setdefault("tolerations", []).append({"operator": "Exists"})


# -- resources ---------------------------------------------------------------------------------------------------------


def requests(pod: PodDraw) -> None:
    pod.request(
        pod.main, cpu=pod.draw.one(("100m", "500m", "1", "1500m", "3")), memory=pod.draw.one(("64Mi", "1Gi", "3Gi"))
    )
    if pod.draw.chance(0.2):
        second = {"name": "second", "image": IMAGE}
        pod.request(second, cpu=pod.draw.one(("0", "400m", "1")))
        pod.spec["containers"].append(second)


def ephemeral_storage(pod: PodDraw) -> None:
    pod.request(pod.main, **{EPHEMERAL: pod.draw.one(("0", "1Gi", "4Gi", "10Gi"))})


def hugepages(pod: PodDraw) -> None:
    pod.request(pod.main, cpu="100m", memory="64Mi")
    _with_limit(pod, HUGEPAGES, pod.draw.one(("0", "32Mi", "256Mi")))


def extended_resources(pod: PodDraw) -> None:
    name = pod.draw.weighted({GPU: 3, NIC: 1, "example.com/nowhere": 0.5})
    _with_limit(pod, name, pod.draw.weighted({"1": 4, "2": 2, "0": 1}))


def _with_limit(pod: PodDraw, name: str, amount: str) -> None:
    """Request what cannot be overcommitted."""
    pod.request(pod.main, **{name: amount})
    pod.main["resources"].setdefault("limits", {})[name] = amount


def init_containers(pod: PodDraw) -> None:
    for number in range(pod.draw.number(1, 3)):
        container: Manifest = {"name": f"init-{number}", "image": IMAGE}
        if pod.draw.chance(0.5):
            container["restartPolicy"] = "Always"
        pod.request(container, cpu=pod.draw.one(("200m", "1", "2")), memory=pod.draw.one(("32Mi", "2Gi")))
        pod.init_containers().append(container)


def pod_level(pod: PodDraw) -> None:
    """Request resources for the pod as a whole, at least what its containers request."""
    for container in (*pod.spec["containers"], *pod.spec.get("initContainers", ())):
        pod.request(container, cpu=pod.draw.one(("0", "100m")), memory="16Mi")
    amounts = {"cpu": pod.draw.one(("1", "2", "3")), "memory": pod.draw.one(("1Gi", "3Gi"))}
    pod.spec["resources"] = {"requests": amounts}


def overhead(pod: PodDraw) -> None:
    pod.spec |= {"runtimeClassName": RUNTIME_CLASS, "overhead": OVERHEAD}


def resized(pod: PodDraw) -> None:
    """Have a resize under way: what the pod has differs from what its spec requests."""
    draw = pod.draw
    requests(pod)
    current = {"cpu": draw.one(("100m", "1", "2")), "memory": draw.one(("64Mi", "2Gi"))}
    status: Manifest = {"name": "main", "image": IMAGE, "imageID": "", "ready": True, "restartCount": 0}
    status["resources"] = {"requests": current}
    if draw.chance(0.7):
        status["allocatedResources"] = {**current, "cpu": draw.one(("100m", "1500m"))}
    pod.status["containerStatuses"] = [status]
    pod.status["phase"] = "Running"
    if "initContainers" not in pod.spec and draw.chance(0.35):
        pod.spec["resources"] = {"requests": {"cpu": "4", "memory": draw.one(("4Gi", "5Gi"))}}
        pod.status["resources"] = {"requests": {"cpu": draw.one(("2", "5")), "memory": "4Gi"}}
        pod.status["allocatedResources"] = {"cpu": draw.one(("2", "6")), "memory": "4Gi"}
    if reason := draw.weighted({"Infeasible": 2, "Deferred": 2, "": 1}):
        pod.status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]


# -- other pods --------------------------------------------------------------------------------------------------------


def pod_affinity(pod: PodDraw) -> None:
    pod.affinity("podAffinity")[REQUIRED] = [_pod_term(pod) for _ in range(pod.draw.weighted({1: 5, 2: 1}))]


def own_kind(pod: PodDraw) -> None:
    """Ask for other pods like this one: the first of them may go anywhere."""
    pod.labels["app"] = pod.draw.one(("web", "first"))
    term = {"topologyKey": pod.draw.weighted(TOPOLOGIES), "labelSelector": {"matchLabels": {"app": pod.labels["app"]}}}
    pod.affinity("podAffinity").setdefault(REQUIRED, []).append(term)


def pod_anti_affinity(pod: PodDraw) -> None:
    pod.affinity("podAntiAffinity")[REQUIRED] = [_pod_term(pod) for _ in range(pod.draw.weighted({1: 5, 2: 1}))]


def _pod_term(pod: PodDraw) -> Manifest:
    draw = pod.draw
    term: Manifest = {"topologyKey": draw.weighted(TOPOLOGIES)}
    if not draw.chance(0.05):
        term["labelSelector"] = _label_selector(draw)
        if draw.chance(0.2):
            term["matchLabelKeys"] = ["version"]
        if draw.chance(0.15):
            term["mismatchLabelKeys"] = ["tenant"]
    if draw.chance(0.25):
        term["namespaces"] = draw.some((*NAMESPACES, "absent"), 1, 2)
    if draw.chance(0.3):
        term["namespaceSelector"] = draw.one(
            ({}, {"matchLabels": {"team": "blue"}}, {"matchExpressions": [{"key": "stage", "operator": "Exists"}]})
        )
    return term


def _label_selector(draw: Draw) -> Manifest:
    if draw.chance(0.08):
        return {}
    if draw.chance(0.6):
        return {"matchLabels": {"app": draw.one(LABELS["app"][1])}}
    key = draw.one(("app", "track"))
    operator = draw.weighted({"In": 3, "NotIn": 2, "Exists": 1, "DoesNotExist": 1})
    values = {} if operator in ("Exists", "DoesNotExist") else {"values": draw.some(LABELS[key][1], 1, 2)}
    return {"matchExpressions": [{"key": key, "operator": operator, **values}]}


def topology_spread(pod: PodDraw) -> None:
    draw = pod.draw
    drawn: list[Manifest] = []
    for key in draw.some(tuple(TOPOLOGIES)[:3], 1, 2) if draw.chance(0.95) else ["absent"]:
        constraint: Manifest = {"maxSkew": draw.weighted({1: 3, 2: 2, 3: 1}), "topologyKey": key}
        constraint["whenUnsatisfiable"] = "DoNotSchedule" if draw.chance(0.9) else "ScheduleAnyway"
        if not draw.chance(0.05):
            constraint["labelSelector"] = _label_selector(draw)
            if draw.chance(0.25):
                constraint["matchLabelKeys"] = draw.some(("version", "tenant"), 1, 2)
        if constraint["whenUnsatisfiable"] == "DoNotSchedule" and draw.chance(0.3):
            constraint["minDomains"] = draw.number(1, 5)
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if draw.chance(0.35):
                constraint[policy] = draw.one(("Honor", "Ignore"))
        drawn.append(constraint)
    pod.spec["topologySpreadConstraints"] = drawn


def host_ports(pod: PodDraw) -> None:
    draw = pod.draw
    ports = []
    for number in draw.some((8080, 8081, 9000), 1, 2):
        port: Manifest = {"containerPort": number, "protocol": draw.weighted({"TCP": 4, "UDP": 1})}
        port["hostPort"] = number
        if draw.chance(0.5):
            port["hostIP"] = draw.one(("0.0.0.0", "10.0.0.1", "10.0.0.2"))
        ports.append(port)
    if draw.chance(0.2):
        pod.init_containers().append({"name": "sidecar", "image": IMAGE, "restartPolicy": "Always", "ports": ports})
    else:
        pod.main["ports"] = ports
        if draw.chance(0.2):
            pod.spec["hostNetwork"] = True


# -- volumes -----------------------------------------------------------------------------------------------------------


def claims(pod: PodDraw) -> None:
    draw = pod.draw
    names = draw.some(pod.claims, 1, 2)
    if draw.chance(0.06):
        names.append("missing")
    volumes = pod.spec.setdefault("volumes", [])
    for name in names:
        volumes.append({"name": name, "persistentVolumeClaim": {"claimName": name}})
    if draw.chance(0.02):
        template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
        volumes.append({"name": "ephemeral", "ephemeral": {"volumeClaimTemplate": template}})


def disks(pod: PodDraw) -> None:
    draw = pod.draw
    only_read, number = draw.chance(0.5), draw.weighted({1: 3, 2: 1})
    kind = draw.one(("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd"))
    source: Mapping[str, Any] = {
        "gcePersistentDisk": {"pdName": f"disk-{number}"},
        "awsElasticBlockStore": {"volumeID": f"vol-{number}"},
        "iscsi": {"iqn": f"iqn.2001-04.com.example:disk{number}", "lun": 0, "targetPortal": "10.0.0.9:3260"},
        "rbd": {
            "monitors": draw.some(("10.0.0.7", "10.0.0.8", "10.0.0.9"), 1, 2),
            "image": f"image-{number}",
            "pool": draw.weighted({"rbd": 3, "other": 1}),
        },
    }[kind]
    volumes = pod.spec.setdefault("volumes", [])
    volumes.append({"name": "disk", kind: {**source, **({"readOnly": True} if only_read else {})}})


Part = Callable[[PodDraw], None]
CANDIDATES: dict[Part, float] = {
    node_selector: 1,
    node_affinity: 2,
    tolerations: 2,
    requests: 2.5,
    ephemeral_storage: 0.7,
    hugepages: 0.7,
    extended_resources: 1,
    init_containers: 1,
    pod_level: 0.8,
    overhead: 0.7,
    pod_affinity: 2,
    own_kind: 0.6,
    pod_anti_affinity: 1.5,
    topology_spread: 3,
    host_ports: 1.2,
    claims: 3.5,
    disks: 1.6,
}
"""What candidates have, and how often."""
BOUND: dict[Part, float] = {
    requests: 4,
    ephemeral_storage: 1,
    extended_resources: 1,
    hugepages: 0.5,
    init_containers: 1,
    pod_level: 0.7,
    overhead: 0.7,
    resized: 1.2,
    pod_affinity: 0.3,
    pod_anti_affinity: 2,
    topology_spread: 0.2,
    host_ports: 1.5,
    claims: 3,
    disks: 2.5,
}
"""What bound pods have, and how often."""
ORDER = list(dict.fromkeys([*CANDIDATES, *BOUND]))
"""The order in which parts are drawn: later ones heed earlier ones."""


def _parts(draw: Draw, weights: Mapping[Part, float], count: int) -> list[Part]:
    parts = {draw.weighted(weights) for _ in range(count)}
    if hugepages in parts:  # with hugepages of a container, the API server adds some to those of the pod
        parts.discard(pod_level)
    if resized in parts:
        parts -= {requests, pod_level}
    return sorted(parts, key=ORDER.index)


def candidate(pod: PodDraw) -> Manifest:
    """Draw a pod that is to be placed."""
    for part in _parts(pod.draw, CANDIDATES, pod.draw.weighted({1: 3, 2: 4, 3: 2})):
        if part is not claims or pod.claims:
            part(pod)
    if pod.draw.chance(0.45):
        tolerate_all(pod)
    return pod.manifest()


def bound(pod: PodDraw) -> Manifest:
    """Draw a pod that runs on a node, or has."""
    for part in _parts(pod.draw, BOUND, pod.draw.weighted({1: 4, 2: 3, 3: 1})):
        if part is not claims or pod.claims:
            part(pod)
    pod.spec["nodeName"] = pod.draw.one(pod.node_names)
    if pod.draw.chance(0.1):
        pod.status["phase"] = pod.draw.one(("Succeeded", "Failed"))
    manifest = pod.manifest()
    if pod.draw.chance(0.1) and pod.status.get("phase") not in ("Succeeded", "Failed"):
        manifest["metadata"]["deletionTimestamp"] = DELETED
    return manifest
