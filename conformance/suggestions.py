"""Hints for names and files that do not exist: the name that was probably meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from pathlib import Path

MAX_LISTED, MAX_EXAMPLES = 40, 5
"""A hint for more than `MAX_LISTED` known names lists at most `MAX_EXAMPLES` of them."""
MIN_PREFIX = 3
"""Minimum length of a prefix that is taken for a longer name."""


def suggestion(name: str, known_names: Iterable[str]) -> str:
    """Return a hint for an unknown name: `did you mean "argv"?`, or the list of known names; if there are many, only
    some of them."""
    names = sorted(known_names)
    if nearest_name := find_nearest(name, names):
        return f'did you mean "{nearest_name}"?'
    if len(names) <= MAX_LISTED:
        return f"known: {', '.join(names)}" if names else "none is allowed here"
    examples = names[:: len(names) // MAX_EXAMPLES][:MAX_EXAMPLES]
    return f"known are {len(names)}, among them {', '.join(examples)}"


def find_nearest(name: str, known_names: Iterable[str]) -> str:
    """Return the name that was probably meant; empty if none is similar. In this order: a name that differs only in
    case or in leading zeros; the shortest name with this prefix; the most similar name, preferably in the same folder
    if names are paths."""
    names = sorted(known_names)
    if equal_names := [candidate for candidate in names if _plain(candidate) == _plain(name)]:
        return equal_names[0]
    with_prefix = [candidate for candidate in names if candidate.casefold().startswith(name.casefold())]
    if with_prefix and len(name) >= MIN_PREFIX:
        return min(with_prefix, key=len)
    folder = name[: name.rfind("/") + 1]
    for candidates in ([candidate for candidate in names if candidate.startswith(folder)], names):
        if close_matches := difflib.get_close_matches(name, candidates, n=1, cutoff=0.6):
            return close_matches[0]
    return ""


def explain_missing(path: Path) -> tuple[str, str]:
    """Return what is wrong with the path of a file that does not exist (which file or folder is missing), and a hint
    with the sibling that was probably meant. The hint is empty if nothing is similar."""
    missing = path
    while not missing.parent.exists():
        missing = missing.parent
    problem = "no such file" if missing == path else f"no such folder: {missing}"
    if not missing.parent.is_dir():
        return f"{missing.parent} is no folder", ""
    try:
        siblings = [entry.name for entry in missing.parent.iterdir() if missing == path or entry.is_dir()]
    except OSError:
        return problem, ""
    nearest_name = find_nearest(missing.name, siblings)
    return problem, f'did you mean "{missing.with_name(nearest_name)}"?' if nearest_name else ""


def explain_unreadable(path: Path, error: OSError) -> tuple[str, str]:
    """Return the reason why a file cannot be read, and a hint, which may be empty."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return explain_missing(path)
    return f"cannot be read: {error.strerror}", ""


def _plain(name: str) -> str:
    return re.sub(r"0*(\d+)", r"\1", name.casefold())
