"""The tables in docs/trust.md: the numbers of mutants and variants of each profile, and the effect of each variant."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from conformance import data
from conformance.suite.registry import requirement
from mutants.registry import MUTANTS, VARIANTS

TRUST_PAGE = data.PROJECT / "docs" / "trust.md"
BLOCK = re.compile(r"(?<=<!-- made by `make docs`: -->\n).*?(?=<!-- end -->)", re.DOTALL)


def render_page() -> str:
    """Return docs/trust.md with current tables."""
    return BLOCK.sub(
        lambda _: "\n".join(["", *_count_table(), "", *_variant_table(), "", ""]), TRUST_PAGE.read_text("utf-8")
    )


def _count_table() -> list[str]:
    registry = requirement.load()
    profile_by_id = {id: entry.profile for id, entry in registry.requirements.items()}
    mutant_counts = Counter(
        profile for mutant in MUTANTS.all().values() for profile in _profiles(profile_by_id, mutant.caught_by)
    )
    variant_counts = Counter(
        profile for variant in VARIANTS.all().values() for profile in _profiles(profile_by_id, variant.passes)
    )
    requirement_counts = Counter(profile_by_id.values())
    rows = [
        f"| {name} | {requirement_counts[name]} | {mutant_counts[name]} | {variant_counts[name]} |"
        for name in registry.profiles
    ]
    total_row = f"| all | {len(profile_by_id)} | {len(MUTANTS.all())} | {len(VARIANTS.all())} |"
    return ["| profile | requirements | mutants caught | variants let through |", "|---|---|---|---|", *rows, total_row]


def _profiles(profile_by_id: dict[str, str], ids: Iterable[str]) -> set[str]:
    return {profile_by_id[id] for id in ids}


def _variant_table() -> list[str]:
    rows = [
        f"| {variant.name} | {variant.text} | {', '.join(variant.passes)} |"
        for variant in sorted(VARIANTS.all().values(), key=lambda variant: (variant.passes, variant.name))
    ]
    return ["| variant | it … | and passes |", "|---|---|---|", *rows]
