"""Standalone cliques whose pods are distributed over gangs by a PodGangMap (spec COH-041, COH-083, COH-240 to
COH-248)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from reference_impl.api.models import CliqueTemplate, PodClique, PodCliqueSet
from reference_impl.control.cache import Cache
from reference_impl.control.gang_maps import GangMaps
from reference_impl.control.workload_api import GangPlans
from reference_impl.control.writer import Writer, together
from reference_impl.plan import children, gates, labels, names, update_progress
from reference_impl.plan.children import Manifest
from reference_impl.plan.coherent import layout, maps, steady, update
from reference_impl.plan.coherent import pods as gang_pods
from reference_impl.plan.coherent.maps import ReplicaMap
from reference_impl.runtime.clock import now

Build = Callable[[list[tuple[int, str]]], list[Manifest]]
"""Builds the manifests of pods from their indices and gangs."""


class CliqueGangs:
    """Brings the pods of standalone cliques to the gangs of their map."""

    def __init__(self, cache: Cache, writer: Writer, held: GangMaps, plans: GangPlans) -> None:
        self._cache, self._writer, self._maps, self._plans = cache, writer, held, plans

    async def follow(self, pcs: PodCliqueSet, clique: PodClique, held: ReplicaMap) -> None:
        """Write which gangs hold how many pods, and the progress of an update."""
        template = children.clique_template(pcs, clique)
        if template is None:
            return
        status = clique.status
        mapping, progress = self._mapping(pcs, clique, held, template), self._progress(pcs, clique, held, template)
        old_mapping, old_progress = (status.pod_gang_mapping, status.update_progress) if status else (None, None)
        body: dict[str, Any] = {}
        if mapping != (old_mapping or {}):
            body["podGangMapping"] = {**dict.fromkeys(old_mapping or ()), **mapping}
        if progress != old_progress and progress is not None:
            body["updateProgress"] = msgspec.to_builtins(progress)
        if body:
            await self._writer.patch(self._cache.cliques, clique, {"status": body}, status=True)

    def _mapping(
        self, pcs: PodCliqueSet, clique: PodClique, held: ReplicaMap, template: CliqueTemplate
    ) -> dict[str, int]:
        """While an update is running, the gangs of the map; else those of the status, which follow the replicas."""
        counts = layout.pods_of_clique(held.layout, template.name)
        if update.running(pcs):
            return counts
        known = (clique.status.pod_gang_mapping if clique.status else None) or counts
        if sum(known.values()) == clique.spec.replicas:
            return dict(known)
        index = self._maps.index_of(clique)
        return steady.scaled_clique(
            known,
            clique.spec.replicas,
            self._maps.observed_pods(pcs, clique, template),
            held.layout,
            update_progress.generation(pcs),
            partial(self._take, names.replica(pcs.metadata.name, index), held),
        )

    def _take(self, prefix: str, held: ReplicaMap, count: int) -> list[str]:
        return self._maps.names.take(prefix, count, (entry.name for entry in held.layout))

    def _progress(self, pcs: PodCliqueSet, clique: PodClique, held: ReplicaMap, template: CliqueTemplate) -> Any:
        current = self._maps.templates(pcs).revisions[template.name]
        counts = layout.pods_of_clique(held.layout, template.name)
        complete = update.clique_complete(clique, self._cache.pods_of(clique), counts, current)
        return update.of_clique(pcs, clique, current.hash, complete, now())

    async def balance(self, pcs: PodCliqueSet, clique: PodClique, held: ReplicaMap, build: Build) -> None:
        """Delete pods that no gang holds, then create missing ones in gangs that exist."""
        template = children.clique_template(pcs, clique)
        if template is None:
            return
        namespace, own = clique.metadata.namespace, clique.metadata.label(labels.TEMPLATE_HASH)
        present = self._maps.templates(pcs)

        def may_create(name: str) -> bool:
            gang, entry = self._cache.gangs.get(namespace, name), held.entry(name)
            if gang is None or gang.metadata.deletion_timestamp is not None or entry is None:
                return False
            return maps.fits(held, entry, template.name, own, present) or self._maps.refills(pcs)

        counts = layout.pods_of_clique(held.layout, template.name)
        present_pods = self._cache.pods_of(clique)
        stale = self._plans.stale(clique.metadata.name, present_pods)
        kept = [pod for pod in present_pods if pod not in stale]
        found = gang_pods.difference(self._possible(clique, counts), kept, own, may_create)
        # A map that does not hold all pods, or holds them in other gangs than was decided, is about to be rebuilt or
        # repaired: it is not followed.
        agreed = self._agreed(pcs, clique, counts)
        whole = agreed and sum(counts.values()) == clique.spec.replicas
        surplus = [*(pod for pod in found.surplus if whole or pod.finished), *stale]
        await together(self._writer.delete(self._cache.pods, pod) for pod in surplus)
        if agreed:
            await together(self._writer.create(self._cache.pods, manifest) for manifest in build(found.missing))

    def _possible(self, clique: PodClique, counts: Mapping[str, int]) -> dict[str, int]:
        """How many pods of a clique each gang may have now."""
        namespace, name = clique.metadata.namespace, clique.metadata.name
        return {
            gang: self._plans.possible(self._cache.gangs.get(namespace, gang), name, count)
            for gang, count in counts.items()
        }

    def _agreed(self, pcs: PodCliqueSet, clique: PodClique, counts: Mapping[str, int]) -> bool:
        """Whether the map says what the status says, which decides between updates (COH-041)."""
        present = self._cache.cliques.get(*clique.metadata.key) or clique
        known = present.status.pod_gang_mapping if present.status else None
        return update.running(pcs) or not known or known == counts

    def removable(self, pcs: PodCliqueSet, clique: PodClique, held: ReplicaMap) -> list[Any]:
        """The pods of a clique, standalone or in a scaling group, whose gate may be removed now."""
        namespace = clique.metadata.namespace
        by_gang: dict[str, list[Any]] = {}
        for pod in self._cache.pods_of(clique):
            if pod.active and pod.gated_by(labels.GATE):
                by_gang.setdefault(pod.metadata.label(labels.PODGANG), []).append(pod)
        return [
            pod
            for name, found in by_gang.items()
            if self._maps.may_start(pcs, held, name)
            for pod in gates.removable(clique, found, self._cache.gangs.get(namespace, name), None, lambda _: 0)
        ]
