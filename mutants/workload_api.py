"""Wrong and permitted differences of the back-end for gangs on kube-scheduler (docs/workload-api.md).

`CAUGHT_BY` and `PASSES` say which requirements judge a difference; it is registered as a mutant or variant as soon as
there is one. `tests/mutants/test_workload_api.py` shows for each without a cluster that it changes what it says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mutants.registry import Apply, mutant, variant

CAUGHT_BY: dict[str, tuple[str, ...]] = {}
"""Name of a mutant → requirements that must fail because of it."""
PASSES: dict[str, tuple[str, ...]] = {}
"""Name of a variant → requirements that must pass nevertheless."""


@dataclass(frozen=True)
class Difference:
    """A difference of the operator from the reference. `text` says what it does; `seen_by` are tests in
    tests/reference/workload_api that fail with it: `module:function`, `#n` for row n of its parameters."""

    name: str
    text: str
    apply: Apply
    seen_by: tuple[str, ...]


class Differences:
    """Differences by name."""

    def __init__(self, judged: dict[str, tuple[str, ...]], register: Callable[..., Callable[[Apply], Apply]]) -> None:
        self.all: dict[str, Difference] = {}
        self._judged, self._register = judged, register

    def add(self, name: str, text: str, *seen_by: str) -> Callable[[Apply], Apply]:
        """Register the function as the difference of this name."""

        def register(apply: Apply) -> Apply:
            assert name not in self.all, name
            self.all[name] = Difference(name, text, apply, seen_by)
            if ids := self._judged.get(name):
                self._register(name, "operator", text, *ids)(apply)
            return apply

        return register


WRONG = Differences(CAUGHT_BY, mutant)
PERMITTED = Differences(PASSES, variant)
