"""The parts of coherent updates that an implementation's CRDs support, which show the version of the proposal
(COH-003)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from conformance.grove.fields import Document, at, items, text, texts
from conformance.grove.served import VERSION

MAPS, SETS = "podgangmaps.grove.io", "podcliquesets.grove.io"
COHERENT = "Coherent"
FEATURE = "coherent"
"""The feature of an implementation that serves PodGangMaps and the strategy Coherent."""
FIRST_TEXT = "coherent-first-text"
"""The feature of an implementation that serves both without maxUnavailable, like the first text of the proposal."""
MAPS_WORD = "podgangmaps"
"""A word that occurs in the manifests of every implementation that serves PodGangMaps."""


@dataclass(frozen=True)
class Served:
    """The parts of coherent updates that CRDs serve. `maps`: whether PodGangMaps are served; `key`: the key of their
    entries; `strategies`, `default`: the values and the default of `updateStrategy.type`; `budget`: whether templates
    have `rollingUpdate.maxUnavailable`."""

    maps: bool = False
    key: str = ""
    strategies: tuple[str, ...] = ()
    default: str = ""
    budget: bool = False

    @property
    def features(self) -> frozenset[str]:
        """Return the features that follow from the served parts."""
        if not self.maps or COHERENT not in self.strategies:
            return frozenset()
        return frozenset({FEATURE} if self.budget else {FEATURE, FIRST_TEXT})

    @property
    def is_by_epoch(self) -> bool:
        """Return whether PodGangMaps have the form of the line `maps` (GM-30)."""
        return self.maps and self.key == "epoch"

    @property
    def findings(self) -> dict[str, str]:
        """Return findings for the report, by name of the CRD or field."""
        if not self.maps and COHERENT not in self.strategies:
            return {}
        return {
            MAPS: f"served, entries by {self.key or 'no key'}" if self.maps else "not served",
            "updateStrategy.type": f"{', '.join(self.strategies)}; default {self.default or 'none'}",
            "rollingUpdate.maxUnavailable": "served" if self.budget else "not served",
        }


def read(crds: Iterable[Document]) -> Served:
    """Return the parts of coherent updates that CRDs serve."""
    schemas = {text(crd, "metadata", "name"): schema for crd in crds if (schema := _schema(crd))}
    sets, maps = schemas.get(SETS, {}), schemas.get(MAPS)
    entries = at(maps, "properties", "spec", "properties", "entries")
    template = at(sets, "properties", "spec", "properties", "template", "properties")
    budget = ("items", "properties", "rollingUpdate", "properties", "maxUnavailable")
    kind = at(sets, "properties", "spec", "properties", "updateStrategy", "properties", "type")
    return Served(
        maps=maps is not None,
        key=", ".join(texts(entries, "x-kubernetes-list-map-keys")),
        strategies=tuple(texts(kind, "enum")),
        default=text(kind, "default"),
        budget=all(at(template, part, *budget) is not None for part in ("cliques", "podCliqueScalingGroups")),
    )


def _schema(crd: Document) -> Mapping[str, Any]:
    for version in items(crd, "spec", "versions"):
        if text(version, "name") == VERSION and at(version, "served") is True:
            schema = at(version, "schema", "openAPIV3Schema")
            return schema if isinstance(schema, Mapping) else {}
    return {}
