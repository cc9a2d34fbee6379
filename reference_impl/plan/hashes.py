"""Hashes that tell whether a template has changed (spec/hashes.md). Which ones are written, and which others are taken
for current, is set once, before anything is hashed (`use`)."""

from __future__ import annotations

from reference_impl.api.models import CliqueTemplate, PodCliqueSet, StartupType
from reference_impl.plan.hashing import schemes
from reference_impl.plan.hashing.schemes import Template
from reference_impl.plan.hashing.window import Policy, Window, window

_policy = Policy()


def use(policy: Policy) -> None:
    """From now on hashes are written and recognised so."""
    global _policy
    _policy = policy


def _template(template: CliqueTemplate, priority_class: str | None) -> Template:
    spec = template.spec
    return Template.of(template.name, template.labels, template.annotations, spec.pod_spec, priority_class)


def _templates(pcs: PodCliqueSet) -> list[Template]:
    whole = pcs.spec.template
    return [_template(template, whole.priority_class_name) for template in whole.cliques]


def _in_order(pcs: PodCliqueSet) -> bool:
    return pcs.spec.template.clique_startup_type == StartupType.IN_ORDER


def pod_template(template: CliqueTemplate, priority_class: str | None) -> str:
    """The value of `grove.io/pod-template-hash` for a clique and its pods."""
    return schemes.of_template(_template(template, priority_class), _policy.written)


def generation(pcs: PodCliqueSet) -> str:
    """`status.currentGenerationHash`: changes when any clique's pods would. The order of cliques counts only where it
    is the start-up order."""
    return schemes.of_set(_templates(pcs), _policy.written, in_order=_in_order(pcs))


def known(pcs: PodCliqueSet) -> Window:
    """The hashes by which stored ones of a set are recognised as current."""
    return window(_templates(pcs), _policy, in_order=_in_order(pcs))
