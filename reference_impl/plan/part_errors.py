"""Errors of the cliques and scaling groups of a set, as errors of the set: users look there first."""

from __future__ import annotations

from collections.abc import Iterable

from reference_impl.api.models import PodClique, PodCliqueScalingGroup, PodCliqueSet
from reference_impl.plan import children, labels
from reference_impl.plan.reconcile_error import ReconcileError

MAX_ERRORS = 10
"""The maximum number of errors of its parts that a set reports."""


def of_set(pcs: PodCliqueSet, parts: Iterable[PodClique | PodCliqueScalingGroup]) -> list[ReconcileError]:
    """The errors of all parts that will stay. Those of one template that report the same have one error, without their
    indices: a set of a thousand replicas makes a mistake of its template once."""
    errors: set[tuple[str, str]] = set()
    for part in parts:
        if part.status is None or not part.status.last_errors or part.metadata.deletion_timestamp is not None:
            continue
        if template := _template(pcs, part):
            about = f"{'PodClique' if isinstance(part, PodClique) else 'PodCliqueScalingGroup'} {template}"
            texts = (
                (e.code, e.description.replace(part.metadata.name, f"*-{template}")) for e in part.status.last_errors
            )
            errors |= {(code, f"{about}: {text}") for code, text in texts}
    return [ReconcileError(*error) for error in sorted(errors)[:MAX_ERRORS]]


def _template(pcs: PodCliqueSet, part: PodClique | PodCliqueScalingGroup) -> str:
    """The name of a part in the set's template; empty if the template has no such part any more."""
    if isinstance(part, PodClique):
        template = children.clique_template(pcs, part)
        return template.name if template is not None else ""
    config = children.group_config(pcs, part.metadata.label(labels.REPLICA_INDEX), part.metadata.name)
    return config.name if config is not None else ""
