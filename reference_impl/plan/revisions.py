"""Revisions of the templates of objects. Only this module computes hashes for comparison. All comparisons use a
`Revision`, which may accept hashes other than the hash that it writes."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from reference_impl.api.models import CliqueTemplate, PodClique, PodCliqueSet
from reference_impl.plan import hashes, labels
from reference_impl.plan.hashing.window import STANDARD, CurrentHashes, Policy


@dataclass(frozen=True)
class Revision:
    """The hash that is written, and all hashes that count as current, including hashes that earlier operators wrote
    (docs/hashes.md)."""

    hash: str
    accepted: Container[str | None]

    def has(self, hash: str | None) -> bool:
        """Return whether a stored hash belongs to this revision."""
        return hash in self.accepted


def set_revision(pcs: PodCliqueSet, policy: Policy = STANDARD) -> Revision:
    """Return the revision with which `status.currentGenerationHash` of a set is compared."""
    return _revision(hashes.generation_hashes(pcs, policy))


def template_revision(pcs: PodCliqueSet, template: CliqueTemplate, policy: Policy = STANDARD) -> Revision:
    """Return the revision with which `grove.io/pod-template-hash` of the template's cliques and pods is compared."""
    return _revision(hashes.template_hashes(template, pcs.spec.template.priority_class_name, policy))


def pod_revision(clique: PodClique, current: Revision | None) -> Revision:
    """Return the revision with which the pods of a clique are compared. It is the clique's own revision, which may be
    older than the revision of its template."""
    clique_hash = clique.metadata.label(labels.TEMPLATE_HASH)
    return current if current is not None and current.has(clique_hash) else _exact_revision(clique_hash)


def _revision(current_hashes: CurrentHashes) -> Revision:
    return Revision(current_hashes.written, current_hashes)


def _exact_revision(hash: str) -> Revision:
    return Revision(hash, frozenset({hash}))
