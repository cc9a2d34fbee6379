"""Removal of namespaces and nodes directly in the etcd of a fake cluster.

Through the API, the end of a namespace costs about 40 requests of the namespace controller, and several writes for each
object with a finalizer: 15 % of the CPU time of a run. Watches show these removals like any other.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import socket
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

SOCKET = "etcd.sock"
"""The socket of etcd in the workspace of a cluster."""
REGISTRY = "/registry/"
_END = "/registry0"
"""The first key after all keys that begin with REGISTRY."""
_NAMESPACES = "/registry/namespaces"
_NODE_PARENTS = ("/registry/minions", "/registry/leases/kube-node-lease")
_OWNERS = ("/namespaces/", "/podcliquesets/", "/podcliquescalinggroups/", "/podcliques/", "/podgangs/")
_TIMEOUT_SECONDS = 10.0


class _UnixConnection(http.client.HTTPConnection):
    """A connection to a socket in a folder whose path may be too long for a socket address."""

    def __init__(self, folder: Path) -> None:
        super().__init__("etcd", timeout=_TIMEOUT_SECONDS)
        self._folder = folder

    def connect(self) -> None:
        with _directory(self._folder) as directory:
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.sock.settimeout(_TIMEOUT_SECONDS)
            self.sock.connect(f"/proc/self/fd/{directory}/{SOCKET}")


@contextmanager
def _directory(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def remove(workspace: Path, namespaces: Collection[str], nodes: Collection[str]) -> None:
    """Remove namespaces with everything in them, and nodes with their leases. Raises OSError or HTTPException if etcd
    does not answer."""
    with closing(_UnixConnection(workspace)) as connection:
        answer = _call(connection, "range", {"key": REGISTRY, "range_end": _END}, keys_only=True)
        keys = [base64.b64decode(entry["key"]).decode() for entry in answer.get("kvs", ())]
        for key in removal_order(keys, namespaces, nodes):
            # One request for each key: a watch must not show two removals with the same resource version.
            _call(connection, "deleterange", {"key": key})


def removal_order(keys: Iterable[str], namespaces: Collection[str], nodes: Collection[str]) -> list[str]:
    """Return the keys of these namespaces, of the objects in them, and of these nodes and their leases. Owners come
    before their dependents, so that no controller creates a dependent anew."""

    def is_removed(key: str) -> bool:
        parent, _, name = key.rpartition("/")
        if parent in _NODE_PARENTS:
            return name in nodes
        return name in namespaces if parent == _NAMESPACES else parent.rpartition("/")[2] in namespaces

    def rank(key: str) -> int:
        return next((number for number, part in enumerate(_OWNERS) if part in key), len(_OWNERS))

    return sorted(filter(is_removed, keys), key=rank)


def _call(connection: http.client.HTTPConnection, method: str, keys: dict[str, str], **options: Any) -> Any:
    encoded = {name: base64.b64encode(key.encode()).decode() for name, key in keys.items()}
    connection.request("POST", f"/v3/kv/{method}", json.dumps(encoded | options))
    response = connection.getresponse()
    body = response.read()
    if response.status != http.HTTPStatus.OK:
        raise http.client.HTTPException(f"etcd answers {response.status}: {body.decode(errors='replace')[:200]}")
    return json.loads(body)
