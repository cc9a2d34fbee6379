"""Secondary resources of a set: the objects that its init containers need, its resource claims, and its
ComputeDomains."""

from __future__ import annotations

from typing import Any

from kube.informer import Informer
from reference_impl.api.models import PodCliqueSet
from reference_impl.control.cache import Cache
from reference_impl.control.writer import Writer, await_all
from reference_impl.plan import claims, labels, mnnvl, names, ownership, secondary_resources
from reference_impl.plan.children import Manifest, set_reference
from reference_impl.plan.desired import DesiredSet


class SecondaryResources:
    """Creates and corrects the secondary resources of sets."""

    def __init__(self, cache: Cache, writer: Writer) -> None:
        self._cache, self._writer = cache, writer

    async def ensure(self, target: DesiredSet) -> None:
        """Create and correct the secondary resources of a set. Raises ReconcileError if a resource cannot be created,
        so that no object that needs the resource is created (OBJ-236, OBJ-823)."""
        pcs, cache, writer = target.pcs, self._cache, self._writer
        # The ServiceAccount comes first, because the control plane deletes a token Secret whose ServiceAccount it
        # cannot find.
        await writer.ensure(cache.accounts, secondary_resources.service_account(pcs))
        await await_all(
            [
                writer.ensure(cache.secrets, secondary_resources.token_secret(pcs)),
                writer.ensure(cache.roles, secondary_resources.role(pcs)),
                writer.ensure(cache.role_bindings, secondary_resources.role_binding(pcs)),
                self._ensure_claims(target),
                self._ensure_domains(target),
            ]
        )
        await self._retire_legacy_secret(pcs)

    async def _retire_legacy_secret(self, pcs: PodCliqueSet) -> None:
        """Delete the token Secret of earlier versions when the current Secret has its token and no pod mounts the old
        Secret. Pods are listed only while the old Secret exists (OBJ-245)."""
        namespace, name = pcs.metadata.key
        old = self._cache.secrets.get(namespace, names.legacy_secret(name))
        new = self._cache.secrets.get(namespace, names.token_secret(name))
        if old is None or new is None or not new.has_token or old.metadata.deletion_timestamp is not None:
            return
        if not ownership.owns(pcs, old):
            return
        pods = await self._writer.list_pods(namespace, f"{labels.MANAGED_SELECTOR},{labels.PART_OF}={name}")
        if not any(secondary_resources.mounts_secret(pod, old.metadata.name) for pod in pods):
            await self._writer.delete(self._cache.secrets, old)

    async def _ensure_claims(self, target: DesiredSet) -> None:
        pcs, owner, external = target.pcs, set_reference(target.pcs), self._cache.claim_spec
        manifests = [
            claims.manifest(pcs, claim, claims.claim_spec(pcs, claim.sharing, external), owner)
            for claim in target.claims
        ]
        await self._ensure_all(self._cache.claims, manifests)

    async def _ensure_domains(self, target: DesiredSet) -> None:
        pcs, owner = target.pcs, set_reference(target.pcs)
        manifests = [mnnvl.compute_domain(pcs, domain.index, domain.group, owner) for domain in target.domains]
        await self._ensure_all(self._cache.domains, manifests)

    async def _ensure_all(self, informer: Informer[Any], manifests: list[Manifest]) -> None:
        await await_all(self._writer.ensure(informer, manifest) for manifest in manifests)
