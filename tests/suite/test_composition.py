"""PodGangs that are known by what they hold, where their names say nothing."""

from __future__ import annotations

from conformance.grove.expected import expected
from conformance.grove.workloads import load
from conformance.history.view import View
from conformance.testing.composition import by_composition
from tests.history.story import Story

WANTED = expected(dict(load("disaggregated", {})))


def view(names: dict[str, str]) -> View:
    """The expected gangs with other names."""
    story = Story()
    for gang in WANTED.gangs.values():
        if gang.name in names:
            groups = [{"name": each, "minReplicas": 0} for each in sorted(gang.minimums, reverse=True)]
            story.tell("podgangs", names[gang.name], {"metadata": {}, "spec": {"podgroups": groups}})
    found = View()
    for record in story.history.records():
        found.apply(record)
    return found


def test_gangs_are_found_by_the_cliques_that_they_hold() -> None:
    names = {name: f"other-{number}" for number, name in enumerate(WANTED.gangs)}
    found = by_composition(WANTED, view(names))
    assert {each.name for each in found.gangs.values()} == set(names.values())
    for old, new in names.items():
        was, now = WANTED.gangs[old], found.gangs[new]
        assert (now.minimums, now.owner, now.labels) == (was.minimums, was.owner, was.labels)


def test_a_gang_that_is_not_there_keeps_its_name() -> None:
    first, *rest = WANTED.gangs
    found = by_composition(WANTED, view({first: "other"}))
    assert set(found.gangs) == {"other", *rest}
