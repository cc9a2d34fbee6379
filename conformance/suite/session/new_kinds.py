"""Wait until the garbage collector of a cluster knows the kinds that were just installed.

The garbage collector discovers new kinds every 30 s. Until then, it does not delete objects that are owned by objects
of these kinds, and an implementation that relies on garbage collection would be blamed.
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
from kube.client import METADATA_LIST
from kube.resource import CRDS, Resource

DISCOVERY_SECONDS = 120.0
"""Seconds after which the garbage collector knows every kind: four times its discovery period."""

GROUP = "conformance.grove.io"


def learn(cluster: Cluster | None, api: Api) -> bool:
    """Wait until the garbage collector knows every installed kind. Return False if it already knew them all.

    `cluster` is the suite's cluster behind `api`; None if the cluster is not one of the suite's. The garbage collector
    of a suite's cluster is restarted, which takes half a second; the garbage collector of any other cluster is only
    observed. Raises HarnessError if there is no garbage collector.
    """
    # Only the metadata, because the schemas of CRDs are long.
    crd_list = orjson.loads(
        api.work(lambda client: client.request("GET", CRDS.path(), headers={"Accept": METADATA_LIST}))
    )
    newest = max((_seconds(crd) for crd in crd_list["items"]), default=0.0)
    if cluster is None:
        if time.time() - newest > DISCOVERY_SECONDS:
            return False
        _observe(api)
    else:
        pid = cluster.monitor.pids().get(COMPONENTS[Port.CONTROLLER_MANAGER])
        # Creation times are in whole seconds, and the start times of processes are accurate only to about a second.
        if pid is not None and newest < psutil.Process(pid).create_time() - 2:
            return False
        cluster.learn_new_kinds()
    return True


def _seconds(crd: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(crd["metadata"]["creationTimestamp"]).timestamp()


def _observe(api: Api) -> None:
    """Install one more kind with an object whose owner does not exist, and wait until the object is deleted. By then,
    the garbage collector also knows the kinds that were installed earlier."""
    plural = f"barriers{secrets.token_hex(4)}"
    kind = Resource(GROUP, "v1", plural, plural.capitalize(), namespaced=False)
    crd = crd_of(kind)
    try:
        api.work(lambda client: installation.install_crds(client, [crd]))
        api.create_all(kind, [orphan_of(kind)])
        Retrying(
            retry=retry_if_not_result(bool),
            wait=wait_fixed(0.2),
            stop=stop_after_delay(DISCOVERY_SECONDS),
        )(lambda: not api.work(lambda client: client.list(kind)))
    except RetryError as error:
        raise HarnessError(
            f"what an absent object owns is not deleted within {DISCOVERY_SECONDS:g} s",
            hint="start kube-controller-manager with its garbage collector",
        ) from error
    finally:
        api.delete(CRDS.plural, None, [crd["metadata"]["name"]])


def orphan_of(kind: Resource) -> dict[str, Any]:
    """Return an object of a cluster-scoped kind whose owner does not exist."""
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": "absent", "uid": "00000000-0000-4000-8000-000000000000"}
    metadata = {"name": "orphan", "ownerReferences": [owner]}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}


def crd_of(kind: Resource) -> dict[str, Any]:
    """Return the CRD of a cluster-scoped kind without fields."""
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
