"""Kubernetes kinds that the operator creates in addition to Grove's kinds: only the fields that it compares (spec
OBJ-108 to OBJ-114)."""

from __future__ import annotations

from typing import Any

import msgspec

from kube.objects import ObjectMeta
from kube.resource import Resource

SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
SECRETS = Resource("", "v1", "secrets", "Secret")
ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
ROLE_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
AUTOSCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim")
CLAIM_TEMPLATES = Resource("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate")
COMPUTE_DOMAINS = Resource("resource.nvidia.com", "v1beta1", "computedomains", "ComputeDomain")

Json = dict[str, Any]


class ServiceAccount(msgspec.Struct, rename="camel"):
    """A ServiceAccount (OBJ-108)."""

    metadata: ObjectMeta
    automount_service_account_token: bool | None = None


class Secret(msgspec.Struct):
    """A Secret without its data; `has_token` records whether it has a token."""

    metadata: ObjectMeta
    type: str = ""
    data: dict[str, str] | None = None
    has_token: bool = False

    def __post_init__(self) -> None:
        self.has_token = bool((self.data or {}).get("token"))
        self.data = None


class Role(msgspec.Struct):
    """A Role (OBJ-109)."""

    metadata: ObjectMeta
    rules: list[Json] | None = None


class RoleBinding(msgspec.Struct, rename="camel"):
    """A RoleBinding (OBJ-109)."""

    metadata: ObjectMeta
    role_ref: Json = {}
    subjects: list[Json] | None = None


class Autoscaler(msgspec.Struct):
    """A HorizontalPodAutoscaler (OBJ-111)."""

    metadata: ObjectMeta
    spec: Json = {}


class Claim(msgspec.Struct):
    """A ResourceClaim; its immutable spec is not compared."""

    metadata: ObjectMeta


class ResourceClaimTemplate(msgspec.Struct):
    """A ResourceClaimTemplate; `spec.spec` becomes the spec of its claims."""

    metadata: ObjectMeta
    spec: Json = {}


class ComputeDomain(msgspec.Struct):
    """A ComputeDomain (OBJ-114)."""

    metadata: ObjectMeta
    spec: Json = {}
