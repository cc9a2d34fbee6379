"""Schemes of template hashes. A scheme combines a version of the Kubernetes libraries with the stored or the canonical
form (docs/spec/hashes.md, sections 1, 2.3 and 4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from kube.gotypes import LIBRARIES
from reference_impl.plan.hashing import canonical, dump, fnv


@dataclass(frozen=True)
class Scheme:
    """One way to hash templates. `later` is explained at `dump.template`."""

    name: str
    library: str
    canonical: bool
    later: bool = False

    def __str__(self) -> str:
        form = "canonical" if self.canonical else "legacy"
        return f"{form} form, Kubernetes libraries {self.library}"


CANONICAL = Scheme("canonical", dump.PINNED, canonical=True, later=True)
"""The scheme with which the reference writes hashes. It gives upstream's canonical hash (PR 566) unless a template sets
fields newer than upstream's library version. Later library versions do not change these hashes (HASH-072)."""
SCHEMES = {
    scheme.name: scheme
    for scheme in (
        CANONICAL,
        *(Scheme(f"legacy-{library}", library, canonical=False) for library in LIBRARIES),
        *(Scheme(f"canonical-{library}", library, canonical=True) for library in LIBRARIES),
    )
}


@dataclass(frozen=True)
class Template:
    """The hashed part of a clique template (HASH-012): labels, annotations, and the pod spec with the set's priority
    class. It is stored as bytes, so that equal templates are hashed once."""

    name: str
    data: bytes

    @classmethod
    def of(cls, name: str, labels: object, annotations: object, spec: dict[str, Any], priority: str | None) -> Template:
        """Return the hashed part of the template `name`. The set's priority class replaces the priority class of the
        pod spec."""
        spec = {**spec, "priorityClassName": priority or None}
        return cls(name, orjson.dumps([labels, annotations, spec]))


@dataclass(frozen=True)
class _TemplateDump:
    """A dump in pieces. `whole` says whether its library version has every field that is set."""

    pieces: tuple[str, ...]
    whole: bool


@lru_cache(2048)
def _dump_template(data: bytes, scheme: Scheme) -> _TemplateDump:
    labels, annotations, spec = orjson.loads(data)
    if scheme.canonical:
        spec = canonical.canonical_pod_spec(spec)
    text = dump.template(labels, annotations, spec, scheme.library, later=scheme.later)
    return _TemplateDump(tuple(text.pieces), not text.foreign)


@lru_cache(8192)
def template_hash(template: Template, scheme: Scheme) -> str:
    """Return the value of `grove.io/pod-template-hash` (HASH-010)."""
    return fnv.encode(fnv.advance(fnv.OFFSET, _dump_template(template.data, scheme).pieces))


def generation_hash(templates: Iterable[Template], scheme: Scheme, *, in_order: bool) -> str:
    """Return the value of `status.currentGenerationHash` (HASH-011, HASH-105, HASH-106)."""
    templates = list(templates)
    if scheme.canonical and not in_order:
        templates.sort(key=lambda template: template.name)
    state = fnv.OFFSET
    for template in templates:
        pieces = _dump_template(template.data, scheme).pieces
        if scheme.canonical and in_order:
            head = "(kubernetes.podTemplateSpecHashInput){OrderKey:(string)"
            pieces = (head, template.name, " PodTemplateSpec:", *pieces, "}")
        state = fnv.advance(state, pieces)
    return fnv.encode(state)


def covers(template: Template, scheme: Scheme) -> bool:
    """Return whether a scheme covers every field that the template sets. Any other scheme would miss some changes."""
    return _dump_template(template.data, scheme).whole
