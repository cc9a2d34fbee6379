"""Extraction of files from a tar archive with any compression."""

from __future__ import annotations

import shutil
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from conformance.cluster.sites import Unavailable


def extract(archive: Path, members: Mapping[str, Path]) -> set[str]:
    """Write members of an archive to files (`members` maps a path in the archive to a file) and return the paths that
    were found.

    Raises Unavailable if the file is not a valid archive.
    """
    missing_members = dict(members)
    try:
        with tarfile.open(archive) as tar:
            for entry in tar:
                target = (
                    missing_members.pop(entry.name.removeprefix("./").lstrip("/"), None) if entry.isfile() else None
                )
                if target is not None and (content := tar.extractfile(entry)) is not None:
                    with content, target.open("wb") as file:
                        shutil.copyfileobj(content, file, 1 << 20)
                if not missing_members:
                    break
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise Unavailable(f"{archive.name}: {error}") from error
    return members.keys() - missing_members.keys()
