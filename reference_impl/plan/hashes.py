"""Hashes of clique templates and of whole sets. Equal hashes mean unchanged templates (docs/hashes.md).

A `Policy` says in which scheme hashes are written and which other schemes are recognized. It is part of the
configuration, and every function takes it as an argument.
"""

from __future__ import annotations

from functools import lru_cache

from reference_impl.api.models import CliqueTemplate, PodCliqueSet, StartupType
from reference_impl.plan.hashing.schemes import Template
from reference_impl.plan.hashing.window import (
    STANDARD,
    CurrentHashes,
    Policy,
    Window,
    compute_generation_hashes,
    compute_template_hashes,
)


@lru_cache(4096)
def _cached_template_hashes(template: Template, policy: Policy) -> CurrentHashes:
    return compute_template_hashes(template, policy)


@lru_cache(1024)
def _cached_set_hashes(templates: tuple[Template, ...], in_order: bool, policy: Policy) -> CurrentHashes:
    return compute_generation_hashes(templates, policy, in_order=in_order)


def _template(template: CliqueTemplate, priority_class: str | None) -> Template:
    spec = template.spec
    return Template.of(template.name, template.labels, template.annotations, spec.pod_spec, priority_class)


def template_hashes(template: CliqueTemplate, priority_class: str | None, policy: Policy = STANDARD) -> CurrentHashes:
    """Return the hashes of a clique template, which are values of `grove.io/pod-template-hash` on the clique and its
    pods."""
    return _cached_template_hashes(_template(template, priority_class), policy)


def generation_hashes(pcs: PodCliqueSet, policy: Policy = STANDARD) -> CurrentHashes:
    """Return the generation hashes of a set, which are values of `status.currentGenerationHash`. They change if any
    template changes. The order of cliques matters only if it is the startup order."""
    set_template = pcs.spec.template
    templates = tuple(_template(template, set_template.priority_class_name) for template in set_template.cliques)
    return _cached_set_hashes(templates, set_template.clique_startup_type == StartupType.IN_ORDER, policy)


def window(pcs: PodCliqueSet, policy: Policy = STANDARD) -> Window:
    """Return all hashes that count as current in the stored state of a set."""
    set_template = pcs.spec.template
    templates = {
        template.name: template_hashes(template, set_template.priority_class_name, policy)
        for template in set_template.cliques
    }
    return Window(generation_hashes(pcs, policy), templates)
