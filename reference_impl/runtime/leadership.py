"""Leader election of the operator, with the configured Lease (spec CFG-04 to CFG-06, CHG-RS-06)."""

from __future__ import annotations

import socket
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from kube.client import Client
from kube.leases import Elector, LeaseTiming
from reference_impl.runtime.configuration import LeaderElection

USER_AGENT = "grove-reference-operator/leader-election"
OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
"""The file that holds the namespace of a pod, which is the default namespace of the Lease."""


def lease_namespace(settings: LeaderElection, namespace_file: Path = OWN_NAMESPACE) -> str:
    """Return the namespace of the Lease, or an empty string if it is unknown."""
    if settings.resource_namespace:
        return settings.resource_namespace
    try:
        return namespace_file.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


@asynccontextmanager
async def candidate(kubeconfig: Path, settings: LeaderElection) -> AsyncIterator[Elector]:
    """Yield a candidate for the Lease. At the end, release the Lease if the candidate holds it."""
    terms = LeaseTiming(*(settings.seconds(field) for field in ("lease_duration", "renew_deadline", "retry_period")))
    async with Client.from_kubeconfig(kubeconfig, user_agent=USER_AGENT) as client:
        identity = f"{socket.gethostname()}_{uuid.uuid4()}"
        elector = Elector(client, lease_namespace(settings), settings.resource_name, identity=identity, terms=terms)
        try:
            yield elector
        finally:
            await elector.release()
