"""Format values in Markdown, and replace the generated parts of hand-written pages."""

from __future__ import annotations

import re

from conformance.report.terminal import clean


def code(value: str) -> str:
    """Return text as a code span for a Markdown table, so that nothing in it is markup."""
    if not value:
        return ""
    one_line = " ".join(clean(value).split()).replace("|", "\\|")
    fence = "`" * (max((len(run) for run in _backtick_runs(one_line)), default=0) + 1)
    return f"{fence} {one_line} {fence}" if "`" in one_line else f"{fence}{one_line}{fence}"


def cell(value: str) -> str:
    """Return a trusted text as a table cell; Markdown in it stays markup."""
    return " ".join(value.split()).replace("|", "\\|").replace("<", "&lt;")


def replace_between(page: str, name: str, part: str) -> str:
    """Return a page in which the text between `<!-- NAME -->` and the next `<!-- end -->` is replaced by `part`."""
    pattern = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(\n<!-- end -->)", re.S)
    return pattern.sub(lambda match: f"{match[1]}\n{part}\n{match[2]}", page)


def _backtick_runs(value: str) -> list[str]:
    return [run for run in "".join(c if c == "`" else " " for c in value).split() if run]
