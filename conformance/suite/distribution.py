"""Which worker runs which test: the tests of one scene belong to one worker, which plays it once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]


class Distribution(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out whole groups of tests, the largest first, to whichever worker has little left to do."""

    def __init__(self, config: pytest.Config, log: Any, groups: Mapping[str, str]) -> None:
        super().__init__(config, log)
        self._groups = groups

    def _split_scope(self, nodeid: str) -> str:
        return self._groups[nodeid]

    def remove_node(self, node: object) -> str | None:
        """Takes back what a lost worker had to do, but for the test in which it was lost: that one is over."""
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
