"""`SHA256SUMS` of a run: the digests of all its files but the report, in the format of `sha256sum`.

The report has the digest of this file and is written last. So a file that was exchanged, removed or added later is
noticed, be it evidence or what people read in place of the report. No link is followed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from conformance import bounded, regular
from conformance.report.reading import NAME

FILE = "SHA256SUMS"
FOLDERS = ("bundles", "ledger", "logs")
"""The folders of a run that are evidence."""
OF_OTHERS = ("allure/history/", "allure/executor.json")
"""Files that CI systems put beside the results for Allure."""
LONGEST = 1 << 30
"""Bytes of a file that is covered. A longer one may consist of a hole: it costs nothing to make, and hours to read."""
MOST_NAMES = 20
"""Names that one line has."""
_PIECE = 1 << 20
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r"}


class Compared(NamedTuple):
    """`problems`: a line for each file that is not what was listed. `compared`: the number of files that were.
    `unchecked`: what was not, a line for each reason. `special`: what is no regular file, or cannot be read."""

    problems: list[str]
    compared: int
    unchecked: list[str]
    special: list[str]


def listed(folder: Path) -> str:
    """Return the digest and path of each regular file of a run but the report, sorted by path."""
    names = {path.name for path in folder.iterdir()} - {FILE, NAME}
    sums = {_escaped(name): _sum(folder, name) for name, plain in _entries(folder, names) if plain}
    return "".join(f"{sums[name]}  {name}\n" for name in sorted(sums) if sums[name])


def digest(text: str) -> str:
    """Return the digest of the list, as the report has it."""
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def compare(folder: Path, expected: str, report: str = NAME) -> Compared:
    """Compare the folder of a report with the list in it. `expected`: the digest of the list; empty if the report has
    none. `report`: the name of the report. Raises UsageError if the list cannot be read."""
    path, here = folder / FILE, {path.name for path in folder.iterdir()} - {FILE, report}
    if expected and path.is_file():
        text = bounded.content(path, bounded.MANIFESTS, str(path)).decode("utf-8", "surrogateescape")
        if digest(text) == expected:
            return _compared(folder, here, _by_path(text))
        problem, reason = f"{FILE} is not the list of the report", ""
    elif expected and here.intersection(FOLDERS):
        problem, reason = f"{FILE} is missing", ""
    else:
        problem, reason = "", "it does not lie beside the report" if expected else "the report does not have its digest"
    special = [name for name, plain in _entries(folder, here.intersection(FOLDERS)) if not plain]
    unchecked = [f"evidence: {reason}"] if reason else []
    unchecked += _named("files that no list covers", here)
    return Compared([problem] if problem else [], 0, unchecked, special)


def _compared(folder: Path, here: Collection[str], then: Mapping[str, str]) -> Compared:
    """Compare a folder with its list, `then`: path → digest. `here`: what the folder contains at its top. Of that,
    something of the list that was not passed on, or something else that was put there, is no problem."""
    tops = {_top(name) for name in then}.union(FOLDERS)
    entries = dict(_entries(folder, tops.intersection(here)))
    special = [name for name, plain in entries.items() if not plain]
    now = {_escaped(name): name for name, plain in entries.items() if plain}
    foreign = {name for name in now.keys() - then.keys() if _is_of_others(folder / now[name], name)}
    problems = []
    for name in sorted(then.keys() | now.keys()):
        if name not in now:
            problems += [f"{name} is missing"] if _top(name) in here else []
        elif name not in then:
            problems += [f"{name} was added"] if name not in foreign else []
        elif _sum(folder, now[name]) != then[name]:
            problems.append(f"{name} was changed")
    unchecked = [
        *_named("what was not passed on with the report", {_top(name) for name in then}.difference(here)),
        *_named(f"files that {FILE} does not cover", foreign.union(here) - tops),
        *_named("links and other things that are no files", special),
    ]
    return Compared(problems, len(then.keys() & now.keys()), unchecked, special)


def _is_of_others(path: Path, name: str) -> bool:
    """Return whether a file in a folder of a run need not be in the list."""
    return name.startswith(OF_OTHERS) or path.lstat().st_size > LONGEST


def _entries(folder: Path, names: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Yield the path of each entry at or below some entries of a folder, but of folders themselves, and whether it is a
    regular file."""
    pending = list(names)
    while pending:
        name = pending.pop()
        path = folder / name
        try:
            if path.is_dir() and not path.is_symlink():
                pending += (f"{name}/{inner.name}" for inner in path.iterdir())
            else:
                yield name, path.is_file() and not path.is_symlink()
        except OSError:  # it cannot be read, or its path is too long
            yield name, False


def _sum(folder: Path, name: str) -> str:
    """Return the digest of a file as a line has it; empty if it cannot be read: a program that is judged can reach
    it."""
    checksum, at = hashlib.sha256(), 0
    try:
        file = regular.OpenFile(folder / name)
        if file.size > LONGEST:
            return ""
        while piece := file.at(at, _PIECE):
            checksum.update(piece)
            at += len(piece)
    except OSError:
        return ""
    return ("\\" if _escaped(name) != name else "") + checksum.hexdigest()


def _named(label: str, names: Collection[str]) -> list[str]:
    """Return a line that names files; none if there are none."""
    rest = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return [f"{label}: {', '.join(sorted(names)[:MOST_NAMES])}{rest}"] if names else []


def _top(name: str) -> str:
    return name.partition("/")[0]


def _escaped(name: str) -> str:
    return "".join(_ESCAPES.get(character, character) for character in name)


def _by_path(text: str) -> dict[str, str]:
    return {name: sum for sum, _, name in (line.partition("  ") for line in text.split("\n") if line)}
