"""Optional features of the operator."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kube.client import Client
from kube.errors import ApiError
from kube.resource import CRDS, Resource
from reference_impl.api.kai import POD_GROUPS, TOPOLOGIES
from reference_impl.api.kubernetes import COMPUTE_DOMAINS
from reference_impl.api.models import PODGANGMAPS, TOPOLOGY_BINDINGS
from reference_impl.api.workload_api import GROUP
from reference_impl.plan.lines import Line
from reference_impl.plan.workload_api.mode import SCHEDULER, Form, Mode


@dataclass(frozen=True)
class Features:
    """`topology`: gangs get the topology constraints of their sets (OBJ-455). `mnnvl`: ComputeDomains are created for
    cliques with GPUs (OBJ-840). `maps`: PodGangMaps are watched. `kai`: the objects of the KAI scheduler are written
    (OBJ-525). `workload_api`: the objects of kube-scheduler are written, in this mode (WL-H01)."""

    topology: bool = False
    mnnvl: bool = False
    maps: bool = False
    kai: bool = False
    workload_api: Mode | None = None


NO_FEATURES = Features()


EARLIER_TOPOLOGIES = "clustertopologies.grove.io"
"""The CRD of Grove up to v0.1.0-alpha.8. Its successor has the same short name, so the API server does not serve the
successor while both exist (HASH-197)."""


async def with_maps(client: Client, features: Features) -> Features:
    """Return the features with `maps` set if the cluster serves PodGangMaps. Even an operator that writes no maps may
    find some."""
    return replace(features, maps=await _is_served(client, PODGANGMAPS.path()))


async def with_form(client: Client, features: Features) -> Features:
    """Return the features with the form of gangs on kube-scheduler that the cluster can express. This is the form of
    Kubernetes 1.36 only if the cluster serves no resource of the 1.37 form."""
    mode = features.workload_api
    if mode is None or await _missing_resources(client, Form.FLAT):
        return features
    for resource in Form.TREE.resources:
        if await _is_served(client, resource.path()):
            return features
    return replace(features, workload_api=replace(mode, form=Form.FLAT))


async def _missing_resources(client: Client, form: Form) -> list[Resource]:
    return [resource for resource in form.resources if not await _is_served(client, resource.path())]


async def missing_api(client: Client, features: Features, line: Line) -> str:
    """Return a message about the API that the cluster lacks for these features and this release line, in one line, or
    an empty string if it lacks none (OBJ-840)."""
    if line.stores_layouts and not features.maps:
        return (
            f"the cluster serves no {PODGANGMAPS}, which Grove has from v0.1.0-alpha.12: install its CRD, or play the "
            "earlier contract with --contract names"
        )
    if features.topology and not await _is_served(client, TOPOLOGY_BINDINGS.path()):
        problem = f"the cluster serves no {TOPOLOGY_BINDINGS}"
        if await _is_served(client, f"{CRDS.path()}/{EARLIER_TOPOLOGIES}"):
            return (
                f"{problem}: the CRD {EARLIER_TOPOLOGIES} of an earlier version holds its short name. Keep what there "
                f"is of it (kubectl get {EARLIER_TOPOLOGIES} -o yaml), make it bindings of the new kind, then: "
                f"kubectl delete crd {EARLIER_TOPOLOGIES}. Sets and their pods run on meanwhile"
            )
        return f"{problem}: is Grove's CRD installed?"
    if features.mnnvl and not await _is_served(client, COMPUTE_DOMAINS.path()):
        return f"the cluster serves no {COMPUTE_DOMAINS}: is the driver's CRD installed?"
    for required_resource in (POD_GROUPS, *((TOPOLOGIES,) if features.topology else ())) if features.kai else ():
        if not await _is_served(client, required_resource.path()):
            return f"the cluster serves no {required_resource}: are KAI's CRDs installed?"
    if features.workload_api is not None and (
        missing_resources := await _missing_resources(client, features.workload_api.form)
    ):
        missing_names = ", ".join(f"{resource} ({resource.version})" for resource in missing_resources)
        return (
            f"gangScheduling of {SCHEDULER} needs Kubernetes 1.37 with the feature gates GenericWorkload "
            "(kube-apiserver, kube-scheduler, kube-controller-manager), TopologyAwareWorkloadScheduling and "
            "CompositePodGroup (kube-apiserver, kube-scheduler), and the runtime-config "
            f"{GROUP}/v1beta1=true,{GROUP}/v1alpha3=true: the cluster does not serve {missing_names}. "
            "Enable them, or set gangScheduling: false"
        )
    return ""


async def _is_served(client: Client, path: str) -> bool:
    try:
        await client.request("GET", path)
    except ApiError as error:
        if not error.not_found:
            raise
        return False
    return True
