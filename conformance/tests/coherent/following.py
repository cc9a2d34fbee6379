"""What the updates of SetUpdatedFourTimes did, beside what the plan says."""

from __future__ import annotations

from conformance.grove import labels, updates
from conformance.grove.coherent import change, plan
from conformance.grove.coherent.model import Key, Layout
from conformance.grove.fields import label, uid
from conformance.testing.scene import Recorded
from conformance.tests.coherent import sets
from conformance.tests.coherent.scenes import CHANGES, SetUpdatedFourTimes
from conformance.tests.coherent.sets import SETS

Run = Recorded[SetUpdatedFourTimes]


def layouts(run: Run, each: str) -> list[Layout]:
    """What the map asked for during one of the updates."""
    run.given(f"{each}: updated")
    return sets.layouts(run.between(f"{each}: change", f"{each}: at rest"), "s")


def generation(run: Run, each: str) -> str:
    """The generation hash that an update led to."""
    return updates.generation(run.at(f"{each}: at rest").get(SETS, "s"))


def batches(run: Run, each: str) -> list[str]:
    """The sub-steps of an update, as texts."""
    return [str(found.batch) for found in change.changes(layouts(run, each))]


def planned(run: Run, each: str) -> list[list[str]]:
    """The sequences of sub-steps that are accepted."""
    in_scope = sets.components(run.scene.workload, CHANGES[each][1])
    return [[str(batch) for batch in reading] for reading in plan.readings(in_scope)]


def follows(run: Run, each: str) -> None:
    """The update follows one of the accepted plans."""
    seen, wanted = batches(run, each), planned(run, each)
    run.expect(f"{each}: sub-steps", seen if seen in wanted else wanted[0], seen)


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
