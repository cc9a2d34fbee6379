"""Modes of hostile.py that make the audit log grow by long requests."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from kube.errors import ApiError
from tests.attacks.helpers import NODES, mode, send

LONG = "x" * 900_000
"""Less than 1 MiB, which is the maximum length of the headers of a request."""


def _repeat(request: Callable[[], object]) -> None:
    """Send a request again and again, until the suite ends this program. Errors are ignored."""
    while True:
        with contextlib.suppress(ApiError, OSError):
            request()


@mode
def long_addresses(kubeconfig: Path, folder: Path) -> None:
    """Send requests whose URIs are 900 KB long."""
    _repeat(lambda: send(kubeconfig, "GET", f"{NODES}?labelSelector={LONG}"))


@mode
def long_agents(kubeconfig: Path, folder: Path) -> None:
    """Send requests with a user agent of 900 KB."""
    _repeat(lambda: send(kubeconfig, "DELETE", f"{NODES}/nothing", agent=LONG))


@mode
def long_names(kubeconfig: Path, folder: Path) -> None:
    """Send writes of objects whose names are 900 KB long, and bodies that are just as long."""
    body = {"metadata": {"name": LONG, "annotations": {"a": LONG}}}
    _repeat(lambda: send(kubeconfig, "POST", "/api/v1/namespaces/default/configmaps", body))
