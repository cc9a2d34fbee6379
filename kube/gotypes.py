"""The Go types of a pod template: every struct that can be reached from the template, with its fields in order of
declaration, their Go types and their JSON names, for each supported version of the Kubernetes libraries.

Grove's operators compute their hashes from a string that contains all of these fields.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

import msgspec

LIBRARIES = ("0.34", "0.35", "0.36")
"""Minor versions of k8s.io/api; patch releases have never changed a field."""


class Field(msgspec.Struct, array_like=True, frozen=True):
    """One field of a struct. `libraries` holds the versions that have the field; empty means all versions."""

    name: str
    type: str
    json: str
    embedded: bool = False
    libraries: tuple[str, ...] = ()


class Types(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All structs. `kinds` holds the underlying types of named types that are not structs."""

    root: str
    libraries: tuple[str, ...]
    kinds: dict[str, str]
    structs: dict[str, list[Field]]

    def fields(self, struct: str, library: str) -> list[Field]:
        """Return the fields of a struct in one version of the libraries."""
        return [field for field in self.structs[struct] if not field.libraries or library in field.libraries]


@cache
def pod_template_types() -> Types:
    """Read the types from the package data."""
    data = resources.files("kube").joinpath("pod_template_types.json").read_bytes()
    return msgspec.json.decode(data, type=Types)
