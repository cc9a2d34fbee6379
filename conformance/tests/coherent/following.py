"""What the updates of SetUpdatedFourTimes did, beside what the plan says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from conformance.grove import labels, updates
from conformance.grove.coherent import plan
from conformance.grove.coherent.change import Change
from conformance.grove.coherent.model import Component, Key, Layout
from conformance.grove.fields import label, uid
from conformance.testing.scene import Recorded, Scene
from conformance.tests.coherent import sets
from conformance.tests.coherent.scenes import SetUpdatedFourTimes
from conformance.tests.coherent.sets import SETS

Run = Recorded[SetUpdatedFourTimes]
AnyScene = TypeVar("AnyScene", bound=Scene)


def layouts(run: Run, each: str) -> list[Layout]:
    """What the map asked for during one of the updates."""
    run.given(f"{each}: updated")
    return sets.layouts(run.between(f"{each}: change", f"{each}: at rest"), "s")


def generation(run: Run, each: str) -> str:
    """The generation hash that an update led to."""
    return updates.generation(run.at(f"{each}: at rest").get(SETS, "s"))


def by_plan(
    run: Recorded[AnyScene], what: str, found: Sequence[Change], components: Sequence[Component], **how: bool
) -> None:
    """An update of these components, whose writes of a map are found, follows one of the accepted plans."""
    seen, wanted = [each.batch for each in found], plan.readings(components, **how)
    texts = [str(batch) for batch in seen]
    permitted = any(plan.follows(seen, reading, components) for reading in wanted)
    run.expect(f"{what}: sub-steps", texts if permitted else [str(batch) for batch in wanted[0]], texts)


def kept_in_place(run: Run, each: str, *parts: str) -> None:
    """The pods of these components are those of before, and so are the gangs that hold them."""
    templates = [template for part in parts for template in ([part] if part == "f" else sets.members(part))]
    before, after = run.at(f"{each}: change"), run.at(f"{each}: at rest")
    place = [
        {uid(pod): label(pod, labels.GANG) for pod in sets.of_template(view, "s", *templates)}
        for view in (before, after)
    ]
    run.same(f"{each}: pods that do not change, and their gangs", place[0], place[1])
    keys = [Key("clique" if part == "f" else "group", part) for part in parts]
    held = [
        {f"{entry.key} {key}": entry.size(key) for entry in sets.layout(view, "s") for key in keys if entry.size(key)}
        for view in (before, after)
    ]
    run.expect(f"{each}: entries that hold them", held[0], held[1])
