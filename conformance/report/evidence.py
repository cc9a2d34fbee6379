"""`SHA256SUMS` of a run: the digests of all its files except the report, in the format of `sha256sum`.

The report contains the digest of this file and is written last. A file that is replaced, removed or added later is
therefore detected, whether it is evidence or a rendered form of the report. Links are not followed.
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
CI_FILES = ("allure/history/", "allure/executor.json")
"""Files that CI systems add to the Allure results."""
MAX_BYTES = 1 << 30
"""Maximum size in bytes of a file that is covered. A larger file may be sparse, and would then take no time to create
but hours to read."""
MAX_NAMES = 20
"""Maximum number of names in one line."""
_CHUNK_BYTES = 1 << 20
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r"}


class EvidenceComparison(NamedTuple):
    """The result of a comparison. `problems`: a line for each file that differs from the list. `compared`: the number
    of files in both the list and the folder. `unchecked`: a line for each reason why files were not compared.
    `special`: names of entries that are not regular files or cannot be read."""

    problems: list[str]
    compared: int
    unchecked: list[str]
    special: list[str]


def checksum_list(folder: Path) -> str:
    """Return lines with the digest and path of each regular file of a run except the report, sorted by path."""
    names = {path.name for path in folder.iterdir()} - {FILE, NAME}
    sums = {_escaped(name): _checksum(folder, name) for name, is_regular in _entries(folder, names) if is_regular}
    return "".join(f"{sums[name]}  {name}\n" for name in sorted(sums) if sums[name])


def digest(text: str) -> str:
    """Return the digest of the list, in the form in which the report contains it."""
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def compare(folder: Path, expected: str, report: str = NAME) -> EvidenceComparison:
    """Compare the folder of a report with the list in it. `expected`: the digest of the list from the report; empty if
    the report has none. `report`: the file name of the report. Raises UsageError if the list cannot be read."""
    path, top_names = folder / FILE, {path.name for path in folder.iterdir()} - {FILE, report}
    if expected and path.is_file():
        text = bounded.content(path, bounded.MAX_MANIFEST_BYTES, str(path)).decode("utf-8", "surrogateescape")
        if digest(text) == expected:
            return _compare_with_list(folder, top_names, _by_path(text))
        problem, reason = f"{FILE} is not the list of the report", ""
    elif expected and top_names.intersection(FOLDERS):
        problem, reason = f"{FILE} is missing", ""
    else:
        problem, reason = "", "it does not lie beside the report" if expected else "the report does not have its digest"
    special = [name for name, is_regular in _entries(folder, top_names.intersection(FOLDERS)) if not is_regular]
    unchecked = [f"evidence: {reason}"] if reason else []
    unchecked += _line_of_names("files that no list covers", top_names)
    return EvidenceComparison([problem] if problem else [], 0, unchecked, special)


def _compare_with_list(
    folder: Path, top_names: Collection[str], expected_sums: Mapping[str, str]
) -> EvidenceComparison:
    """Compare a folder with its list. `expected_sums`: path → digest; `top_names`: the names at the top of the folder.
    It is not a problem if a top-level entry of the list is missing because it was not passed on, or if other top-level
    entries were added."""
    listed_top_names = {_top(name) for name in expected_sums}.union(FOLDERS)
    entries = dict(_entries(folder, listed_top_names.intersection(top_names)))
    special = [name for name, is_regular in entries.items() if not is_regular]
    current_names = {_escaped(name): name for name, is_regular in entries.items() if is_regular}
    unlisted = {
        name
        for name in current_names.keys() - expected_sums.keys()
        if _may_be_unlisted(folder / current_names[name], name)
    }
    problems = []
    for name in sorted(expected_sums.keys() | current_names.keys()):
        if name not in current_names:
            problems += [f"{name} is missing"] if _top(name) in top_names else []
        elif name not in expected_sums:
            problems += [f"{name} was added"] if name not in unlisted else []
        elif _checksum(folder, current_names[name]) != expected_sums[name]:
            problems.append(f"{name} was changed")
    unchecked = [
        *_line_of_names(
            "what was not passed on with the report", {_top(name) for name in expected_sums}.difference(top_names)
        ),
        *_line_of_names(f"files that {FILE} does not cover", unlisted.union(top_names) - listed_top_names),
        *_line_of_names("links and other things that are no files", special),
    ]
    return EvidenceComparison(problems, len(expected_sums.keys() & current_names.keys()), unchecked, special)


def _may_be_unlisted(path: Path, name: str) -> bool:
    """Return whether a file in a run's folder is allowed to be missing from the list."""
    return name.startswith(CI_FILES) or path.lstat().st_size > MAX_BYTES


def _entries(folder: Path, names: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Yield the path of each entry at or below these names in a folder, except folders, and whether the entry is a
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
        except OSError:  # the entry cannot be read, or its path is too long
            yield name, False


def _checksum(folder: Path, name: str) -> str:
    """Return the digest of a file as it appears in a line; empty if the file cannot be read or is too large, because a
    judged program may have replaced it."""
    checksum, offset = hashlib.sha256(), 0
    try:
        file = regular.OpenFile(folder / name)
        if file.size > MAX_BYTES:
            return ""
        while chunk := file.at(offset, _CHUNK_BYTES):
            checksum.update(chunk)
            offset += len(chunk)
    except OSError:
        return ""
    return ("\\" if _escaped(name) != name else "") + checksum.hexdigest()


def _line_of_names(label: str, names: Collection[str]) -> list[str]:
    """Return a list with one line that names files, or an empty list if there are no files."""
    remainder = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return [f"{label}: {', '.join(sorted(names)[:MAX_NAMES])}{remainder}"] if names else []


def _top(name: str) -> str:
    return name.partition("/")[0]


def _escaped(name: str) -> str:
    return "".join(_ESCAPES.get(character, character) for character in name)


def _by_path(text: str) -> dict[str, str]:
    return {name: sum for sum, _, name in (line.partition("  ") for line in text.split("\n") if line)}
