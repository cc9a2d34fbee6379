"""Names of generated objects (spec NAME-01 to NAME-05, OBJ-101 to OBJ-114)."""

from __future__ import annotations


def replica(pcs: str, index: int | str) -> str:
    """Name of a replica's headless service, of its base gang, and of its PodGangMap."""
    return f"{pcs}-{index}"


service = replica
gang_map = replica


def token_secret(pcs: str) -> str:
    """The set's secret with a service account token (OBJ-110)."""
    return f"{pcs}-ic-sat"


def clique(pcs: str, index: int, template: str) -> str:
    """A standalone clique of a replica."""
    return f"{pcs}-{index}-{template}"


def scaling_group(pcs: str, index: int, config: str) -> str:
    """The scaling group of a replica."""
    return f"{pcs}-{index}-{config}"


def member_clique(group: str, replica_index: int, template: str) -> str:
    """A clique inside a replica of the scaling group with this full name."""
    return f"{group}-{replica_index}-{template}"


def index_in_gang(pcs: str, gang: str) -> str:
    """The index of the replica in the name of a gang of a set (OBJ-104, OBJ-105); empty if there is none."""
    index = gang.removeprefix(f"{pcs}-").partition("-")[0]
    return index if gang.startswith(f"{pcs}-") and index.isdigit() else ""


def scaled_gang(group: str, replica_index: int, min_available: int) -> str:
    """The gang of a scaling group's replica at or above `min_available`; the first one ends in `-0`."""
    return f"{group}-{replica_index - min_available}"


def member_group(group: str, replica_index: int) -> str:
    """A scaling group's replica inside a base gang, as an entry of its topology (OBJ-115)."""
    return f"{group}-{replica_index}"


def service_account(pcs: str) -> str:
    """The ServiceAccount of a set."""
    return pcs


def role(pcs: str) -> str:
    """The Role of a set, and its RoleBinding."""
    return f"grove.io:pcs:{pcs}"


def legacy_secret(pcs: str) -> str:
    """The name of the token Secret before v0.1.0-alpha.12."""
    return f"{pcs}-initc-sa-token-secret"


def shared_claim(owner: str, template: str) -> str:
    """The ResourceClaim that all replicas of an owner share; the owner is a set, a scaling group or a clique."""
    return f"{owner}-all-{template}"


def replica_claim(owner: str, index: int | str, template: str) -> str:
    """The ResourceClaim of one replica of an owner."""
    return f"{owner}-{index}-{template}"


def compute_domain(pcs: str, index: int | str, group: str) -> str:
    """The ComputeDomain of a group in a replica of a set, and its ResourceClaimTemplate."""
    return f"{pcs}-{index}-{group}"
