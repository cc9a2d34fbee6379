"""The tables of docs/trust.md: how many mutants and variants each profile has, and what each variant does."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from conformance import data
from conformance.suite.registry import requirement
from mutants.registry import MUTANTS, VARIANTS

TRUST = data.PROJECT / "docs" / "trust.md"
BLOCK = re.compile(r"(?<=<!-- made by `make docs`: -->\n).*?(?=<!-- end -->)", re.DOTALL)


def text() -> str:
    """Return docs/trust.md as it should be."""
    return BLOCK.sub(lambda _: "\n".join(["", *_counts(), "", *_variants(), "", ""]), TRUST.read_text("utf-8"))


def _counts() -> list[str]:
    registry = requirement.load()
    of = {id: entry.profile for id, entry in registry.requirements.items()}
    mutants = Counter(profile for mutant in MUTANTS.all().values() for profile in _profiles(of, mutant.caught_by))
    variants = Counter(profile for variant in VARIANTS.all().values() for profile in _profiles(of, variant.passes))
    sizes = Counter(of.values())
    rows = [f"| {name} | {sizes[name]} | {mutants[name]} | {variants[name]} |" for name in registry.profiles]
    total = f"| all | {len(of)} | {len(MUTANTS.all())} | {len(VARIANTS.all())} |"
    return ["| profile | requirements | mutants caught | variants let through |", "|---|---|---|---|", *rows, total]


def _profiles(of: dict[str, str], ids: Iterable[str]) -> set[str]:
    return {of[id] for id in ids}


def _variants() -> list[str]:
    rows = [
        f"| {variant.name} | {variant.text} | {', '.join(variant.passes)} |"
        for variant in sorted(VARIANTS.all().values(), key=lambda variant: (variant.passes, variant.name))
    ]
    return ["| variant | it … | and passes |", "|---|---|---|", *rows]
