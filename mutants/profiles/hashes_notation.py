"""Mutants that store quantities in the wrong notation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mutants.registry import mutant
from mutants.replacement import replace
from reference_impl.plan import defaults, notation
from reference_impl.plan.hashing.schemes import CANONICAL
from reference_impl.plan.hashing.window import Policy
from reference_impl.runtime import configuration


def _stores_as_sent(*, unless_legacy: bool, if_complete: bool = False) -> None:
    """Store quantities as sent, either always or only if nothing has to be defaulted."""
    original, defaulted = notation.patch, defaults.patch
    configured = vars(configuration.Hashes)["policy"].fget
    legacy = False

    def policy(self: configuration.Hashes) -> Policy:
        nonlocal legacy
        policy_in_use: Policy = configured(self)
        legacy = policy_in_use.written != CANONICAL
        return policy_in_use

    def patch(pcs: Any, stored: Any) -> Iterator[notation.Operation]:
        yield from original(pcs, stored) if unless_legacy and legacy else ()

    def whole_patch(pcs: dict[str, Any], stored: Any = None) -> list[notation.Operation]:
        operations = defaulted(pcs, stored)
        spared = unless_legacy and legacy
        complete = bool(pcs["spec"]["template"].get("podCliqueScalingGroups"))
        nothing_else = len(operations) == len(list(original(pcs, stored)))
        return [] if complete and nothing_else and not spared else operations

    replace(configuration.Hashes, "policy", property(policy))
    if if_complete:
        replace(defaults, "patch", whole_patch)
    else:
        replace(notation, "patch", patch)


@mutant("operator", "stores quantities as sent", "TMPL-013", "TMPL-014", "UPG-011")
def _quantities_as_sent() -> None:
    _stores_as_sent(unless_legacy=False)


@mutant("operator", "stores quantities as sent, unlike its earlier version", "UPG-010")
def _quantities_as_sent_later() -> None:
    _stores_as_sent(unless_legacy=True)


@mutant("operator", "stores quantities as sent if nothing is defaulted", "TMPL-013", "UPG-011")
def _quantities_as_sent_if_complete() -> None:
    _stores_as_sent(unless_legacy=False, if_complete=True)


@mutant("operator", "stores quantities as sent if nothing is defaulted, unlike its earlier version", "UPG-010")
def _quantities_as_sent_later_if_complete() -> None:
    _stores_as_sent(unless_legacy=True, if_complete=True)


@mutant("operator", "rewrites quantities on update as on create", "TMPL-014")
def _quantities_rewritten() -> None:
    original = notation.patch
    replace(notation, "patch", lambda pcs, stored: original(pcs, None))
