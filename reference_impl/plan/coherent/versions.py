"""The versions of components that the entries of a layout hold (spec COH-040, COH-197, COH-210)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reference_impl.api.models import PodCliqueSet
from reference_impl.plan import children, revisions
from reference_impl.plan.components import Key, Kind
from reference_impl.plan.hashing.window import STANDARD, Policy
from reference_impl.plan.layout import Entry, Layout
from reference_impl.plan.maps import StoredMap
from reference_impl.plan.observed import Observed
from reference_impl.plan.revisions import Revision


@dataclass(frozen=True)
class Templates:
    """The current templates of a set: their revisions and the generation hash."""

    generation: str
    revisions: Mapping[str, Revision]

    @property
    def hashes(self) -> dict[str, str]:
        """The template hash of each clique template."""
        return {name: revision.hash for name, revision in self.revisions.items()}


def templates(pcs: PodCliqueSet, generation: str, policy: Policy = STANDARD) -> Templates:
    """Return the current templates of a set, which have this generation hash."""
    by_name = {
        template.name: revisions.template_revision(pcs, template, policy) for template in pcs.spec.template.cliques
    }
    return Templates(generation, by_name)


def with_layout(old: StoredMap | None, gangs: Layout, current: Templates) -> StoredMap:
    """Return a map with another layout. It records the generations that the layout names, and the current one."""
    all_hashes = {**(old.hashes if old is not None else {}), current.generation: current.hashes}
    needed = {current.generation, *(entry.generation for entry in gangs)}
    return StoredMap(gangs, {generation: all_hashes[generation] for generation in sorted(needed & all_hashes.keys())})


def template_names(pcs: PodCliqueSet, key: Key) -> list[str]:
    """Return the names of the clique templates of a component."""
    if key.kind is Kind.CLIQUE:
        return [key.name]
    return next((config.clique_names for config in children.group_configs(pcs) if config.name == key.name), [])


def has_current_templates(pcs: PodCliqueSet, stored: StoredMap, entry: Entry, key: Key, current: Templates) -> bool:
    """Return whether an entry's members of a component have the current templates. If the map has no record of them,
    the generation of the entry decides."""
    return all(_is_current(stored, entry, template, current) for template in template_names(pcs, key))


def _is_current(stored: StoredMap, entry: Entry, template: str, current: Templates) -> bool:
    revision, recorded = current.revisions.get(template), stored.hash(entry, template)
    if recorded is None or revision is None:
        return entry.generation == current.generation
    return revision.has(recorded)


def may_create_pods(stored: StoredMap, entry: Entry, template: str, template_hash: str, current: Templates) -> bool:
    """Return whether pods of a clique object with this template hash may be created in a gang of an entry. They must
    have the same version as the entry (COH-210)."""
    revision, recorded = current.revisions.get(template), stored.hash(entry, template)
    if recorded == template_hash:
        return True
    return _is_current(stored, entry, template, current) and revision is not None and revision.has(template_hash)


def current_generations(pcs: PodCliqueSet, stored: StoredMap, current: Templates) -> dict[Key, frozenset[str]]:
    """Return, for each component, the generations in which it has the current template (COH-197)."""
    generations_by_key: dict[Key, set[str]] = {}
    for entry in stored.layout:
        for key in entry.keys:
            if has_current_templates(pcs, stored, entry, key, current):
                generations_by_key.setdefault(key, set()).add(entry.generation)
    return {key: frozenset(generations) for key, generations in generations_by_key.items()}


def outdated_components(
    pcs: PodCliqueSet, stored: StoredMap, current: Templates, observed: Observed | None = None
) -> set[Key]:
    """Return the components of which any entry holds an old version according to the records. With `observed`, the
    members themselves are also considered, because another strategy may have replaced members within their gangs."""
    outdated_keys: set[Key] = set()
    for entry in stored.layout:
        for key in entry.keys:
            mixed = observed is not None and observed.outdated(entry, key)
            if mixed or (key not in outdated_keys and not has_current_templates(pcs, stored, entry, key, current)):
                outdated_keys.add(key)
    return outdated_keys
