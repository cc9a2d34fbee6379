"""The names of Grove objects (docs/spec/objects.md, section 1). Indices start at 0."""

from __future__ import annotations


def service(set_name: str, replica: int) -> str:
    """Return the name of the headless Service of a set replica (OBJ-107)."""
    return f"{set_name}-{replica}"


def base_gang(set_name: str, replica: int) -> str:
    """Return the name of the base gang of a set replica (OBJ-104)."""
    return f"{set_name}-{replica}"


def scaling_group(set_name: str, replica: int, group: str) -> str:
    """Return the name of a PodCliqueScalingGroup (OBJ-102)."""
    return f"{set_name}-{replica}-{group}"


def clique(set_name: str, replica: int, clique_name: str) -> str:
    """Return the name of a standalone PodClique (OBJ-101)."""
    return f"{set_name}-{replica}-{clique_name}"


def member_clique(group_name: str, group_replica: int, clique_name: str) -> str:
    """Return the name of a PodClique of a scaling group, from the group's full name (OBJ-103)."""
    return f"{group_name}-{group_replica}-{clique_name}"


def scaled_gang(group_name: str, group_replica: int, min_available: int) -> str:
    """Return the name of the gang of a scaling group replica whose index is minAvailable or higher; the first such name
    ends in `-0` (OBJ-105)."""
    return f"{group_name}-{group_replica - min_available}"


def gang_map(set_name: str, replica: int) -> str:
    """Return the name of the PodGangMap of a set replica (GM-10)."""
    return f"{set_name}-{replica}"


def anchor_gang(set_name: str, replica: int, epoch: str) -> str:
    """Return the name of the gang of an Anchor entry (GM-11)."""
    return f"{set_name}-{replica}-{epoch}"


def member_gang(set_name: str, replica: int, epoch: str, group: str, group_replica: int) -> str:
    """Return the name of a gang of a Tail or ScaleOut entry, from the scaling group's name in the template (GM-12)."""
    return f"{set_name}-{replica}-{epoch}-{group}-{group_replica}"


def hostname(clique_full_name: str, index: int) -> str:
    """Return `spec.hostname` of the pod with this index (OBJ-251)."""
    return f"{clique_full_name}-{index}"


def service_account(set_name: str) -> str:
    """Return the name of the ServiceAccount of a set (OBJ-108)."""
    return set_name


def role(set_name: str) -> str:
    """Return the name of the Role and the RoleBinding of a set (OBJ-109)."""
    return f"grove.io:pcs:{set_name}"


def token_secret(set_name: str) -> str:
    """Return the name of the token Secret of a set (OBJ-110)."""
    return f"{set_name}-ic-sat"


def legacy_token_secret(set_name: str) -> str:
    """Return the name of the token Secret before v0.1.0-alpha.12 (OBJ-110)."""
    return f"{set_name}-initc-sa-token-secret"


def shared_claim(owner: str, template_name: str) -> str:
    """Return the name of the ResourceClaim that all replicas of a set, scaling group or clique share (OBJ-112)."""
    return f"{owner}-all-{template_name}"


def replica_claim(owner: str, index: int, template_name: str) -> str:
    """Return the name of the ResourceClaim of one replica of a set or scaling group, or of one pod of a clique
    (OBJ-113)."""
    return f"{owner}-{index}-{template_name}"


def compute_domain(set_name: str, replica: int, group: str) -> str:
    """Return the name of a ComputeDomain and of the ResourceClaimTemplate that its driver creates (OBJ-114)."""
    return f"{set_name}-{replica}-{group}"
