"""Hashes that tell whether a template has changed (docs/spec/hashes.md).

`use` sets once, before anything is hashed, which scheme is written and which others are accepted as current.
"""

from __future__ import annotations

from functools import lru_cache

from reference_impl.api.models import CliqueTemplate, PodCliqueSet, StartupType
from reference_impl.plan.hashing.schemes import Scheme, Template
from reference_impl.plan.hashing.window import Known, Policy, Window, of_set, of_template

_policy = Policy()


def use(policy: Policy) -> None:
    """From now on hashes are written and recognised so."""
    global _policy
    _policy = policy


def written() -> Scheme:
    """How hashes are written."""
    return _policy.written


def recognises_others() -> bool:
    """Whether hashes count as current that were written in another way."""
    return bool(_policy.recognised)


@lru_cache(4096)
def _of_template(template: Template, policy: Policy) -> Known:
    return of_template(template, policy)


@lru_cache(1024)
def _of_set(templates: tuple[Template, ...], in_order: bool, policy: Policy) -> Known:
    return of_set(templates, policy, in_order=in_order)


def _template(template: CliqueTemplate, priority_class: str | None) -> Template:
    spec = template.spec
    return Template.of(template.name, template.labels, template.annotations, spec.pod_spec, priority_class)


def known_template(template: CliqueTemplate, priority_class: str | None) -> Known:
    """The hashes of a clique's template: the value of `grove.io/pod-template-hash` for the clique and its pods."""
    return _of_template(_template(template, priority_class), _policy)


def known_generation(pcs: PodCliqueSet) -> Known:
    """The hashes of a set: `status.currentGenerationHash` changes when any clique's pods would. The order of cliques
    counts only where it is the start-up order."""
    whole = pcs.spec.template
    templates = tuple(_template(template, whole.priority_class_name) for template in whole.cliques)
    return _of_set(templates, whole.clique_startup_type == StartupType.IN_ORDER, _policy)


def known(pcs: PodCliqueSet) -> Window:
    """All hashes by which stored ones of a set are recognised as current."""
    whole = pcs.spec.template
    templates = {each.name: known_template(each, whole.priority_class_name) for each in whole.cliques}
    return Window(known_generation(pcs), templates)
