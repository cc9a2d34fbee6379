"""Mutants of the notation of quantities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mutants.registry import mutant
from mutants.replacement import replace
from reference_impl.plan import defaults, notation
from reference_impl.plan.hashing.schemes import CANONICAL
from reference_impl.plan.hashing.window import Policy
from reference_impl.runtime import configuration


def _stores_as_sent(*, unless_legacy: bool) -> None:
    right, configured = notation.patch, vars(configuration.Hashes)["policy"].fget
    legacy = False

    def policy(self: configuration.Hashes) -> Policy:
        nonlocal legacy
        found: Policy = configured(self)
        legacy = found.written != CANONICAL
        return found

    def patch(pcs: Any, stored: Any) -> Iterator[notation.Operation]:
        yield from right(pcs, stored) if unless_legacy and legacy else ()

    replace(configuration.Hashes, "policy", property(policy))
    replace(notation, "patch", patch)


@mutant("quantities-as-sent", "operator", "stores quantities as sent", "TMPL-013", "TMPL-014", "UPG-011")
def _as_sent() -> None:
    _stores_as_sent(unless_legacy=False)


@mutant("quantities-as-sent-later", "operator", "stores quantities as sent, unlike its earlier version", "UPG-010")
def _as_sent_later() -> None:
    _stores_as_sent(unless_legacy=True)


@mutant("quantities-as-sent-if-complete", "operator", "stores quantities as sent if nothing is defaulted", "TMPL-013")
def _as_sent_if_complete() -> None:
    right = defaults.patch

    def patch(pcs: dict[str, Any], stored: Any = None) -> list[notation.Operation]:
        found = right(pcs, stored)
        grouped = bool(pcs["spec"]["template"].get("podCliqueScalingGroups"))
        return [] if grouped and len(found) == len(list(notation.patch(pcs, stored))) else found

    replace(defaults, "patch", patch)


@mutant("quantities-rewritten", "operator", "rewrites quantities on update as on create", "TMPL-014")
def _rewritten() -> None:
    right = notation.patch
    replace(notation, "patch", lambda pcs, stored: right(pcs, None))
