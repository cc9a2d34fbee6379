"""The compatibility window (spec HASH-145 to HASH-155): stored hashes that are those of a present template, whoever has
written them and however, and what is written instead of them.

What is recognised is a hash of the template as it is now: one of an earlier content is recognised by no scheme.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from reference_impl.plan.hashing import schemes
from reference_impl.plan.hashing.schemes import CANONICAL, SCHEMES, Scheme, Template


@dataclass(frozen=True)
class Policy:
    """Which hashes an operator writes, and which others it takes for current."""

    written: Scheme = CANONICAL
    recognised: tuple[Scheme, ...] = tuple(SCHEMES.values())


_MOST_KEPT = 64
"""Hashes of earlier orders of one content that are still recognised."""


class Known:
    """The hashes of one thing: the one that is written, and others by the scheme that gave them. Those are computed
    when a stored hash is seen that is not the one that is written, which in a quiet life is never."""

    def __init__(self, written: str, others: Callable[[], dict[str, Scheme]]) -> None:
        self.written, self._others = written, others
        self._kept: dict[str, Scheme] = {}
        self.migrating = False
        """Whether a foreign hash has been seen."""

    @cached_property
    def others(self) -> dict[str, Scheme]:
        found = self._others()
        found.pop(self.written, None)
        return found

    def __contains__(self, stored: object) -> bool:
        """Whether a stored hash is one of the present content."""
        return stored == self.written or (isinstance(stored, str) and self.foreign(stored) is not None)

    def foreign(self, stored: str | None) -> Scheme | None:
        """The scheme of a stored hash that is current, and not the one that is written."""
        if not stored or stored == self.written:
            return None
        found = self.others.get(stored) or self._kept.get(stored)
        self.migrating = self.migrating or found is not None
        return found

    def keep(self, earlier: Known) -> None:
        """Takes over what was recognised before, if nothing but an order without meaning has changed since."""
        if earlier.written == self.written:
            kept = earlier._kept | earlier.others
            self._kept = dict(list(kept.items())[-_MOST_KEPT:])
            self.migrating = self.migrating or earlier.migrating


@dataclass(frozen=True)
class Window:
    """The hashes of a set: of each clique's template by its name, and the generation hash."""

    generation: Known
    templates: dict[str, Known]

    @property
    def migrating(self) -> bool:
        """Whether foreign hashes have been seen."""
        return self.generation.migrating or any(known.migrating for known in self.templates.values())

    def keep(self, earlier: Window) -> None:
        """Takes over what an earlier window of the set has recognised: a reorder in the middle of a migration rolls
        nothing (HASH-156 done right)."""
        if not earlier.migrating:
            return
        self.generation.keep(earlier.generation)
        for name, known in self.templates.items():
            if name in earlier.templates:
                known.keep(earlier.templates[name])


def of_template(template: Template, policy: Policy) -> Known:
    """The hashes of one template."""
    return Known(
        schemes.of_template(template, policy.written),
        lambda: {schemes.of_template(template, scheme): scheme for scheme in _candidates([template], policy)},
    )


def of_set(templates: Sequence[Template], policy: Policy, *, in_order: bool) -> Known:
    """The generation hashes of a set with these templates."""

    def by(scheme: Scheme) -> str:
        return schemes.of_set(templates, scheme, in_order=in_order)

    return Known(by(policy.written), lambda: {by(scheme): scheme for scheme in _candidates(templates, policy)})


def _candidates(templates: Sequence[Template], policy: Policy) -> list[Scheme]:
    """The recognised schemes that see all of the templates, the oldest last, so that it names what several give. One
    that leaves a field out would take a template for current in which just that has changed."""
    return [
        scheme
        for scheme in reversed(policy.recognised)
        if scheme != policy.written and all(schemes.knows(template, scheme) for template in templates)
    ]
