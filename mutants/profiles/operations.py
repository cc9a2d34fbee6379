"""Mutants of leader election. They show when an operator is stopped or restarted, or is not the only instance."""

from __future__ import annotations

import asyncio

from kube import leases
from kube.leases import Elector
from kube.objects import Key
from mutants.registry import mutant
from mutants.replacement import Original, around, instead_of, replace, replace_unnoted
from reference_impl.admission import server
from reference_impl.control.podclique import CliqueReconciler


@mutant("operator", "works without the lease", "OPS-001")
def _lease_ignored() -> None:
    async def acquire(self: Elector) -> None:
        return

    async def hold(self: Elector) -> None:
        await asyncio.Event().wait()

    replace(Elector, "acquire", acquire)
    replace(Elector, "hold", hold)
    replace_unnoted(Elector, "check", lambda self: None)


@mutant("operator", "takes the lease from a live leader", "OPS-001")
def _live_lease_taken() -> None:
    replace(leases, "can_acquire", lambda *_: True)


@mutant("operator", "acquires the lease and never renews it", "OPS-001")
def _lease_not_renewed() -> None:
    async def hold(self: Elector) -> None:
        await asyncio.Event().wait()

    replace(Elector, "hold", hold)
    replace_unnoted(Elector, "check", lambda self: None)


@mutant("operator", "serves webhooks only while it leads", "OPS-002")
def _webhooks_of_the_leader_only() -> None:
    led: list[bool] = []
    original_acquire, original_review = Elector.acquire, server.Hooks.review

    async def acquire(self: Elector) -> None:
        await original_acquire(self)
        led.append(True)

    async def review(self: server.Hooks, hook: server.Hook, body: bytes) -> dict[str, object]:
        if not led:
            raise ConnectionError("not the leader")
        return await original_review(self, hook, body)

    replace(Elector, "acquire", acquire)
    replace(server.Hooks, "review", review)


@mutant("operator", "never takes the lease of a dead leader", "OPS-003")
@around(leases, "can_acquire")
def _expired_lease_ignored(
    original: Original, observation: leases.Observation, identity: str, terms: leases.LeaseTiming, now: float
) -> bool:
    return original(observation, identity, terms, observation.first_seen)


@mutant("operator", "deletes the pods that it finds when it first looks at a clique", "OPS-006")
@around(CliqueReconciler, "reconcile", memory=set)
async def _begins_anew(original: Original, visited: set[Key], self: CliqueReconciler, key: Key) -> float | None:
    clique = self._cache.cliques.get(*key)
    if clique is not None and key not in visited:
        visited.add(key)
        for pod in self._cache.pods_of(clique):
            await self._writer.delete(self._cache.pods, pod)
    return await original(self, key)


@mutant("operator", "keeps the lease when it is stopped", "OPS-004")
@instead_of(Elector, "release")
async def _lease_kept(self: Elector) -> None:
    return


@mutant("operator", "works before it has the lease", "OPS-005")
def _works_while_it_waits() -> None:
    original_acquire, original_hold = Elector.acquire, Elector.hold

    async def acquire(self: Elector) -> None:
        return

    async def hold(self: Elector) -> None:
        await original_acquire(self)
        await original_hold(self)

    replace(Elector, "acquire", acquire)
    replace(Elector, "hold", hold)
    replace_unnoted(Elector, "check", lambda self: None)
