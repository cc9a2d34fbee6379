"""Variants for sets in which two objects would have the same name: such sets are rejected, or accepted and reported."""

from __future__ import annotations

import re
from typing import Any

from mutants.profiles.resources_names import accept_collisions
from mutants.registry import variant
from mutants.replacement import Original, around
from reference_impl.admission.result import AdmissionResult
from reference_impl.admission.server import Hooks

_GANG_OF_ANOTHER = re.compile(r"(?P<set>.+)-(?:0|[1-9]\d*)-(?P<group>.+)")


@variant("operator", "accepts sets with two objects of one name", "RES-052", "RES-054")
def _collisions_reported() -> None:
    accept_collisions()


@variant("operator", "rejects sets whose gangs would have names of another set's gangs", "RES-051")
@around(Hooks, "_validate_set")
async def _foreign_gang_refused(original: Original, self: Hooks, request: Any) -> AdmissionResult:
    metadata = (request.get("object") or {}).get("metadata") or {}
    match = _GANG_OF_ANOTHER.fullmatch(str(metadata.get("name", "")))
    if match is not None and request.get("operation") == "CREATE":
        other = await self._cluster.pod_clique_set(metadata.get("namespace", ""), match["set"]) or {}
        template = other.get("spec", {}).get("template", {})
        if match["group"] in [group["name"] for group in template.get("podCliqueScalingGroups", ())]:
            return AdmissionResult(refusal=f"PodGangs of PodCliqueSet {match['set']} have these names")
    return await original(self, request)
