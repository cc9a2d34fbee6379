"""Values in Markdown, and the parts of a page that are made while people write the rest."""

from __future__ import annotations

import re

from conformance.report.terminal import clean


def code(value: str) -> str:
    """Return text as a code span of a Markdown table, in which nothing is markup."""
    if not value:
        return ""
    plain = " ".join(clean(value).split()).replace("|", "\\|")
    fence = "`" * (max((len(run) for run in _ticks(plain)), default=0) + 1)
    return f"{fence} {plain} {fence}" if "`" in plain else f"{fence}{plain}{fence}"


def cell(value: str) -> str:
    """Return a text of this project as a table cell."""
    return " ".join(value.split()).replace("|", "\\|").replace("<", "&lt;")


def between(page: str, name: str, part: str) -> str:
    """Return a page with a part in place of what is between `<!-- NAME -->` and the next `<!-- end -->`."""
    pattern = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(\n<!-- end -->)", re.S)
    return pattern.sub(lambda match: f"{match[1]}\n{part}\n{match[2]}", page)


def _ticks(value: str) -> list[str]:
    return [run for run in "".join(c if c == "`" else " " for c in value).split() if run]
