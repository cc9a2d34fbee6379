"""Gang termination: deletes the cliques that `plan/termination.py` selects; the reconcilers then recreate them.

The breached objects are deleted last. If the operator is killed in between, its successor still finds the cause and
repeats the termination, so that no termination remains incomplete (CHG-RS-01).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable

from kube.errors import ApiError
from reference_impl.api.models import PODCLIQUESETS, PodClique, PodCliqueScalingGroup, PodCliqueSet, to_json
from reference_impl.control.cache import BY_OWNER, Cache
from reference_impl.control.writer import Writer, await_all
from reference_impl.plan import conditions, termination
from reference_impl.runtime.clock import now

log = logging.getLogger(__name__)
MAX_TRIES = 10
"""Maximum number of attempts to write a scaling group that other clients also write. Repeating the whole termination
instead would delete objects that have been recreated in the meantime."""


class ConflictError(Exception):
    """An object changed between the read and the write in every attempt."""


class Termination:
    """Terminates replicas of sets and of scaling groups."""

    def __init__(
        self, cache: Cache, writer: Writer, before: Callable[[PodCliqueSet, int], Awaitable[None]] | None = None
    ) -> None:
        """`before` is called before a replica of a set is terminated."""
        self._cache, self._writer, self._before_termination = cache, writer, before

    async def terminate_in_set(self, pcs: PodCliqueSet) -> float | None:
        """Terminate the replicas of a set whose delay is over. Return the number of seconds until the next replica
        is due."""
        cliques, groups = self._cache.cliques.indexed(BY_OWNER, pcs.metadata.uid), self._groups(pcs)
        due_terminations = termination.due_in_set(pcs, cliques, groups, time.time())
        for index, causes in due_terminations.causes.items():
            await self._terminate_replica(pcs, index, causes)
        return due_terminations.wait

    async def terminate_in_group(self, pcs: PodCliqueSet, group: PodCliqueScalingGroup) -> float | None:
        """Terminate single replicas of a scaling group that has enough sound replicas. Return the number of seconds
        until the next replica is due."""
        clique = self._cache.child_finder(self._cache.cliques, group)
        due_terminations = termination.due_in_group(pcs, group, clique, time.time())
        for index, causes in due_terminations.causes.items():
            log.info(
                "terminating replica %d of scaling group %s: breached for the termination delay",
                index,
                group.metadata.name,
            )
            await self._delete_cliques([m for j, m in termination.members(group, clique) if j == index], causes)
        return due_terminations.wait

    async def _terminate_replica(self, pcs: PodCliqueSet, index: int, causes: Collection[str]) -> None:
        log.info("terminating replica %d of %s: breached for the termination delay", index, pcs.metadata.name)
        groups = [group for group in self._groups(pcs) if termination.index_of(group) == index]
        owners = [pcs.metadata.uid, *(group.metadata.uid for group in groups)]
        cliques = [c for uid in owners for c in self._cache.cliques.indexed(BY_OWNER, uid)]
        cliques = [clique for clique in cliques if termination.index_of(clique) == index]
        if self._before_termination is not None:
            await self._before_termination(pcs, index)
        await self._delete_cliques([clique for clique in cliques if clique.metadata.uid not in causes])
        await await_all(self._mark_terminating(group, index) for group in groups)
        await self._delete_cliques([clique for clique in cliques if clique.metadata.uid in causes])
        note = f"PodCliqueSet replica {index} deleted"
        await self._writer.post_event(PODCLIQUESETS, pcs, "Normal", termination.TERMINATED, note)

    async def _delete_cliques(self, cliques: Iterable[PodClique], last_uids: Collection[str] = ()) -> None:
        """Delete cliques. Cliques whose UIDs are in `last_uids` are deleted after all other cliques."""
        living_cliques = [clique for clique in cliques if clique.metadata.deletion_timestamp is None]
        for is_last in (False, True):
            await await_all(
                self._writer.delete(self._cache.cliques, clique)
                for clique in living_cliques
                if (clique.metadata.uid in last_uids) is is_last
            )

    async def _mark_terminating(self, group: PodCliqueScalingGroup, index: int) -> None:
        """Set the condition that a scaling group has while its set's replica is being terminated."""
        for _ in range(MAX_TRIES):
            current = await self._writer.read(self._cache.groups, group)
            old = current.status.conditions if current is not None and current.status else None
            if current is None or conditions.is_true(old, termination.TERMINATING):
                return
            body = {
                "status": {
                    "conditions": to_json(
                        conditions.with_condition(old, termination.terminating_condition(index, now()))
                    )
                }
            }
            try:
                await self._writer.patch(self._cache.groups, current, body, status=True, guard=True)
            except ApiError as error:
                if not error.conflict:
                    raise
            else:
                return
        raise ConflictError(f"scaling group {group.metadata.name} changed in each of {MAX_TRIES} attempts")

    def _groups(self, pcs: PodCliqueSet) -> list[PodCliqueScalingGroup]:
        return self._cache.groups.indexed(BY_OWNER, pcs.metadata.uid)
