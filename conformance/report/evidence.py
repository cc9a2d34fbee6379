"""`SHA256SUMS` of a run: the digests of its evidence, in the format of `sha256sum`.

The report has the digest of this file, so evidence that was exchanged, removed or added later is found.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from conformance import bounded, regular

FILE = "SHA256SUMS"
FOLDERS = ("bundles", "ledger", "logs")
"""The folders of a run that are evidence."""
_PIECE = 1 << 20
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r"}


def listed(folder: Path) -> str:
    """Return the digest and path of each regular file of evidence of a run, sorted by path; links are not followed."""
    return "".join(f"{line}\n" for line in sorted(_lines(folder), key=lambda line: line.partition("  ")[2]))


def digest(text: str) -> str:
    """Return the digest of the list, as the report has it."""
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def problems(folder: Path, expected: str) -> Iterator[str]:
    """Yield one line for each file that is not what was listed. `expected`: the digest of the list. Folders that were
    not passed on with the report are left out (`absent`). Raises UsageError if the list cannot be read."""
    path = folder / FILE
    if not path.is_file():
        yield f"{FILE} is missing"
        return
    text = bounded.text(path, bounded.MANIFESTS, str(path))
    if digest(text) != expected:
        yield f"{FILE} is not the list of the report"
        return
    then, now, gone = _by_path(text), _by_path(listed(folder)), absent(folder)
    for name in sorted(then.keys() | now.keys()):
        if name.partition("/")[0] in gone:
            continue
        if name not in now:
            yield f"{name} is missing"
        elif name not in then:
            yield f"{name} was added"
        elif then[name] != now[name]:
            yield f"{name} was changed"


def absent(folder: Path) -> list[str]:
    """Return the folders of evidence that a run does not have, or that were not passed on."""
    return [name for name in FOLDERS if not (folder / name).is_dir()]


def _lines(folder: Path) -> Iterator[str]:
    for top in FOLDERS:
        for place, _, names in os.walk(folder / top):
            for name in names:
                path = Path(place, name)
                if path.is_symlink() or not path.is_file() or not (found := _of_file(path)):
                    continue
                shown = path.relative_to(folder).as_posix()
                escaped = "".join(_ESCAPES.get(character, character) for character in shown)
                yield ("\\" if escaped != shown else "") + f"{found}  {escaped}"


def _of_file(path: Path) -> str:
    """Return the digest of a file; empty if it cannot be read: a program that is judged can reach it."""
    found, at = hashlib.sha256(), 0
    try:
        file = regular.Held(path)
        while piece := file.at(at, _PIECE):
            found.update(piece)
            at += len(piece)
    except OSError:
        return ""
    return found.hexdigest()


def _by_path(text: str) -> dict[str, str]:
    return {name: sum for sum, _, name in (line.partition("  ") for line in text.splitlines())}
