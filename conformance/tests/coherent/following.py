"""Expectations about the updates in the scene SetUpdatedFourTimes: layouts, plans, and components that do not
change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from conformance.grove import labels, updates
from conformance.grove.coherent import plan
from conformance.grove.coherent.change import LayoutChange
from conformance.grove.coherent.model import Component, Key, Layout
from conformance.grove.fields import label, uid
from conformance.testing.scene import Recorded, Scene
from conformance.tests.coherent import sets
from conformance.tests.coherent.scenes import SetUpdatedFourTimes
from conformance.tests.coherent.sets import SETS

Run = Recorded[SetUpdatedFourTimes]
AnyScene = TypeVar("AnyScene", bound=Scene)


def layouts(run: Run, update: str) -> list[Layout]:
    """Return the layouts that the map declared during one of the updates, one per version of the map."""
    run.given(f"{update}: updated")
    return sets.layouts(run.between(f"{update}: change", f"{update}: at rest"), "s")


def generation_hash(run: Run, update: str) -> str:
    """Return the generation hash of the set after an update."""
    return updates.generation_hash(run.at(f"{update}: at rest").get(SETS, "s"))


def expect_plan(
    run: Recorded[AnyScene],
    title: str,
    changes: Sequence[LayoutChange],
    components: Sequence[Component],
    **options: bool,
) -> None:
    """Expect that the changes to a map during an update of these components follow one of the accepted plans."""
    batches, readings = [change.batch for change in changes], plan.readings(components, **options)
    texts = [str(batch) for batch in batches]
    permitted = any(plan.follows(batches, reading, components) for reading in readings)
    run.expect(f"{title}: sub-steps", texts if permitted else [str(batch) for batch in readings[0]], texts)


def expect_unchanged(run: Run, update: str, *names: str) -> None:
    """Expect that an update changes neither the pods of these components nor the gangs that hold them."""
    templates = [clique for name in names for clique in ([name] if name == "f" else sets.members(name))]
    before, after = run.at(f"{update}: change"), run.at(f"{update}: at rest")
    gangs_by_pod = [
        {uid(pod): label(pod, labels.GANG) for pod in sets.pods_of_templates(view, "s", *templates)}
        for view in (before, after)
    ]
    run.same(f"{update}: pods that do not change, and their gangs", gangs_by_pod[0], gangs_by_pod[1])
    keys = [Key("clique" if name == "f" else "group", name) for name in names]
    sizes = [
        {f"{entry.key} {key}": entry.size(key) for entry in sets.layout(view, "s") for key in keys if entry.size(key)}
        for view in (before, after)
    ]
    run.expect(f"{update}: entries that hold them", sizes[0], sizes[1])
