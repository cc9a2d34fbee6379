"""The ComputeDomain reconciler. A finalizer keeps a domain while pods may need it (spec OBJ-220, OBJ-846)."""

from __future__ import annotations

from kube.objects import Key
from reference_impl.control.cache import Cache
from reference_impl.control.writer import Writer
from reference_impl.plan import labels, mnnvl, names


class DomainReconciler:
    """Removes the finalizer from ComputeDomains that are no longer needed."""

    def __init__(self, cache: Cache, writer: Writer) -> None:
        self._cache, self._writer = cache, writer

    async def reconcile(self, key: Key) -> float | None:
        """Reconcile one ComputeDomain. Return None, because the object is never requeued after a delay."""
        domain = self._cache.domains.get(*key)
        if domain is None or domain.metadata.deletion_timestamp is None or self._is_needed(key):
            return None
        await self._writer.remove_finalizer(self._cache.domains, domain, labels.COMPUTE_DOMAIN_FINALIZER)
        return None

    def _is_needed(self, key: Key) -> bool:
        domain = self._cache.domains.get(*key)
        pcs = self._cache.set_of(domain) if domain is not None else None
        if pcs is None or pcs.metadata.deletion_timestamp is not None:
            return False
        indices, groups = range(pcs.spec.replicas), mnnvl.groups(pcs)
        return any(key[1] == names.compute_domain(pcs.metadata.name, i, group) for i in indices for group in groups)
