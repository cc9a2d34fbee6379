"""Notice init containers that wait for other pods in a form that the fake kubelet does not know: it ends them at once,
so that pods start too early through no fault of the operator."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from conformance.cluster.kubelet_sim import init_wait
from conformance.grove.fields import Document, items
from conformance.suite.outcomes.checks import Blocked


def require(pods: Iterable[Document], template_names: Collection[str]) -> None:
    """Raise Blocked if the operator gave these pods init containers, none of which is known to wait. `template_names`:
    the names of those of the templates. Pods without any do not wait at all, which is for the tests to judge."""
    containers = [container for pod in pods for container in items(pod, "spec", "initContainers")]
    if name := init_wait.unknown(msgspec.convert(containers, list[init_wait.Container]), template_names):
        reason = f"the fake kubelet knows no init container that waits as {name} does: --podcliques=NAME:COUNT"
        raise Blocked(reason, "circumstances")
