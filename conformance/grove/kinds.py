"""The kinds of Grove, and the Kubernetes kinds of objects that a Grove operator creates (api.md KIND-01 … KIND-05)."""

from __future__ import annotations

from kube.resource import EVENTS, LEASES, NODES, PODS, SERVICES, Resource

PODCLIQUESETS = Resource("grove.io", "v1alpha1", "podcliquesets", "PodCliqueSet")
PODCLIQUES = Resource("grove.io", "v1alpha1", "podcliques", "PodClique")
SCALING_GROUPS = Resource("grove.io", "v1alpha1", "podcliquescalinggroups", "PodCliqueScalingGroup")
PODGANGS = Resource("scheduler.grove.io", "v1alpha1", "podgangs", "PodGang")
PODGANGMAPS = Resource("grove.io", "v1alpha1", "podgangmaps", "PodGangMap")
"""The kind for coherent updates, which an operator need not serve (COH-050)."""
TOPOLOGY_BINDINGS = Resource(
    "grove.io", "v1alpha1", "clustertopologybindings", "ClusterTopologyBinding", namespaced=False
)

LEASE = "grove-operator-leader-election"
"""The default Lease for the operator's leader election (CFG-06, CHG-RS-06)."""

GROVE = (PODCLIQUESETS, PODCLIQUES, SCALING_GROUPS, PODGANGS)
"""The namespaced kinds of Grove."""

SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
SECRETS = Resource("", "v1", "secrets", "Secret")
ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
ROLE_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
AUTOSCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
RESOURCE_SLICES = Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False)
DEVICE_CLASSES = Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", namespaced=False)
RESOURCE_CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim")
CLAIM_TEMPLATES = Resource("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate")
COMPUTE_DOMAINS = Resource("resource.nvidia.com", "v1beta1", "computedomains", "ComputeDomain")
"""A kind that belongs to a driver; a cluster may not have it."""

SECONDARY_RESOURCES = (SERVICE_ACCOUNTS, SECRETS, ROLES, ROLE_BINDINGS, AUTOSCALERS, RESOURCE_CLAIMS)
"""Kinds of which an operator may create objects, besides pods, Services and Grove's own kinds (OBJ-108 … OBJ-113)."""

WORKLOADS, PODGROUPS, COMPOSITES = (
    f"{plural}.scheduling.k8s.io" for plural in ("workloads", "podgroups", "compositepodgroups")
)
WORKLOAD_API = (WORKLOADS, PODGROUPS, COMPOSITES)
"""The kinds of Kubernetes' Workload API, in any served version (WL-F01, WL37-E01)."""

DEFAULT_SCHEDULER = "default-scheduler"
"""The name of kube-scheduler's profile unless another scheduler serves the name."""

SECOND_SCHEDULER = "second-scheduler"
"""The name of a second kube-scheduler profile on clusters with features: a gang can have pods of both profiles
(WL-S39)."""

RECORDED_KINDS = (
    *(*GROVE, PODGANGMAPS, PODS, SERVICES, NODES, EVENTS, LEASES),
    *(*SECONDARY_RESOURCES, COMPUTE_DOMAINS),
)
"""The kinds that the suite records for any implementation, if they are served."""
