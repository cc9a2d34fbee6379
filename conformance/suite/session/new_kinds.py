"""Wait until the garbage collector of an existing cluster knows the kinds that were just installed.

It looks for new kinds every 30 s. Until then it deletes nothing that an object of them owns, and an implementation that
relies on it would be accused.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson
import psutil
from tenacity import RetryError, Retrying, retry_if_not_result, stop_after_delay, wait_fixed

from conformance.cluster.controlplane import Cluster
from conformance.cluster.health import COMPONENTS
from conformance.cluster.ports import Port
from conformance.errors import HarnessError
from conformance.implementation import installation
from conformance.suite.scenes.api import Api
from kube.resource import CRDS, Resource

KNOWN_AFTER = 120.0
"""Seconds after which every kind is known: four times the period of the garbage collector."""

METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""The schemas of CRDs are long."""

GROUP = "conformance.grove.io"


def learn(cluster: Cluster | None, api: Api) -> bool:
    """Return once the garbage collector knows every installed kind; False if no kind was new to it.

    `cluster` is the cluster of the suite behind `api`, None if it is somebody else's. Ours is restarted, which takes
    half a second; another one is observed. Raises HarnessError if there is no garbage collector.
    """
    listed = orjson.loads(api.work(lambda client: client.request("GET", CRDS.path(), headers={"Accept": METADATA})))
    newest = max((_seconds(crd) for crd in listed["items"]), default=0.0)
    if cluster is None:
        if time.time() - newest > KNOWN_AFTER:
            return False
        _observe(api)
    else:
        pid = cluster.monitor.pids().get(COMPONENTS[Port.CONTROLLER_MANAGER])
        # Creation times have whole seconds, and so, nearly, have the start times of processes.
        if pid is not None and newest < psutil.Process(pid).create_time() - 2:
            return False
        cluster.learn_new_kinds()
    return True


def _seconds(crd: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(crd["metadata"]["creationTimestamp"]).timestamp()


def _observe(api: Api) -> None:
    """Install one more kind with an object whose owner does not exist, and wait until the object is deleted: then the
    kinds that were installed before are known too."""
    plural = f"barriers{secrets.token_hex(4)}"
    kind = Resource(GROUP, "v1", plural, plural.capitalize(), namespaced=False)
    crd = crd_of(kind)
    try:
        api.work(lambda client: installation.install_crds(client, [crd]))
        api.create_all(kind, [orphan_of(kind)])
        Retrying(
            retry=retry_if_not_result(bool),
            wait=wait_fixed(0.2),
            stop=stop_after_delay(KNOWN_AFTER),
        )(lambda: not api.work(lambda client: client.list(kind)))
    except RetryError as error:
        raise HarnessError(
            f"what an absent object owns is not deleted within {KNOWN_AFTER:g} s",
            hint="start kube-controller-manager with its garbage collector",
        ) from error
    finally:
        api.delete(CRDS.plural, None, [crd["metadata"]["name"]])


def orphan_of(kind: Resource) -> dict[str, Any]:
    """An object of a cluster-scoped kind whose owner does not exist."""
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": "absent", "uid": "00000000-0000-4000-8000-000000000000"}
    metadata = {"name": "orphan", "ownerReferences": [owner]}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}


def crd_of(kind: Resource) -> dict[str, Any]:
    """The CRD of a cluster-scoped kind without fields."""
    schema = {"openAPIV3Schema": {"type": "object"}}
    return {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "scope": "Cluster",
            "names": {"plural": kind.plural, "kind": kind.kind},
            "versions": [{"name": kind.version, "served": True, "storage": True, "schema": schema}],
        },
    }
