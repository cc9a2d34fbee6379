"""The gangs of a replica whose PodGangMap does not exist, read from the cache (spec COH-268 to COH-273)."""

from __future__ import annotations

from reference_impl.api.models import PodClique, PodCliqueSet, PodGang
from reference_impl.control.cache import GANG, REPLICA, Cache, key_text
from reference_impl.plan import children, labels, names, update_progress
from reference_impl.plan.coherent import gangs as map_gangs
from reference_impl.plan.coherent.adoption import LiveGang
from reference_impl.plan.coherent.layout import Layout


class Live:
    """What there is of one replica of a set."""

    def __init__(self, cache: Cache, pcs: PodCliqueSet, index: int) -> None:
        self._cache, self._pcs = cache, pcs
        clique = cache.child(cache.cliques, pcs)
        found = {
            t.name: clique(names.clique(pcs.metadata.name, index, t.name)) for t in children.standalone_templates(pcs)
        }
        self._standalone = {name: own for name, own in found.items() if own is not None}
        replica = key_text(pcs.metadata.namespace, names.replica(pcs.metadata.name, index))
        self._cliques = list(cache.cliques.indexed(REPLICA, replica))
        self._configs = {
            names.scaling_group(pcs.metadata.name, index, config.name): config.name
            for config in children.group_configs(pcs)
        }

    def _members(self, gang: str) -> list[PodClique]:
        """The cliques of scaling groups that name a gang."""
        found = self._cache.cliques.indexed(GANG, key_text(self._pcs.metadata.namespace, gang))
        return [clique for clique in found if clique.metadata.label(labels.SCALING_GROUP) in self._configs]

    def gang(self, gang: PodGang) -> LiveGang:
        """What a gang that exists holds."""
        groups: dict[str, set[int]] = {}
        members = self._members(gang.metadata.name)
        for member in members:
            config = self._configs[member.metadata.label(labels.SCALING_GROUP)]
            groups.setdefault(config, set()).add(int(member.metadata.label(labels.SCALING_GROUP_REPLICA_INDEX)))
        known = {group.name for group in gang.spec.podgroups}
        scaled = any(member.metadata.label(labels.BASE_PODGANG) for member in members)
        return LiveGang(
            gang.metadata.name,
            gang.metadata.label(labels.GENERATION_HASH) or None,
            gang.metadata.label(labels.ANCHOR) == "true" if map_gangs.of_a_map(gang) else not scaled,
            {
                name: len(self._pods(own, gang.metadata.name))
                for name, own in self._standalone.items()
                if own.metadata.name in known
            },
            groups,
        )

    def _pods(self, clique: PodClique, gang: str) -> list[str]:
        """The template hashes of the pods of a clique in a gang."""
        return [
            pod.metadata.label(labels.TEMPLATE_HASH)
            for pod in self._cache.pods_of(clique)
            if pod.active and pod.metadata.label(labels.PODGANG) == gang
        ]

    def generation(self) -> str:
        """The generation of gangs that have no label for it: the present one or, if there are pods of it that an update
        replaces or that OnDelete has left, the one before."""
        current = update_progress.generation(self._pcs)
        stored = (own.status.current_pod_clique_set_generation_hash for own in self._cliques if own.status)
        return next((hash for hash in stored if hash and hash != current), current)

    def hashes(self, found: Layout) -> dict[str, dict[str, str]]:
        """The template hashes of the generations that the gangs have, as their pods show them."""
        result: dict[str, dict[str, str]] = {}
        for entry in found:
            known = result.setdefault(entry.generation, {})
            for clique in (*self._standalone.values(), *self._members(entry.name)):
                template = children.clique_template(self._pcs, clique)
                if template is not None:
                    current = clique.metadata.label(labels.TEMPLATE_HASH)
                    older = [hash for hash in self._pods(clique, entry.name) if hash != current]
                    known[template.name] = older[0] if older else known.get(template.name, current)
        return result
