"""The Go types of a pod template: every struct that can be reached from one, its fields in the order of their
declaration, with their Go types and JSON names, for each version of the Kubernetes libraries that is known.

The hashes that Grove's operators write are made from a text that prints them all; the data are facts of Kubernetes.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

import msgspec

LIBRARIES = ("0.34", "0.35", "0.36")
"""Minor versions of k8s.io/api; patch releases have never changed a field."""


class Field(msgspec.Struct, array_like=True, frozen=True):
    """One field of a struct. `libraries` are those that have it; none named means all."""

    name: str
    type: str
    json: str
    embedded: bool = False
    libraries: tuple[str, ...] = ()


class Types(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`kinds` has what lies under a named type that is no struct."""

    root: str
    libraries: tuple[str, ...]
    kinds: dict[str, str]
    structs: dict[str, list[Field]]

    def fields(self, struct: str, library: str) -> list[Field]:
        """The fields of a struct in one version of the libraries."""
        return [field for field in self.structs[struct] if not field.libraries or library in field.libraries]


@cache
def pod_template_types() -> Types:
    data = resources.files("kube").joinpath("pod_template_types.json").read_bytes()
    return msgspec.json.decode(data, type=Types)
