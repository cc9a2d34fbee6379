"""Mutants and variants by name.

Both replace code of the running process (`mutants.replacement`), so the correct code does not mention them. The options
`--mutant NAME` and `--variant NAME` of the operator and the scheduler arm them; `grove-reference mutants` and
`grove-reference variants` list them.
"""

from __future__ import annotations

import difflib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, TypeVar

from mutants.replacement import noted_as
from reference_impl.extensions import Role, UnknownNameError

Apply = Callable[[], None]


@dataclass(frozen=True)
class Switch:
    """A deliberate difference of one process from the unchanged reference: a mutant or a variant."""

    name: str
    role: Role
    text: str
    """A description of the behavior of the process, in one sentence without a subject."""
    apply: Apply
    """A function that is called once at process start and replaces code of the process."""


@dataclass(frozen=True)
class Mutant(Switch):
    """A wrong behavior, and the requirements that must fail because of it."""

    caught_by: tuple[str, ...]
    blocks: tuple[str, ...] = ()
    """Requirements that are judged only in part because a test ends early, and so must not pass."""


@dataclass(frozen=True)
class Variant(Switch):
    """A permitted difference, and the requirements that must pass despite it. An overly strict check would fail
    them."""

    passes: tuple[str, ...]
    time_scale: float | None = None
    """The time scale of its proof, if the time scale of mutants is too short for the behavior of the variant."""
    profiles: tuple[str, ...] = ()
    """Profiles that must pass as a whole, in addition to the requirements that the variant names."""
    exempt: tuple[str, ...] = ()
    """Requirements about the deliberate difference, which may fail."""
    conflict: str = ""
    """The reason why the variant cannot be armed together with all other variants, or an empty string if it can."""


CHANGES = "changes"
"""The value of `Fragile.scenario` for mutants that only changes to a set reveal."""


@dataclass(frozen=True)
class Fragile(Switch):
    """A mutant that misbehaves only when something fails, and the plan with which `nemesis` finds it.

    If the scenario is CHANGES, the behavior depends on earlier desired states, and `nemesis change` finds the mutant.
    """

    scenario: str
    faults: tuple[str, ...]
    at: str = ""
    """A part of the text of the points at which the mutant is found, or an empty string for all points."""


AnySwitch = TypeVar("AnySwitch", bound=Switch)


class Catalog(Generic[AnySwitch]):
    """The switches that the modules of a package register. A catalog is an extension of the reference."""

    def __init__(self, word: str, package: str, neighbor: Catalog[Any] | None = None) -> None:
        """`neighbor` is another catalog whose switches can also be armed by name."""
        self.word, self._package, self._neighbor = word, package, neighbor
        self._switches: dict[str, AnySwitch] = {}

    def add(self, switch: AnySwitch) -> None:
        """Register a switch. Its name must not be in use."""
        assert switch.name not in self._switches, switch.name
        self._switches[switch.name] = switch

    def all(self) -> dict[str, AnySwitch]:
        """Import the modules that register switches, and return all switches by name."""
        for module in pkgutil.iter_modules(import_module(self._package).__path__):
            import_module(f"{self._package}.{module.name}")
        return dict(self._switches)

    def named(self, names: Iterable[str]) -> list[AnySwitch]:
        """Return the switches with these names. Raises UnknownNameError if there is no switch with one of the names."""
        switches = self.all() | (self._neighbor.all() if self._neighbor else {})
        for name in names:
            if name not in switches:
                near = difflib.get_close_matches(name, switches, 1)
                raise UnknownNameError(f"no {self.word} {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        return [switches[name] for name in names]

    def arm(self, names: Iterable[str], role: Role) -> None:
        """Apply the named switches of this role. Switches of the other role are ignored, because one option serves both
        roles."""
        for switch in self.named(list(names)):
            if switch.role == role:
                with noted_as(switch.name):
                    switch.apply()

    def listed(self) -> Iterator[tuple[str, str, str]]:
        """Yield name, role and text of each switch."""
        for switch in self.all().values():
            yield switch.name, switch.role, switch.text
        if self._neighbor is not None:
            yield from self._neighbor.listed()


FRAGILE = Catalog[Fragile]("mutant", "mutants.fragile")
MUTANTS = Catalog[Mutant]("mutant", "mutants.profiles", neighbor=FRAGILE)
VARIANTS = Catalog[Variant]("variant", "mutants.variants")


def caught() -> dict[str, list[str]]:
    """Return requirement → names of the mutants that it catches. `grove-conformance explain` shows them."""
    return _by_requirement((switch.name, switch.caught_by) for switch in MUTANTS.all().values())


def permitted() -> dict[str, list[str]]:
    """Return requirement → names of the variants that must pass it. `grove-conformance explain` shows them."""
    return _by_requirement((switch.name, switch.passes) for switch in VARIANTS.all().values())


def _by_requirement(claims: Iterable[tuple[str, Iterable[str]]]) -> dict[str, list[str]]:
    claimants: dict[str, list[str]] = {}
    for name, ids in claims:
        for id in ids:
            claimants.setdefault(id, []).append(name)
    return claimants


def name_of(apply: Callable[..., Any]) -> str:
    """Return the name of the switch that a function applies: `_gate_misnamed` is gate-misnamed."""
    return apply.__name__.strip("_").replace("_", "-")


def mutant(
    role: Role, text: str, *caught_by: str, blocks: tuple[str, ...] = (), name: str = ""
) -> Callable[[Apply], Apply]:
    """Register the function as a mutant. `caught_by` and `blocks` are requirement ids; see `Mutant` and `name_of`."""

    def register(apply: Apply) -> Apply:
        MUTANTS.add(Mutant(name or name_of(apply), role, text, apply, caught_by, blocks))
        return apply

    return register


def variant(
    role: Role,
    text: str,
    *passes: str,
    time_scale: float | None = None,
    profiles: tuple[str, ...] = (),
    exempt: tuple[str, ...] = (),
    conflict: str = "",
    name: str = "",
) -> Callable[[Apply], Apply]:
    """Register the function as a variant. `passes` and `exempt` are requirement ids; see `Variant` and `name_of`."""

    def register(apply: Apply) -> Apply:
        name_of_variant = name or name_of(apply)
        VARIANTS.add(Variant(name_of_variant, role, text, apply, passes, time_scale, profiles, exempt, conflict))
        return apply

    return register


def fragile(role: Role, text: str, scenario: str, *faults: str, at: str = "") -> Callable[[Apply], Apply]:
    """Register the function as a mutant that misbehaves only when something fails; see `Fragile` and `name_of`."""

    def register(apply: Apply) -> Apply:
        FRAGILE.add(Fragile(name_of(apply), role, text, apply, scenario, faults, at))
        return apply

    return register
