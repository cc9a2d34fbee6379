"""The toy operator of docs/examples, to be copied into the user's folder: a program in Go and its descriptor."""

from __future__ import annotations

from pathlib import Path

from conformance import data
from conformance.errors import UsageError

NAME = "toy-operator"
FILES = ("go.mod", "main.go", "toy.yaml")


def write(folder: Path) -> None:
    """Write the files into a new folder. Raises UsageError if the folder exists or cannot be written."""
    try:
        folder.mkdir()
        for name in FILES:
            (folder / name).write_bytes((data.folder(f"docs/examples/{NAME}") / name).read_bytes())
    except FileExistsError as error:
        raise UsageError("exists already", where=str(folder), hint="give another name, or remove it") from error
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", where=str(folder), hint="give another path") from error
