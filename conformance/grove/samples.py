"""Sample manifests for trying out a cluster (`fixtures/samples/`). Each sample is a file of plain manifests for
kubectl."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from conformance import documents, formats
from conformance.data import folder
from conformance.errors import UsageError
from conformance.formats import Format, Text

Name = Annotated[str, Meta(pattern="^[a-z][a-z-]*[a-z]$", description="lower-case letters and hyphens")]


class Sample(Format, frozen=True):
    """One sample. A sample that is not `plain` has a PodCliqueSet, so it needs an implementation of Grove."""

    about: Annotated[Text, Meta(description="what it shows")]
    nodes: Annotated[list[str], Meta(min_length=1, description="nodes on which all of it can run, as for --nodes")]
    gpus: Annotated[Literal["extended", "devices"], Meta(description="how its nodes offer GPUs, as for --gpus")] = (
        "extended"
    )
    plain: bool = False


@cache
def load() -> Mapping[str, Sample]:
    """Return all samples by name. Raises UsageError if the list of samples is invalid."""
    return read(folder("fixtures") / "samples" / "samples.yaml")


def read(path: Path) -> dict[str, Sample]:
    """Read and check the list of samples. Raises UsageError with file, line and field if the list is invalid or a
    sample has no file."""
    document, samples = formats.read(path, dict[Name, Sample])
    for name in samples:
        file = path.with_name(f"{name}.yaml")
        if not file.is_file():
            raise UsageError("has no file", where=document.location(name), hint=f"add {file.name} beside the list")
    return samples


def path(name: str) -> Path:
    """Return the file of a sample."""
    return folder("fixtures") / "samples" / f"{name}.yaml"


def require(name: str, place: str) -> str:
    """Return the name of a sample. Raises UsageError if the sample does not exist; `place` is the location in the
    message."""
    if name not in load():
        raise UsageError(f"unknown sample {name!r}", where=place, hint=documents.suggestion(name, load()))
    return name
