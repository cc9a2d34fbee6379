"""Deliberate, named wrong behaviours that the suite must catch.

A fault replaces a pure function of `plan/` or `scheduler/` in the running process, so that the right code knows
nothing of it. `--fault NAME` of the operator or the scheduler arms it.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, Protocol

Role = Literal["operator", "gang-scheduler"]
_MODULES = (
    "operator_faults",
    "status_faults",
    "resource_faults",
    "name_faults",
    "startup_faults",
    "admission_faults",
    "stored_set_faults",
    "scheduler_faults",
    "operations_faults",
    "object_faults",
    "served_faults",
    "scaling_faults",
    "termination_faults",
    "placement_faults",
    "node_faults",
    "lifecycle_faults",
    "gang_faults",
    "hash_faults",
    "notation_faults",
    "upgrade_faults",
    "update_faults",
    "changed_faults",
)


@dataclass(frozen=True)
class Fault:
    """A wrong behaviour: which process has it, in one sentence what it does, and which requirements must fail of it.
    Those that it `blocks` are judged in part before a test ends early, and must not pass."""

    name: str
    role: Role
    text: str
    caught_by: tuple[str, ...]
    apply: Callable[[], None]
    blocks: tuple[str, ...] = ()


class UnknownNameError(Exception):
    """There is no fault, or no variant, of this name."""


class Switch(Protocol):
    """A deliberate difference of one process from the reference as it is: a fault or a variant."""

    @property
    def role(self) -> Role: ...
    @property
    def apply(self) -> Callable[[], None]: ...


_faults: dict[str, Fault] = {}


def fault(
    name: str, role: Role, text: str, *caught_by: str, blocks: tuple[str, ...] = ()
) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Registers a function that, called once at start, makes the process wrong. `caught_by` and `blocks` are
    requirement ids (see `Fault`)."""

    def register(apply: Callable[[], None]) -> Callable[[], None]:
        assert name not in _faults, name
        _faults[name] = Fault(name, role, text, caught_by, apply, blocks)
        return apply

    return register


def replace(target: Any, name: str, wrong: Any) -> None:
    """Puts `wrong` in the place of a function or method. AttributeError where there is none of that name, TypeError
    where it can't be called as the right one: so a fault neither comes to nothing nor turns into a crash, which any
    check would see, when the code moves."""
    right = getattr(target, name)
    called = wrong.__get__(None, target) if isinstance(wrong, classmethod | staticmethod) else wrong
    if inspect.isroutine(right) and inspect.isroutine(called):
        wanted = inspect.signature(right).parameters.values()
        positional = [p.name for p in wanted if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        inspect.signature(called).bind(*positional, **{p.name: None for p in wanted if p.kind == p.KEYWORD_ONLY})
    setattr(target, name, wrong)


def registry() -> dict[str, Fault]:
    """All faults by name."""
    for module in _MODULES:
        import_module(f"reference_impl.faults.{module}")
    return dict(_faults)


def arm(names: Iterable[str], role: Role) -> None:
    """Makes this process wrong. Faults of the other role are left alone, so that one switch serves both processes."""
    if wanted := list(names):
        apply_named(registry(), wanted, role, "fault")


def apply_named(known: Mapping[str, Switch], names: Iterable[str], role: Role, word: str) -> None:
    """Apply the named switches of this role. `word` says in an error what they are."""
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            raise UnknownNameError(f"no {word} {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        if known[name].role == role:
            known[name].apply()
