"""Which revision of its template something is of. The one place that asks `hashes`: whoever compares hashes compares
them with a `Revision`, which may accept more than the one hash that it writes.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from reference_impl.api.models import CliqueTemplate, PodClique, PodCliqueSet
from reference_impl.plan import hashes, labels
from reference_impl.plan.hashing.window import Known


@dataclass(frozen=True)
class Revision:
    """The hash that is written for what is as it is to be, and all hashes that say so of what is there: those that
    earlier operators wrote, too (docs/hashes.md)."""

    hash: str
    accepted: Container[str | None]

    def has(self, hash: str | None) -> bool:
        return hash in self.accepted


def of_set(pcs: PodCliqueSet) -> Revision:
    """The generation of a set: what `status.currentGenerationHash` is compared with."""
    return _of(hashes.known_generation(pcs))


def of_template(pcs: PodCliqueSet, template: CliqueTemplate) -> Revision:
    """What `grove.io/pod-template-hash` of a clique of this template, and of its pods, is compared with."""
    return _of(hashes.known_template(template, pcs.spec.template.priority_class_name))


def of_pods(clique: PodClique, current: Revision | None) -> Revision:
    """What the pods of a clique are compared with: the revision that the clique itself is of, which may be older than
    that of its template."""
    own = clique.metadata.label(labels.TEMPLATE_HASH)
    return current if current is not None and current.has(own) else _only(own)


def _of(known: Known) -> Revision:
    return Revision(known.written, known)


def _only(hash: str) -> Revision:
    return Revision(hash, frozenset({hash}))
