"""The kinds of Kubernetes' Workload API that the operator writes: only the fields that it compares (WL-F01, WL37-E01).

Kubernetes 1.37 serves Workloads and PodGroups as v1beta1 and CompositePodGroups as v1alpha3; 1.36 serves Workloads and
PodGroups as v1alpha2.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kube.objects import ObjectMeta
from kube.resource import Resource

GROUP = "scheduling.k8s.io"
WORKLOADS = Resource(GROUP, "v1beta1", "workloads", "Workload")
POD_GROUPS = Resource(GROUP, "v1beta1", "podgroups", "PodGroup")
COMPOSITES = Resource(GROUP, "v1alpha3", "compositepodgroups", "CompositePodGroup")
FLAT_WORKLOADS = Resource(GROUP, "v1alpha2", "workloads", "Workload")
FLAT_POD_GROUPS = Resource(GROUP, "v1alpha2", "podgroups", "PodGroup")


class WorkloadObject(msgspec.Struct):
    """A Workload, CompositePodGroup or PodGroup. Its status is not read, since only the scheduler writes it."""

    metadata: ObjectMeta
    spec: dict[str, Any] = {}
