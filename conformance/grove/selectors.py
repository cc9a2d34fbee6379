"""Label selectors as text, as the status of a scale subresource contains them."""

from __future__ import annotations

import re

_TERM = re.compile(r"[^,(]+(?:\([^)]*\))?")
_EQUAL = re.compile(r"\s*([^\s=!]+)\s*==?\s*([^\s=]*)\s*")
_ONE_OF = re.compile(r"\s*(\S+)\s+in\s*\(\s*([^\s,)]*)\s*\)\s*")


def normal(selector: str) -> str:
    """Return a selector in canonical form: terms sorted and unique, equality as `key=value`."""
    return ",".join(sorted({_term(term) for term in _TERM.findall(selector)}))


def _term(term: str) -> str:
    found = _EQUAL.fullmatch(term) or _ONE_OF.fullmatch(term)
    return f"{found[1]}={found[2]}" if found else " ".join(term.split())
