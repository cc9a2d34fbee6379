"""What an operator can be told not to do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Features:
    """`topology`: constraints reach the gangs (OBJ-455). `mnnvl`: ComputeDomains are made for cliques with GPUs
    (OBJ-840)."""

    topology: bool = False
    mnnvl: bool = False


NO_FEATURES = Features()
