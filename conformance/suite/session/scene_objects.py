"""Removal of the objects of a scene."""

from __future__ import annotations

from collections.abc import Collection
from http.client import HTTPException

from conformance.cluster import etcd_keys
from conformance.cluster.controlplane import Cluster
from conformance.suite.scenes.api import Api


def remove(cluster: Cluster | None, api: Api, namespaces: Collection[str], nodes: Collection[str]) -> None:
    """Delete namespaces and nodes, without waiting until they are gone: directly in etcd if this is a fake cluster,
    otherwise through the API. Raises ApiError or HarnessError if they cannot be deleted."""
    if cluster is not None:
        try:
            etcd_keys.remove(cluster.workspace, namespaces, nodes)
            return
        except (OSError, HTTPException):
            pass  # etcd does not run, or its socket cannot be reached on this system
    api.delete("namespaces", None, namespaces)
    for namespace in namespaces if cluster is not None else ():
        # Without this, KWOK would write to each pod twice, and never terminate pods whose nodes are gone.
        api.remove_pods(namespace)
    api.delete("nodes", None, nodes)
