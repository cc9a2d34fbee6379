"""PodGangs that are known by what they hold."""

from __future__ import annotations

from dataclasses import replace

from conformance.grove.expected import Expected
from conformance.grove.fields import items, name, text
from conformance.history.view import View


def by_composition(wanted: Expected, view: View) -> Expected:
    """The same objects, with each gang under the name of the gang that holds its cliques: names of gangs of a
    PodGangMap say nothing. A gang that does not exist keeps its name."""
    named = {frozenset(text(group, "name") for group in items(found, "spec", "podgroups")): name(found)
             for found in view.list("podgangs")}  # fmt: skip
    gangs = {}
    for gang in wanted.gangs.values():
        found = named.get(frozenset(gang.minimums), gang.name)
        gangs[found] = replace(gang, name=found)
    return replace(wanted, gangs=gangs)
