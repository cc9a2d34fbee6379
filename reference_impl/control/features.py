"""Optional features of the operator."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kube.client import Client
from kube.errors import ApiError
from kube.resource import CRDS
from reference_impl.api.kai import POD_GROUPS, TOPOLOGIES
from reference_impl.api.kubernetes import COMPUTE_DOMAINS
from reference_impl.api.models import PODGANGMAPS, TOPOLOGY_BINDINGS


@dataclass(frozen=True)
class Features:
    """`topology`: topology constraints are passed on to the gangs (OBJ-455). `mnnvl`: ComputeDomains are created for
    cliques with GPUs (OBJ-840). `maps`: the cluster serves PodGangMaps, which coherent updates need. `kai`: the objects
    of the scheduler KAI are written (OBJ-525)."""

    topology: bool = False
    mnnvl: bool = False
    maps: bool = False
    kai: bool = False


NO_FEATURES = Features()


EARLIER_TOPOLOGIES = "clustertopologies.grove.io"
"""The CRD of Grove up to v0.1.0-alpha.8. It has the same short name as its successor, which the API server therefore
does not serve while both exist (HASH-197)."""


async def with_maps(client: Client, features: Features) -> Features:
    """The features, with `maps` as the cluster serves them."""
    return replace(features, maps=await _served(client, PODGANGMAPS.path()))


async def unmet(client: Client, features: Features) -> str:
    """What the cluster lacks for these features, in one line; empty if nothing (OBJ-840)."""
    if features.topology and not await _served(client, TOPOLOGY_BINDINGS.path()):
        lack = f"the cluster serves no {TOPOLOGY_BINDINGS}"
        if await _served(client, f"{CRDS.path()}/{EARLIER_TOPOLOGIES}"):
            return (
                f"{lack}: the CRD {EARLIER_TOPOLOGIES} of an earlier version holds its short name. Keep what there is "
                f"of it (kubectl get {EARLIER_TOPOLOGIES} -o yaml), make it bindings of the new kind, then: "
                f"kubectl delete crd {EARLIER_TOPOLOGIES}. Sets and their pods run on meanwhile"
            )
        return f"{lack}: is Grove's CRD installed?"
    if features.mnnvl and not await _served(client, COMPUTE_DOMAINS.path()):
        return f"the cluster serves no {COMPUTE_DOMAINS}: is the driver's CRD installed?"
    for kind in (POD_GROUPS, *((TOPOLOGIES,) if features.topology else ())) if features.kai else ():
        if not await _served(client, kind.path()):
            return f"the cluster serves no {kind}: are KAI's CRDs installed?"
    return ""


async def _served(client: Client, path: str) -> bool:
    try:
        await client.request("GET", path)
    except ApiError as error:
        if not error.not_found:
            raise
        return False
    return True
