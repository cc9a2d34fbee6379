"""A variant whose PodGangs have other names than those of the naming scheme, as where gangs come from a map."""

from __future__ import annotations

from mutants.registry import variant
from mutants.replacement import replace
from reference_impl.plan import names

EPOCH = "1795511111"
"""Short enough for names that are as long as admission allows: they become values of labels."""


@variant(
    "gangs-by-epoch",
    "operator",
    "ends the names of gangs in an epoch and the index of their scaling group replica",
    "GANG-002",
    "GANG-009",
    "GANG-021",
    "GANG-022",
    "GANG-023",
    "CORE-002",
    "CORE-003",
    "CORE-033",
    "CORE-004",
    "CORE-022",
    "CORE-025",
    "SCALE-005",
    "SCALE-006",
    "RES-014",
    "RES-020",
    "RES-021",
    "RES-023",
    "RES-024",
    "RES-026",
    "RES-034",
    "RES-051",
    "RES-061",
    "RES-062",
    profiles=("core", "gang", "scaling", "resources", "termination", "lifecycle", "update"),
    exempt=("CORE-032",),
)
def _gangs_by_epoch() -> None:
    def scaled_gang(group: str, replica_index: int, min_available: int) -> str:
        return f"{group}-{EPOCH}-{replica_index}"

    replace(names, "base_gang", lambda pcs, index: f"{pcs}-{index}-{EPOCH}")
    replace(names, "scaled_gang", scaled_gang)
