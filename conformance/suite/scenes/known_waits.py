"""Notice init containers that wait for other pods in a form that the fake kubelet does not know: it ends them at once,
so that pods start too early through no fault of the operator."""

from __future__ import annotations

from collections.abc import Container, Iterable

import msgspec

from conformance.cluster.kubelet_sim import init_wait
from conformance.grove.fields import Document, items
from conformance.suite.outcomes.checks import Blocked


def require(pods: Iterable[Document], own: Container[str]) -> None:
    """Raise Blocked if the operator gave these pods init containers, none of which is known to wait. `own` are the
    names of those of the templates. Pods without any do not wait at all, which is for the tests to judge."""
    added = [
        container
        for pod in pods
        for container in msgspec.convert(items(pod, "spec", "initContainers"), list[init_wait.Container])
        if container.name not in own
    ]
    if added and not any(map(_waits, added)):
        reason = f"the fake kubelet knows no init container that waits as {added[0].name} does: --podcliques=NAME:COUNT"
        raise Blocked(reason, "circumstances")


def _waits(container: init_wait.Container) -> bool:
    try:
        return init_wait.parents(container) is not None
    except init_wait.MalformedError:
        return True
