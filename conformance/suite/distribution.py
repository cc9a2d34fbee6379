"""Which worker runs which test: the tests of one scene run on one worker, which plays it once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]


class Distribution(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out groups of tests, the largest first, to the worker with the least left to do."""

    def __init__(self, config: pytest.Config, log: Any, groups: Mapping[str, str]) -> None:
        super().__init__(config, log)
        self._groups = groups

    def _split_scope(self, nodeid: str) -> str:
        return self._groups[nodeid]

    def remove_node(self, node: object) -> str | None:
        """Take back the tests of a lost worker, except the one in which it was lost: that one is over."""
        workload = self.assigned_work.pop(node)
        running: tuple[dict[str, bool], str] | None = next(
            ((unit, test) for unit in workload.values() for test, done in unit.items() if not done), None
        )
        if running is None:
            return None
        unit, test = running
        unit[test] = True
        self.workqueue.update({scope: unit for scope, unit in workload.items() if not all(unit.values())})
        for other in self.assigned_work:
            self._reschedule(other)
        return test
