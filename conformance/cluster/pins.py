"""The pinned programs of the fake cluster (`pins/assets.yaml`) for this platform.

Pure, except that it reads that file and the environment.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from conformance.errors import UsageError

PINS = Path(__file__).with_name("pins")
_SYSTEMS = {"Linux": "linux", "Darwin": "darwin"}
_MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True)
class Program:
    """One program. `file` and `member` are paths on the release site and inside the archive; `sha256` is the digest of
    that file, empty if none is pinned: then the program is built."""

    name: str
    group: Group
    file: str
    member: str
    package: str
    sha256: str

    @property
    def url(self) -> str:
        """Address of the official release file."""
        return f"{self.group.releases}/{self.file}"


@dataclass(frozen=True)
class Group:
    """Programs of one release, built from one Go module folder."""

    name: str
    version: str
    releases: str
    ldflags: str

    @property
    def module(self) -> Path:
        """The folder with go.mod and go.sum."""
        return PINS / self.name


def platform_name() -> str:
    """Return operating system and architecture in Go's terms, such as `linux-amd64`. Raises UsageError for unsupported
    ones."""
    system, machine = platform.system(), platform.machine()
    if system not in _SYSTEMS or machine.lower() not in _MACHINES:
        raise UsageError(
            f"the fake cluster does not run on {system} {machine}",
            hint="use Linux or macOS on amd64 or arm64, or give every program by GROVE_CONFORMANCE_ASSET_<NAME>",
        )
    return f"{_SYSTEMS[system]}-{_MACHINES[machine.lower()]}"


def load(platform_: str) -> tuple[Program, ...]:
    """Return every pinned program for `platform_`, in the order in which builds share most of the compile cache."""
    document: dict[str, Any] = yaml.safe_load((PINS / "assets.yaml").read_text())
    system, arch = platform_.split("-")
    programs = []
    for group_name, entry in document.items():

        def fill(text: str, version: str = entry["version"]) -> str:
            return text.format(version=version, os=system, arch=arch)

        mirror = os.environ.get(f"GROVE_CONFORMANCE_RELEASES_{group_name.upper()}")
        group = Group(
            name=group_name,
            version=entry["version"],
            releases=(mirror or entry["releases"]).rstrip("/"),
            ldflags=fill(entry.get("ldflags", "")),
        )
        for name, fields in entry["programs"].items():
            programs.append(
                Program(
                    name=name,
                    group=group,
                    file=fill(fields["file"]),
                    member=fill(fields.get("member", "")),
                    package=fields["package"],
                    sha256=fields.get("sha256", {}).get(platform_, ""),
                )
            )
    return tuple(programs)
