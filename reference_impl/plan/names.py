"""Names of generated objects (spec NAME-01 to NAME-05, OBJ-101 to OBJ-114)."""

from __future__ import annotations


def replica(pcs: str, index: int | str) -> str:
    """Return the name of a replica's headless Service, of its base gang, and of its PodGangMap."""
    return f"{pcs}-{index}"


service = replica
gang_map = replica


def token_secret(pcs: str) -> str:
    """Return the name of the set's Secret with the service account token (OBJ-110)."""
    return f"{pcs}-ic-sat"


def clique(pcs: str, index: int, template: str) -> str:
    """Return the name of a standalone clique in a replica."""
    return f"{pcs}-{index}-{template}"


def scaling_group(pcs: str, index: int, config: str) -> str:
    """Return the full name of a scaling group in a replica."""
    return f"{pcs}-{index}-{config}"


def member_clique(group: str, replica_index: int, template: str) -> str:
    """Return the name of a clique in a replica of the scaling group with this full name."""
    return f"{group}-{replica_index}-{template}"


def replica_index_in_name(pcs: str, gang: str) -> str:
    """Return the replica index in the name of a set's gang (OBJ-104, OBJ-105), or an empty string if there is none."""
    index = gang.removeprefix(f"{pcs}-").partition("-")[0]
    return index if gang.startswith(f"{pcs}-") and index.isdigit() else ""


def scaled_gang(group: str, replica_index: int, min_available: int) -> str:
    """Return the name of the gang of a scaling group replica at or above `min_available`; the name of the first such
    gang ends in `-0`."""
    return f"{group}-{replica_index - min_available}"


def member_group(group: str, replica_index: int) -> str:
    """Return the name of a scaling group replica in the topology of a base gang (OBJ-115)."""
    return f"{group}-{replica_index}"


def service_account(pcs: str) -> str:
    """Return the name of a set's ServiceAccount."""
    return pcs


def role(pcs: str) -> str:
    """Return the name of a set's Role and of its RoleBinding."""
    return f"grove.io:pcs:{pcs}"


def legacy_secret(pcs: str) -> str:
    """Return the name that the token Secret had before v0.1.0-alpha.12."""
    return f"{pcs}-initc-sa-token-secret"


def shared_claim(owner: str, template: str) -> str:
    """Return the name of the ResourceClaim that all replicas of an owner share; the owner is a set, a scaling group or
    a clique."""
    return f"{owner}-all-{template}"


def replica_claim(owner: str, index: int | str, template: str) -> str:
    """Return the name of the ResourceClaim of one replica of an owner."""
    return f"{owner}-{index}-{template}"


def compute_domain(pcs: str, index: int | str, group: str) -> str:
    """Return the name of the ComputeDomain of an MNNVL group in a replica of a set, and of its
    ResourceClaimTemplate."""
    return f"{pcs}-{index}-{group}"
