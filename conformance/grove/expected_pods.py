"""The expected pods of a clique (OBJ-215, OBJ-250 … OBJ-254). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conformance.grove import labels, names
from conformance.grove.expected import ExpectedClique
from conformance.grove.fields import Document, at, items, text


@dataclass(frozen=True)
class ExpectedPod:
    """The expected pod of a clique with a given index. Its name ends in five characters that the API server chooses
    (OBJ-106)."""

    prefix: str
    labels: Mapping[str, str]
    hostname: str
    subdomain: str
    environment: Mapping[str, str]
    """Variable → the value that the container sees, either a literal or the value of a field of the pod."""


def pod(clique: ExpectedClique, set_name: str, namespace: str, index: int) -> ExpectedPod:
    """Return the expected pod of `clique` with this index, in the set's namespace."""
    subdomain = names.service(set_name, clique.set_index)
    environment = {
        "GROVE_PCS_NAME": set_name,
        "GROVE_PCS_INDEX": str(clique.set_index),
        "GROVE_PCLQ_NAME": clique.name,
        "GROVE_HEADLESS_SERVICE": f"{subdomain}.{namespace}.svc.cluster.local",
        "GROVE_PCLQ_POD_INDEX": str(index),
    }
    if clique.group:
        environment |= {
            "GROVE_PCSG_NAME": clique.group,
            "GROVE_PCSG_TEMPLATE_NUM_PODS": str(clique.pods_of_group),
            "GROVE_PCSG_INDEX": clique.labels[labels.GROUP_INDEX],
        }
    return ExpectedPod(
        prefix=f"{clique.name}-",
        labels={**clique.labels, labels.CLIQUE: clique.name, labels.POD_INDEX: str(index)},
        hostname=names.hostname(clique.name, index),
        subdomain=subdomain,
        environment=environment,
    )


def has_subdomain(pcs: object) -> bool:
    """Return whether the pods of a set must have a subdomain: a set without a headlessServiceConfig needs no Service
    that the subdomain could name (CORE-042)."""
    return at(pcs, "spec", "template", "headlessServiceConfig") is not None


def containers(pod_spec: object) -> list[Document]:
    """Return the init containers and containers of a pod spec."""
    return [*items(pod_spec, "initContainers"), *items(pod_spec, "containers")]


def index(document: Document) -> int | None:
    """Return the index at the end of a pod's hostname (OBJ-260); None if there is none."""
    number = text(document, "spec", "hostname").rpartition("-")[2]
    return int(number) if number.isascii() and number.isdigit() else None
