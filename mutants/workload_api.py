"""Wrong and permitted differences of the Workload API back-end (docs/workload-api.md).

`CAUGHT_BY` and `PASSES` list the requirements that judge a difference. A difference that has such requirements is
registered as a mutant or variant. `tests/mutants/test_workload_api_mutants.py` shows without a cluster that each
difference changes what it claims to change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mutants.registry import Apply, mutant, variant
from mutants.replacement import replace
from reference_impl.api.models import PodGang
from reference_impl.plan.children import Manifest
from reference_impl.plan.workload_api import manifests, standing
from reference_impl.plan.workload_api.mode import Form
from reference_impl.plan.workload_api.tree import Tree

CAUGHT_BY: dict[str, tuple[str, ...]] = {
    "wl-child-optional": ("WAPI-070",),
    "wl-minimum-of-one": ("WAPI-071",),
    "wl-subgroups-flattened": ("WAPI-075",),
    "wl-key-of-replicas-lost": ("WAPI-075",),
    "wl-key-of-cliques-lost": ("WAPI-075",),
    "wl-preferred-enforced": ("WAPI-075",),
    "wl-priority-of-leaves-only": ("WAPI-077",),
    "wl-surplus-cut": ("WAPI-078", "WAPI-079"),
    "wl-objects-unowned": ("WAPI-074",),
    "wl-names-reused": ("WAPI-087",),
    "wl-parents-missing": ("WAPI-070",),
    "wl-workload-left-out": ("WAPI-073",),
    "wl-scaled-gangs-plain": ("WAPI-086",),
    "wl-refused-gang-released": ("WAPI-078",),
    "wl-refusal-without-event": ("WAPI-079",),
    "wl-preferred-silent": ("WAPI-076",),
    "wl-conditions-unwritten": ("WAPI-081",),
    "wl-pods-without-group": ("WAPI-072", "WAPI-080"),
    "wl-all-pods-in-one-group": ("WAPI-072",),
    "wl-extras-inside": ("WAPI-082",),
    "wl-extras-never": ("WAPI-080",),
    "wl-extras-in-no-group": ("WAPI-085",),
    "wl-lost-pods-wait": ("WAPI-088",),
    "wl-children-optional-from-the-start": ("WAPI-070", "WAPI-080"),
    "wl-shape-never-rebuilt": ("WAPI-088",),
    "wl-deleted-not-repaired": ("WAPI-083",),
    "wl-pods-deleted-with-groups": ("WAPI-084",),
    "wl-foreign-objects-taken": ("WAPI-094",),
}
"""Name of a mutant → requirements that must fail because of it."""
_MAPPING = ("WAPI-070", "WAPI-071", "WAPI-072", "WAPI-073", "WAPI-074", "WAPI-075")
PASSES: dict[str, tuple[str, ...]] = {
    "wl-other-names": (*_MAPPING, "WAPI-083", "WAPI-086", "WAPI-087"),
    "wl-other-template-names": _MAPPING,
    "wl-leaves-first": (*_MAPPING, "WAPI-080", "WAPI-083"),
    "wl-workload-named-apart": (*_MAPPING, "WAPI-083", "WAPI-087"),
    "wl-extras-at-once": (*_MAPPING, "WAPI-081", "WAPI-085"),
    "wl-lost-pods-together": (*_MAPPING, "WAPI-083", "WAPI-084"),
    "wl-one-child-once-placed": ("WAPI-070", "WAPI-080", "WAPI-085", "WAPI-088"),
    "wl-members-evicted-singly": _MAPPING,
    "wl-own-labels-only": (*_MAPPING, "WAPI-083", "WAPI-087"),
    "wl-objects-late": (*_MAPPING, "WAPI-080", "WAPI-083", "WAPI-088"),
}
"""Name of a variant → requirements that must pass despite it."""
SETTINGS: dict[str, dict[str, Any]] = {
    # Pods above a gang's minimum that exist from the start can take the nodes of other gangs' minimums (WL-SH14).
    "wl-extras-at-once": {"exempt": ("WAPI-082",)},
    "wl-lost-pods-together": {"conflict": "wl-one-child-once-placed replaces the same function"},
}
"""Name of a variant → additional arguments of its registration."""


@dataclass(frozen=True)
class Difference:
    """A difference of the operator from the reference. `text` says what it does. `caught_by` names tests in
    tests/reference/workload_api that fail with it, as `module:function` or `module:function#n` for row n of its
    parameters."""

    name: str
    text: str
    apply: Apply
    caught_by: tuple[str, ...]


class Differences:
    """A collection of differences by name."""

    def __init__(self, judged: dict[str, tuple[str, ...]], register: Callable[..., Callable[[Apply], Apply]]) -> None:
        self.all: dict[str, Difference] = {}
        self._judged, self._register = judged, register

    def add(self, name: str, text: str, *caught_by: str) -> Callable[[Apply], Apply]:
        """Register the function as the difference with this name."""

        def register(apply: Apply) -> Apply:
            assert name not in self.all, name
            self.all[name] = Difference(name, text, apply, caught_by)
            if ids := self._judged.get(name):
                self._register("operator", text, *ids, name=name, **SETTINGS.get(name, {}))(apply)
            return apply

        return register


WRONG = Differences(CAUGHT_BY, mutant)
PERMITTED = Differences(PASSES, variant)


def change_objects(change: Callable[[PodGang, list[Manifest]], list[Manifest]]) -> None:
    """Change the desired objects of each gang before they are compared with the existing objects."""
    original = manifests.desired

    def desired(
        gang: PodGang, of: Tree, form: Form, counts: Any, *, required_groups: int | None = None
    ) -> list[Manifest]:
        return change(gang, original(gang, of, form, counts, required_groups=required_groups))

    replace(manifests, "desired", desired)


def extras_at_once() -> None:
    """Create pods above the minimum together with the minimum, as the proposal says (WL-HD7)."""
    replace(standing, "max_pods", lambda now, least, pods, mode: None)


def lost_pods_together() -> None:
    """Require all children again before a lost pod is replaced, as the proposal says."""
    replace(standing, "required_groups", lambda now, mode: None)
