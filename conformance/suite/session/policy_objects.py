"""Wait for the objects that a cluster's policies create in a new namespace, so that scenes start only once these
objects exist."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from conformance.cluster import pace
from conformance.errors import HarnessError
from conformance.suite.scenes.api import Api
from kube.errors import ApiError

TIMEOUT_SECONDS = 30.0
"""Seconds within which a new namespace must have its objects. It usually takes less than one."""
POLL_SECONDS = 0.05


def wait(api: Api, namespace: str, manifests: Iterable[Mapping[str, Any]]) -> None:
    """Block until all namespaced objects among `manifests` exist in the namespace. Raises HarnessError if that takes
    too long."""
    start = time.monotonic()
    for manifest in manifests:
        resource, name = api.of_object(manifest), str(manifest["metadata"]["name"])
        while resource.namespaced and not _exists(api, resource.plural, namespace, name):
            if time.monotonic() - start > pace.patience(TIMEOUT_SECONDS):
                raise HarnessError(
                    f"the namespace {namespace} has no {manifest['kind']} {name} after {TIMEOUT_SECONDS:g} s"
                )
            time.sleep(POLL_SECONDS)


def _exists(api: Api, plural: str, namespace: str, name: str) -> bool:
    try:
        api.get(plural, namespace, name)
    except ApiError as error:
        if not error.not_found:
            raise
        return False
    return True
