"""The distribution of tests: all tests of a scene run on one worker, which plays the scene once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]


class Distribution(LoadScopeScheduling):  # type: ignore[misc]
    """Distributes groups of tests, dearest first, to the worker with the least left to do, so that no worker is left
    alone with a long group.

    The groups in `lone_groups` come last, and one worker gets all of them. The other workers are shut down, and that
    worker waits until they have ended (`other_workers.py`).
    """

    def __init__(
        self,
        config: pytest.Config,
        log: Any,
        groups: Mapping[str, str],
        lone_groups: Collection[str] = (),
        lone_worker: str = "",
        costs: Mapping[str, float] | None = None,
    ) -> None:
        """`lone_worker`: the one worker that may get the `lone_groups`; empty for any worker. `costs`: the
        seconds that each group takes; without them, a group with more tests is dearer."""
        super().__init__(config, log)
        self._groups, self._lone_groups, self._lone_worker = groups, lone_groups, lone_worker
        self._costs = costs or {}

    def _split_scope(self, nodeid: str) -> str:
        return self._groups[nodeid]

    def _assign_work_unit(self, node: Any) -> None:
        next_scope = max(self.workqueue, key=self._precedence)
        self.workqueue.move_to_end(next_scope, last=False)
        if next_scope in self._lone_groups and (
            self._is_excluded(node)
            or any(self._plays_alone(other) for other in self.assigned_work if other is not node)
        ):
            node.shutdown()
        else:
            super()._assign_work_unit(node)

    def _precedence(self, scope: str) -> tuple[bool, float, int]:
        return scope not in self._lone_groups, self._costs.get(scope, 0.0), len(self.workqueue[scope])

    def _reschedule(self, node: Any) -> None:
        """Assign groups until a worker has a second test or is shut down, because a worker does not start a test before
        it knows the next one. A worker that has not collected the tests yet gets its groups later."""
        if node not in self.registered_collections:
            return
        super()._reschedule(node)
        while not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            super()._reschedule(node)

    def _is_excluded(self, node: Any) -> bool:
        return bool(self._lone_worker) and node.gateway.id != self._lone_worker

    def _plays_alone(self, node: object) -> bool:
        return any(scope in self._lone_groups for scope in self.assigned_work[node])

    def remove_node(self, node: object) -> str | None:
        """Take back the tests of a lost worker, except the test in which it was lost, which counts as finished."""
        workload = self.assigned_work.pop(node)
        if self.collection is None:
            self.registered_collections.pop(node, None)  # otherwise the replacement would count as an additional worker
        running: tuple[dict[str, bool], str] | None = next(
            ((unit, test) for unit in workload.values() for test, is_done in unit.items() if not is_done), None
        )
        if running is None:
            return None
        unit, test = running
        unit[test] = True
        self.workqueue.update({scope: unit for scope, unit in workload.items() if not all(unit.values())})
        for other in self.assigned_work:
            self._reschedule(other)
        return test
