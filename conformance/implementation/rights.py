"""The permissions of an implementation's roles: each role is a separate user that is bound to a ClusterRole.

The ClusterRole is `cluster-admin` unless the descriptor names a narrower one. The users are never in the group
`system:masters`, whose permissions cannot be restricted: an implementation has no more permissions than can be given to
an operator on any cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson

from conformance.errors import UsageError
from conformance.implementation import installation
from conformance.implementation.descriptor import Descriptor, Role
from conformance.implementation.installation import MANAGER, TIMEOUT_SECONDS, wait_until
from kube.client import Client
from kube.resource import Resource

CLUSTER_ADMIN = "cluster-admin"
_GROUP = "rbac.authorization.k8s.io"
CLUSTER_ROLES = Resource(_GROUP, "v1", "clusterroles", "ClusterRole", namespaced=False)
BINDINGS = Resource(_GROUP, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


async def bind_users(client: Client, players: Mapping[Role, Descriptor], restricted: Descriptor | None = None) -> None:
    """Bind the user of each role, and return once the API server applies the bindings. The roles of `restricted` may do
    only what that implementation declares, by a ClusterRole or by bindings among its objects. Raises UsageError for a
    ClusterRole that does not exist, or HarnessError if a binding is rejected or has no effect."""
    players_to_bind = {
        role: player for role, player in players.items() if player is not restricted or role in player.cluster_roles
    }
    await asyncio.gather(*(_bind(client, role, player) for role, player in players_to_bind.items()))


def require_declared(descriptor: Descriptor) -> None:
    """Raise UsageError if a role of the implementation declares no permissions, because it could not do anything."""
    paths = descriptor.manifests("objects")
    manifests = (obj for path in paths for obj in installation.read_manifests(path, installation.text(path)))
    if any(manifest["kind"] in (BINDINGS.kind, "RoleBinding") for manifest in manifests):
        return
    for role in sorted(descriptor.roles - descriptor.cluster_roles.keys()):
        location = descriptor.document.location("clusterRoles")
        hint = f"name a ClusterRole in clusterRoles.{role}, or leave the policy rbac out"
        raise UsageError(f"declares no rights for the role {role}", where=location, hint=hint)


async def _bind(client: Client, role: Role, player: Descriptor) -> None:
    name = player.cluster_roles.get(role, CLUSTER_ADMIN)
    cluster_role = await client.get_or_none(CLUSTER_ROLES, None, name)
    if cluster_role is None:
        location = player.document.location("clusterRoles", role)
        raise UsageError(f"there is no ClusterRole {name}", where=location, hint="create it by install.objects")
    binding = {
        "apiVersion": BINDINGS.api_version,
        "kind": BINDINGS.kind,
        "metadata": {"name": f"{MANAGER}-{role}"},
        "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": _GROUP, "kind": "User", "name": str(role)}],
    }
    await client.apply(BINDINGS, binding, manager=MANAGER)
    if (attributes := _allowed_request(orjson.loads(cluster_role))) is None:
        return
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": str(role), "groups": ["system:authenticated"], "resourceAttributes": attributes},
    }

    async def is_effective() -> bool:
        response = orjson.loads(await client.request("POST", _REVIEWS, body=review))
        return bool(response["status"]["allowed"])

    await wait_until(is_effective, f"the user {role} does not have the ClusterRole {name} after {TIMEOUT_SECONDS:g} s")


def _allowed_request(cluster_role: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the attributes of a request that the ClusterRole allows; None if it allows nothing that can be checked."""
    for rule in cluster_role.get("rules") or ():
        if rule.get("resources") and not rule.get("resourceNames"):
            resource, _, subresource = rule["resources"][0].partition("/")
            group = (rule.get("apiGroups") or [""])[0]
            return {"verb": rule["verbs"][0], "group": group, "resource": resource, "subresource": subresource}
    return None
