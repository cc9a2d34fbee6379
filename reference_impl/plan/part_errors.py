"""Errors of a set's cliques and scaling groups, which the set also reports because users check the set first."""

from __future__ import annotations

from collections.abc import Iterable

from reference_impl.api.models import PodClique, PodCliqueScalingGroup, PodCliqueSet
from reference_impl.plan import children, labels
from reference_impl.plan.reconcile_error import ReconcileError

MAX_ERRORS = 10
"""Maximum number of errors of its parts that a set reports."""


def part_errors(pcs: PodCliqueSet, parts: Iterable[PodClique | PodCliqueScalingGroup]) -> list[ReconcileError]:
    """Return the errors of all parts that are not being deleted. Parts of the same template with the same error share
    one entry without indices, because a mistake in a template would otherwise be reported for each of a thousand
    replicas."""
    errors: set[tuple[str, str]] = set()
    for part in parts:
        if part.status is None or not part.status.last_errors or part.metadata.deletion_timestamp is not None:
            continue
        if template := _template_name(pcs, part):
            subject = f"{'PodClique' if isinstance(part, PodClique) else 'PodCliqueScalingGroup'} {template}"
            texts = (
                (e.code, e.description.replace(part.metadata.name, f"*-{template}")) for e in part.status.last_errors
            )
            errors |= {(code, f"{subject}: {text}") for code, text in texts}
    return [ReconcileError(*error) for error in sorted(errors)[:MAX_ERRORS]]


def _template_name(pcs: PodCliqueSet, part: PodClique | PodCliqueScalingGroup) -> str:
    """Return the name of a part in the set's template, or an empty string if the template no longer has this part."""
    if isinstance(part, PodClique):
        template = children.clique_template(pcs, part)
        return template.name if template is not None else ""
    config = children.group_config(pcs, part.metadata.label(labels.REPLICA_INDEX), part.metadata.name)
    return config.name if config is not None else ""
