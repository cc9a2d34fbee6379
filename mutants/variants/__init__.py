"""Deliberate, named differences that the contract permits: the suite MUST judge each of them conformant.

A variant replaces code of the running process, as a fault does (`reference_impl.faults`), but what it does instead is
right, too. It guards the suite against accusing other implementations. `--variant NAME` of the operator or the
scheduler arms it; `python -m reference_impl.faults.prove --variant NAME` proves that its requirements pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module

from reference_impl import faults
from reference_impl.faults import Role

_MODULES = ("admission", "names", "paced", "pods", "served", "statuses", "updated")


@dataclass(frozen=True)
class Variant:
    """A permitted difference: which process has it, what it does, and which requirements must pass in spite of it."""

    name: str
    role: Role
    text: str
    passes: tuple[str, ...]
    apply: Callable[[], None]
    time_scale: float | None
    """Time scale of its proof, if the one of `make mutants` is too short for what it does."""


_variants: dict[str, Variant] = {}


def variant(
    name: str, role: Role, text: str, *passes: str, time_scale: float | None = None
) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Register a function that, called once at start, makes the process differ. `passes` are the requirements that
    an overstrict check would fail."""

    def register(apply: Callable[[], None]) -> Callable[[], None]:
        assert name not in _variants, name
        _variants[name] = Variant(name, role, text, passes, apply, time_scale)
        return apply

    return register


def registry() -> dict[str, Variant]:
    """Return all variants by name."""
    for module in _MODULES:
        import_module(f"reference_impl.variants.{module}")
    return dict(_variants)


def arm(names: Iterable[str], role: Role) -> None:
    """Make this process differ. Variants of the other role are left alone."""
    if wanted := list(names):
        faults.apply_named(registry(), wanted, role, "variant")
