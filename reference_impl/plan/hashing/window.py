"""The compatibility window (spec HASH-145 to HASH-155): which stored hashes count as hashes of the current template,
regardless of the scheme in which they were written, and which hash replaces them.

Only hashes of the current template are recognized, never hashes of earlier contents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from reference_impl.plan.hashing import schemes
from reference_impl.plan.hashing.schemes import CANONICAL, SCHEMES, Scheme, Template


@dataclass(frozen=True)
class Policy:
    """The scheme in which an operator writes hashes, and the schemes that it recognizes."""

    written: Scheme = CANONICAL
    recognised: tuple[Scheme, ...] = tuple(SCHEMES.values())


STANDARD = Policy()
"""The policy that applies without configuration."""

_MAX_RECOGNISED = 64
"""Maximum number of hashes of earlier orders of the same content that are still recognized."""


class CurrentHashes:
    """The hashes of one template or set: the hash that the operator writes, and the hashes that other schemes give for
    the same content, each with its scheme. The latter are computed only when an object carries a hash other than the
    one that the operator would write, which is rare."""

    def __init__(self, written: str, compute_foreign: Callable[[], dict[str, Scheme]]) -> None:
        self.written, self._compute_foreign = written, compute_foreign
        self._recognised: dict[str, Scheme] = {}
        self.migrating = False
        """Whether a hash of another scheme has been observed."""

    @cached_property
    def foreign_hashes(self) -> dict[str, Scheme]:
        """The hashes of the current content in other schemes, with their scheme."""
        hashes = self._compute_foreign()
        hashes.pop(self.written, None)
        return hashes

    def __contains__(self, stored: object) -> bool:
        """Return whether a stored hash is a hash of the current content."""
        return stored == self.written or (isinstance(stored, str) and self.foreign_scheme(stored) is not None)

    def foreign_scheme(self, stored: str | None) -> Scheme | None:
        """Return the scheme of a stored hash that is current but not the written one; None for any other hash."""
        if not stored or stored == self.written:
            return None
        scheme = self.foreign_hashes.get(stored) or self._recognised.get(stored)
        self.migrating = self.migrating or scheme is not None
        return scheme

    def keep_recognizing(self, earlier: CurrentHashes) -> None:
        """Keep recognizing the hashes that `earlier` recognized, if only an insignificant order has changed since."""
        if earlier.written == self.written:
            recognised = earlier._recognised | earlier.foreign_hashes
            self._recognised = dict(list(recognised.items())[-_MAX_RECOGNISED:])
            self.migrating = self.migrating or earlier.migrating


@dataclass(frozen=True)
class Window:
    """The hashes of a set: its generation hashes, and the hashes of each clique template by name."""

    generation: CurrentHashes
    templates: dict[str, CurrentHashes]

    @property
    def migrating(self) -> bool:
        """Whether hashes of other schemes have been observed."""
        return self.generation.migrating or any(
            template_hashes.migrating for template_hashes in self.templates.values()
        )

    def keep_recognizing(self, earlier: Window) -> None:
        """Keep recognizing the hashes that an earlier window of the set recognized, so that a reordering in the middle
        of a migration does not cause an update (HASH-156)."""
        if not earlier.migrating:
            return
        self.generation.keep_recognizing(earlier.generation)
        for name, template_hashes in self.templates.items():
            if name in earlier.templates:
                template_hashes.keep_recognizing(earlier.templates[name])


def compute_template_hashes(template: Template, policy: Policy) -> CurrentHashes:
    """Return the hashes of one template."""
    return CurrentHashes(
        schemes.template_hash(template, policy.written),
        lambda: {schemes.template_hash(template, scheme): scheme for scheme in _candidates([template], policy)},
    )


def compute_generation_hashes(templates: Sequence[Template], policy: Policy, *, in_order: bool) -> CurrentHashes:
    """Return the generation hashes of a set with these templates."""

    def by(scheme: Scheme) -> str:
        return schemes.generation_hash(templates, scheme, in_order=in_order)

    return CurrentHashes(by(policy.written), lambda: {by(scheme): scheme for scheme in _candidates(templates, policy)})


def _candidates(templates: Sequence[Template], policy: Policy) -> list[Scheme]:
    """Return the recognized schemes that cover every set field of the templates. The oldest scheme comes last, so that
    it is reported for a hash that several schemes yield. A scheme that ignores a field would miss changes to that
    field."""
    return [
        scheme
        for scheme in reversed(policy.recognised)
        if scheme != policy.written and all(schemes.covers(template, scheme) for template in templates)
    ]
