"""What an operator can be told not to do."""

from __future__ import annotations

from dataclasses import dataclass

from kube.client import Client
from kube.errors import ApiError
from reference_impl.api.kubernetes import COMPUTE_DOMAINS


@dataclass(frozen=True)
class Features:
    """`topology`: constraints reach the gangs (OBJ-455). `mnnvl`: ComputeDomains are made for cliques with GPUs
    (OBJ-840)."""

    topology: bool = False
    mnnvl: bool = False


NO_FEATURES = Features()


async def unmet(client: Client, features: Features) -> str:
    """What the cluster lacks for these features, in a line; empty where it lacks nothing (OBJ-840)."""
    if not features.mnnvl:
        return ""
    try:
        await client.request("GET", COMPUTE_DOMAINS.path())
    except ApiError as error:
        if not error.not_found:
            raise
        return f"the cluster serves no {COMPUTE_DOMAINS}: is the driver's CRD installed?"
    return ""
