"""Detect init containers that wait for other pods in a form that the fake kubelet does not recognize. The fake kubelet
completes such containers at once, so that pods start too early although the operator is not at fault."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from conformance.cluster.kubelet_sim import init_wait
from conformance.grove.fields import Document, items
from conformance.suite.outcomes.checks import Blocked


def require(pods: Iterable[Document], template_names: Collection[str]) -> None:
    """Raise Blocked if the operator added init containers to these pods, none of which waits in a known form.
    `template_names`: the names of the init containers in the templates. Pods without additional init containers do not
    wait at all; the tests judge that."""
    containers = [container for pod in pods for container in items(pod, "spec", "initContainers")]
    if name := init_wait.first_unknown_container(
        msgspec.convert(containers, list[init_wait.Container]), template_names
    ):
        reason = f"the fake kubelet knows no init container that waits as {name} does: --podcliques=NAME:COUNT"
        raise Blocked(reason, "circumstances")
