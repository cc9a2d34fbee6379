"""Extract files from a tar archive with any compression."""

from __future__ import annotations

import shutil
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from conformance.cluster.sites import Unavailable


def extract(archive: Path, members: Mapping[str, Path]) -> set[str]:
    """Write the members (path in the archive → file to write) and return the paths of those that there are.

    Raises Unavailable if it is no such archive.
    """
    missing = dict(members)
    try:
        with tarfile.open(archive) as tar:
            for entry in tar:
                into = missing.pop(entry.name.removeprefix("./").lstrip("/"), None) if entry.isfile() else None
                if into is not None and (content := tar.extractfile(entry)) is not None:
                    with content, into.open("wb") as file:
                        shutil.copyfileobj(content, file, 1 << 20)
                if not missing:
                    break
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise Unavailable(f"{archive.name}: {error}") from error
    return members.keys() - missing.keys()
