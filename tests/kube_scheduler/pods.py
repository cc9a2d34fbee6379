"""Randomly drawn pods: one method for each group of fields that kube-scheduler's filters read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.kube_scheduler import nodes
from tests.kube_scheduler.draw import WEIGHTS, Draw, Manifest
from tests.kube_scheduler.storage import DELETED

IMAGE = "example.com/image"
RUNTIME_CLASS, OVERHEAD = "overhead", {"cpu": "250m", "memory": "120Mi"}
"""The cluster's only RuntimeClass, and the resources that its pods need in addition to their containers' requests."""
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
LABELS: dict[str, tuple[float, Sequence[str]]] = WEIGHTS["pod labels"]
TOPOLOGIES: dict[str, float] = WEIGHTS["topologies"]
ORDER = [*WEIGHTS["candidates"], "resized"]
"""The order in which parts of a pod are drawn. Later parts take earlier parts into account."""


class PodDraw:
    """A pod that is being drawn. `claims` holds the names of the PersistentVolumeClaims of each namespace."""

    def __init__(self, draw: Draw, name: str, claims: Mapping[str, Sequence[str]], node_names: Sequence[str]) -> None:
        self.draw, self.node_names = draw, node_names
        namespace = draw.weighted({"a": 3, "b": 2, "c": 1})
        self.claim_names = claims.get(namespace, ())
        self.labels = {key: draw.one(values) for key, (share, values) in LABELS.items() if draw.chance(share)}
        self.main: Manifest = {"name": "main", "image": IMAGE}
        self.spec: Manifest = {"automountServiceAccountToken": False, "containers": [self.main]}
        self.status: Manifest = {}
        self.metadata: Manifest = {"name": name, "namespace": namespace, "labels": self.labels}

    def candidate(self) -> Manifest:
        """Draw a pod that will be placed."""
        self._parts(WEIGHTS["candidates"], self.draw.weighted({1: 3, 2: 4, 3: 2}))
        if self.draw.chance(0.45):
            self.spec.setdefault("tolerations", []).append({"operator": "Exists"})
        return self._manifest()

    def bound(self) -> Manifest:
        """Draw a pod that runs or has finished on a node."""
        self._parts(WEIGHTS["bound"], self.draw.weighted({1: 4, 2: 3, 3: 1}))
        self.spec["nodeName"] = self.draw.one(self.node_names)
        if self.draw.chance(0.1):
            self.status["phase"] = self.draw.one(("Succeeded", "Failed"))
        if self.draw.chance(0.1) and self.status.get("phase") not in ("Succeeded", "Failed"):
            self.metadata["deletionTimestamp"] = DELETED
        return self._manifest()

    def _parts(self, weights: Mapping[str, float], count: int) -> None:
        parts = {self.draw.weighted(weights) for _ in range(count)}
        if "hugepages" in parts:  # if a container has hugepages, the API server adds some to the pod-level requests
            parts.discard("pod_level")
        if "resized" in parts:
            parts -= {"requests", "pod_level"}
        for part in sorted(parts, key=ORDER.index):
            getattr(self, part)()

    def _manifest(self) -> Manifest:
        return {"metadata": self.metadata, "spec": self.spec, **({"status": self.status} if self.status else {})}

    def _request(self, container: Manifest, **amounts: str) -> None:
        container.setdefault("resources", {}).setdefault("requests", {}).update(amounts)

    def _affinity(self, kind: str) -> Manifest:
        part: Manifest = self.spec.setdefault("affinity", {}).setdefault(kind, {})
        return part

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def node_selector(self) -> None:
        keys = self.draw.some(tuple(nodes.LABELS)[:4], 1, 2)
        self.spec["nodeSelector"] = {key: self.draw.one(nodes.LABELS[key][1]) for key in keys}

    def node_affinity(self) -> None:
        terms = [self._node_term() for _ in range(self.draw.weighted({1: 3, 2: 2}))]
        self._affinity("nodeAffinity")[REQUIRED] = {"nodeSelectorTerms": terms}

    def _node_term(self) -> Manifest:
        draw = self.draw
        if draw.chance(0.03):
            return {}
        term: Manifest = {"matchExpressions": [self._node_expression() for _ in range(draw.weighted({1: 3, 2: 1}))]}
        if draw.chance(0.2):
            operator, name = draw.weighted({"NotIn": 2, "In": 1}), draw.one((*self.node_names, "missing"))
            term["matchFields"] = [{"key": "metadata.name", "operator": operator, "values": [name]}]
            if draw.chance(0.3):
                del term["matchExpressions"]
        return term

    def _node_expression(self) -> Manifest:
        draw = self.draw
        key = draw.one(tuple(nodes.LABELS))
        operator = draw.weighted({"In": 3, "NotIn": 2, "Exists": 1, "DoesNotExist": 1, "Gt": 1.5, "Lt": 1.5})
        if operator in ("Gt", "Lt"):
            values = [draw.weighted({"2": 3, "7": 3, "0": 1, "many": 0.2})]
            return {"key": "generation", "operator": operator, "values": values}
        if operator in ("Exists", "DoesNotExist"):
            return {"key": key, "operator": operator}
        return {"key": key, "operator": operator, "values": draw.some(nodes.LABELS[key][1], 1, 2)}

    def tolerations(self) -> None:
        drawn = self.spec.setdefault("tolerations", [])
        for _ in range(self.draw.number(1, 3)):
            toleration = self._toleration()
            if toleration not in drawn:
                drawn.append(toleration)

    def _toleration(self) -> Manifest:
        draw = self.draw
        key = draw.one(("dedicated", "level", "level", "gpu", "node.kubernetes.io/unschedulable"))
        numeric = {"Exists": 2, "Equal": 3, "": 1, "Gt": 1.5, "Lt": 1.5}
        operator = draw.weighted(numeric if key == "level" else {"Exists": 2, "Equal": 2})
        toleration: Manifest = {"key": key, **({"operator": operator} if operator else {})}
        if operator in ("Gt", "Lt"):
            toleration["value"] = draw.one(("0", "4", "5", "7"))
        elif operator != "Exists" and (value := draw.one(nodes.LEVELS if key == "level" else ("team", "batch", ""))):
            toleration["value"] = value
        if draw.chance(0.5):
            toleration["effect"] = draw.weighted({"NoSchedule": 3, "NoExecute": 2, "PreferNoSchedule": 0.5})
        return toleration

    # -- resources -----------------------------------------------------------------------------------------------------

    def requests(self) -> None:
        cpu, memory = self.draw.one(("100m", "500m", "1", "1500m", "3")), self.draw.one(("64Mi", "1Gi", "3Gi"))
        self._request(self.main, cpu=cpu, memory=memory)
        if self.draw.chance(0.2):
            second: Manifest = {"name": "second", "image": IMAGE}
            self._request(second, cpu=self.draw.one(("0", "400m", "1")))
            self.spec["containers"].append(second)

    def ephemeral_storage(self) -> None:
        self._request(self.main, **{nodes.EPHEMERAL: self.draw.one(("0", "1Gi", "4Gi", "10Gi"))})

    def hugepages(self) -> None:
        self._request(self.main, cpu="100m", memory="64Mi")
        self._request_with_limit(nodes.HUGEPAGES, self.draw.one(("0", "32Mi", "256Mi")))

    def extended_resources(self) -> None:
        name = self.draw.weighted({nodes.GPU: 3, nodes.NIC: 1, "example.com/nowhere": 0.5})
        self._request_with_limit(name, self.draw.weighted({"1": 4, "2": 2, "0": 1}))

    def _request_with_limit(self, name: str, amount: str) -> None:
        """Request a resource that cannot be overcommitted, with an equal limit."""
        self._request(self.main, **{name: amount})
        self.main["resources"].setdefault("limits", {})[name] = amount

    def init_containers(self) -> None:
        for number in range(self.draw.number(1, 3)):
            container: Manifest = {"name": f"init-{number}", "image": IMAGE}
            if self.draw.chance(0.5):
                container["restartPolicy"] = "Always"
            cpu, memory = self.draw.one(("200m", "1", "2")), self.draw.one(("32Mi", "2Gi"))
            self._request(container, cpu=cpu, memory=memory)
            self.spec.setdefault("initContainers", []).append(container)

    def pod_level(self) -> None:
        """Request resources for the pod as a whole, with at least the amounts that its containers request."""
        for container in (*self.spec["containers"], *self.spec.get("initContainers", ())):
            self._request(container, cpu=self.draw.one(("0", "100m")), memory="16Mi")
        amounts = {"cpu": self.draw.one(("1", "2", "3")), "memory": self.draw.one(("1Gi", "3Gi"))}
        self.spec["resources"] = {"requests": amounts}

    def overhead(self) -> None:
        self.spec |= {"runtimeClassName": RUNTIME_CLASS, "overhead": OVERHEAD}

    def resized(self) -> None:
        """Put the pod into a pending resize, so that its allocated resources differ from the requests of its spec."""
        draw = self.draw
        self.requests()
        current = {"cpu": draw.one(("100m", "1", "2")), "memory": draw.one(("64Mi", "2Gi"))}
        status: Manifest = {"name": "main", "image": IMAGE, "imageID": "", "ready": True, "restartCount": 0}
        status["resources"] = {"requests": current}
        if draw.chance(0.7):
            status["allocatedResources"] = {**current, "cpu": draw.one(("100m", "1500m"))}
        self.status |= {"containerStatuses": [status], "phase": "Running"}
        if "initContainers" not in self.spec and draw.chance(0.35):
            self.spec["resources"] = {"requests": {"cpu": "4", "memory": draw.one(("4Gi", "5Gi"))}}
            self.status["resources"] = {"requests": {"cpu": draw.one(("2", "5")), "memory": "4Gi"}}
            self.status["allocatedResources"] = {"cpu": draw.one(("2", "6")), "memory": "4Gi"}
        if reason := draw.weighted({"Infeasible": 2, "Deferred": 2, "": 1}):
            self.status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]

    # -- other pods ----------------------------------------------------------------------------------------------------

    def pod_affinity(self) -> None:
        self._affinity("podAffinity")[REQUIRED] = self._pod_terms()

    def own_kind(self) -> None:
        """Require pods with the same label as this pod. The first such pod may be placed anywhere."""
        self.labels["app"] = self.draw.one(("web", "first"))
        selector = {"matchLabels": {"app": self.labels["app"]}}
        term = {"topologyKey": self.draw.weighted(TOPOLOGIES), "labelSelector": selector}
        self._affinity("podAffinity").setdefault(REQUIRED, []).append(term)

    def pod_anti_affinity(self) -> None:
        self._affinity("podAntiAffinity")[REQUIRED] = self._pod_terms()

    def _pod_terms(self) -> list[Manifest]:
        return [self._pod_term() for _ in range(self.draw.weighted({1: 5, 2: 1}))]

    def _pod_term(self) -> Manifest:
        draw = self.draw
        term: Manifest = {"topologyKey": draw.weighted(TOPOLOGIES)}
        if not draw.chance(0.05):
            term["labelSelector"] = self._label_selector()
            if draw.chance(0.2):
                term["matchLabelKeys"] = ["version"]
            if draw.chance(0.15):
                term["mismatchLabelKeys"] = ["tenant"]
        if draw.chance(0.25):
            term["namespaces"] = draw.some((*nodes.NAMESPACES, "absent"), 1, 2)
        if draw.chance(0.3):
            staged = {"matchExpressions": [{"key": "stage", "operator": "Exists"}]}
            term["namespaceSelector"] = draw.one(({}, {"matchLabels": {"team": "blue"}}, staged))
        return term

    def _label_selector(self) -> Manifest:
        draw = self.draw
        if draw.chance(0.08):
            return {}
        if draw.chance(0.6):
            return {"matchLabels": {"app": draw.one(LABELS["app"][1])}}
        key = draw.one(("app", "track"))
        operator = draw.weighted({"In": 3, "NotIn": 2, "Exists": 1, "DoesNotExist": 1})
        values = {} if operator in ("Exists", "DoesNotExist") else {"values": draw.some(LABELS[key][1], 1, 2)}
        return {"matchExpressions": [{"key": key, "operator": operator, **values}]}

    def topology_spread(self) -> None:
        draw = self.draw
        drawn: list[Manifest] = []
        for key in draw.some(tuple(TOPOLOGIES)[:3], 1, 2) if draw.chance(0.95) else ["absent"]:
            constraint: Manifest = {"maxSkew": draw.weighted({1: 3, 2: 2, 3: 1}), "topologyKey": key}
            constraint["whenUnsatisfiable"] = "DoNotSchedule" if draw.chance(0.9) else "ScheduleAnyway"
            if not draw.chance(0.05):
                constraint["labelSelector"] = self._label_selector()
                if draw.chance(0.25):
                    constraint["matchLabelKeys"] = draw.some(("version", "tenant"), 1, 2)
            if constraint["whenUnsatisfiable"] == "DoNotSchedule" and draw.chance(0.3):
                constraint["minDomains"] = draw.number(1, 5)
            for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
                if draw.chance(0.35):
                    constraint[policy] = draw.one(("Honor", "Ignore"))
            drawn.append(constraint)
        self.spec["topologySpreadConstraints"] = drawn

    def host_ports(self) -> None:
        draw = self.draw
        ports = []
        for number in draw.some((8080, 8081, 9000), 1, 2):
            port: Manifest = {"containerPort": number, "protocol": draw.weighted({"TCP": 4, "UDP": 1})}
            port["hostPort"] = number
            if draw.chance(0.5):
                port["hostIP"] = draw.one(("0.0.0.0", "10.0.0.1", "10.0.0.2"))
            ports.append(port)
        if draw.chance(0.2):
            sidecar = {"name": "sidecar", "image": IMAGE, "restartPolicy": "Always", "ports": ports}
            self.spec.setdefault("initContainers", []).append(sidecar)
            return
        self.main["ports"] = ports
        if draw.chance(0.2):
            self.spec["hostNetwork"] = True

    # -- volumes -------------------------------------------------------------------------------------------------------

    def claims(self) -> None:
        if not self.claim_names:
            return
        names = self.draw.some(self.claim_names, 1, 2)
        if self.draw.chance(0.06):
            names.append("missing")
        volumes = self.spec.setdefault("volumes", [])
        volumes += [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
        if self.draw.chance(0.02):
            template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
            volumes.append({"name": "ephemeral", "ephemeral": {"volumeClaimTemplate": template}})

    def disks(self) -> None:
        draw = self.draw
        only_read, number = draw.chance(0.5), draw.weighted({1: 3, 2: 1})
        kind = draw.one(("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd"))
        monitors = draw.some(("10.0.0.7", "10.0.0.8", "10.0.0.9"), 1, 2)
        sources: dict[str, Manifest] = {
            "gcePersistentDisk": {"pdName": f"disk-{number}"},
            "awsElasticBlockStore": {"volumeID": f"vol-{number}"},
            "iscsi": {"iqn": f"iqn.2001-04.com.example:disk{number}", "lun": 0, "targetPortal": "10.0.0.9:3260"},
            "rbd": {"monitors": monitors, "image": f"image-{number}", "pool": draw.weighted({"rbd": 3, "other": 1})},
        }
        source = sources[kind] | ({"readOnly": True} if only_read else {})
        self.spec.setdefault("volumes", []).append({"name": "disk", kind: source})
