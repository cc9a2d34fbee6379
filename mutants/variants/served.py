"""Variants of the served CRDs with permitted additions."""

from __future__ import annotations

from mutants.profiles.admission_served_kinds import spoil
from mutants.registry import variant

_COLUMNS = "/spec/versions/0/additionalPrinterColumns"
_BINDING_KEY = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/levels/items/properties/key"


@variant("operator", "serves gangs with an additional short name", "CRD-001")
def _another_short_name() -> None:
    spoil("podgangs.scheduler.grove.io", {"op": "add", "path": "/spec/names/shortNames/-", "value": "gang"})


@variant("operator", "serves an additional column of sets", "CRD-002")
def _another_column() -> None:
    column = {"name": "Strategy", "type": "string", "jsonPath": ".spec.updateStrategy.type"}
    spoil("podcliquesets.grove.io", {"op": "add", "path": f"{_COLUMNS}/1", "value": column})


@variant("operator", "serves the columns of sets in another order", "CRD-002")
def _columns_in_another_order() -> None:
    spoil("podcliquesets.grove.io", {"op": "move", "from": f"{_COLUMNS}/0", "path": f"{_COLUMNS}/1"})


@variant("operator", "accepts topology keys as long as label keys", "CRD-003", "ADM-034")
def _longer_topology_keys() -> None:
    longest = len("p" * 253 + "/" + "n" * 63)
    change = {"op": "replace", "path": f"{_BINDING_KEY}/maxLength", "value": longest}
    spoil("clustertopologybindings.grove.io", change)
