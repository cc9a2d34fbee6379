"""Mutants whose webhooks behave correctly only in dry runs, which tests of webhooks usually send."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from mutants.registry import mutant
from mutants.replacement import Original, around
from reference_impl.admission.result import AdmissionResult
from reference_impl.admission.server import Hooks


@mutant("operator", "refuses wrong sets in dry runs alone", "ADM-004", "ADM-037")
@around(Hooks, "_validate_set")
async def _refuses_dry_runs_only(original: Original, hooks: Hooks, request: Mapping[str, Any]) -> AdmissionResult:
    return await original(hooks, request) if request.get("dryRun") else AdmissionResult()


@mutant("operator", "defaults the termination delay right in dry runs alone", "ADM-037")
@around(Hooks, "_default")
async def _other_defaults_in_dry_runs(original: Original, hooks: Hooks, request: Mapping[str, Any]) -> AdmissionResult:
    result = await original(hooks, request)
    if request.get("dryRun"):
        return result
    operations = [{**op, "value": "1h0m0s"} if op["path"].endswith("Delay") else op for op in result.patch]
    return dataclasses.replace(result, patch=operations)
