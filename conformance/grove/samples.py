"""Sample manifests for trying out a cluster (`fixtures/samples/`). Each sample is a file of plain manifests for
kubectl."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from conformance import documents
from conformance.data import folder
from conformance.errors import UsageError


@dataclass(frozen=True)
class Sample:
    """One sample. `nodes`: nodes on which the whole sample can run, in the format of `--nodes`, with GPUs in the form
    `gpus`. A sample that is not `is_plain` needs an implementation of Grove."""

    name: str
    about: str
    nodes: tuple[str, ...]
    path: Path
    gpus: Literal["extended", "devices"] = "extended"
    is_plain: bool = False


@cache
def load() -> Mapping[str, Sample]:
    """Return all samples by name. Raises UsageError if the list of samples is invalid."""
    return read(folder("fixtures") / "samples" / "samples.yaml")


def read(path: Path) -> dict[str, Sample]:
    """Read and check the list of samples. Raises UsageError with file, line and field if the list is invalid or a
    sample has no file."""
    document = documents.read(path, folder("fixtures") / "samples" / "samples.schema.json")
    samples = {}
    for name, entry in document.value.items():
        file = path.with_name(f"{name}.yaml")
        if not file.is_file():
            raise UsageError("has no file", where=document.location(name), hint=f"add {file.name} beside the list")
        gpus, is_plain = entry.get("gpus", "extended"), entry.get("plain", False)
        samples[name] = Sample(name, entry["about"], tuple(entry["nodes"]), file, gpus, is_plain)
    return samples


def find_sample(name: str, place: str) -> Sample:
    """Return the sample `name`. Raises UsageError if it does not exist; `place` is the location in the message."""
    if name not in load():
        raise UsageError(f"unknown sample {name!r}", where=place, hint=documents.suggestion(name, load()))
    return load()[name]
