"""The identity of a measured program: the digest of its files, and the git commit that they come from."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from conformance.data import PROJECT

PYTHON = re.compile(r"python[\d.]*$")


def process_identity(argv: Sequence[str], python_path: str = "") -> dict[str, Any]:
    """Return the identity of a process, derived from its command line: file name, digest, and the commit if the file is
    in a work tree.

    The digest of a Python module (`python -m NAME`) covers all its sources in `PYTHONPATH` or in this project. The
    digest of any other program covers only its file.
    """
    path = Path(argv[0]) if argv else Path()
    if PYTHON.match(path.name) and "-m" in argv[:-1]:
        module = argv[argv.index("-m") + 1].replace(".", "/")
        folders = [*(Path(folder) for folder in python_path.split(os.pathsep) if folder), PROJECT]
        path = next((folder / module for folder in folders if (folder / module).exists()), PROJECT / module)
    elif PYTHON.match(path.name):
        path = next((Path(word) for word in argv[1:] if Path(word).is_file()), path)
    return {"program": path.name, "digest": _digest(path), **commit_of(path)}


def implementation_digest(programs: Mapping[str, Mapping[str, Any]], settings: Mapping[str, str]) -> str | None:
    """Return one digest for all programs of an implementation and its settings; None if a program is unknown.

    Settings that are paths are left out, because the programs' digests represent the contents of the files.
    """
    digests = {role: program["digest"] for role, program in programs.items()}
    if not digests or None in digests.values():
        return None
    values = {name: value for name, value in settings.items() if not _is_path(value)}
    return _sha256([orjson.dumps([digests, values], option=orjson.OPT_SORT_KEYS)])


def published_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings as they are stored in a result: paths are reduced to their last part, because results are
    published."""
    return {name: Path(value).name if _is_path(value) else value for name, value in settings.items()}


def _is_path(value: str) -> bool:
    return "/" in value and Path(value).exists()


def commit_of(path: Path) -> dict[str, Any]:
    """Return `commit` and `modified` of the work tree that contains a file or folder; both are None if there is no work
    tree."""
    folder = path if path.is_dir() else path.parent
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return {"commit": None, "modified": None}
    return {"commit": commit, "modified": bool(_git(folder, "status", "--porcelain", "--untracked-files=no"))}


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        result = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() if result.returncode == 0 else None


def _digest(path: Path) -> str | None:
    """Return the digest of a file, or of all Python files in a folder."""
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    try:
        return _sha256(part for file in files for part in (str(file.relative_to(path)).encode(), file.read_bytes()))
    except OSError:
        return None


def _sha256(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return f"sha256:{digest.hexdigest()}"
