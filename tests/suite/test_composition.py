"""Tests that PodGangs are recognized by the cliques that they hold, if their names are unknown."""

from __future__ import annotations

from conformance.grove import labels
from conformance.grove.expected import expected
from conformance.grove.fields import name
from conformance.grove.workloads import load
from conformance.history.view import View
from conformance.testing.composition import (
    all_in_gangs,
    cliques_of,
    gang_of,
    is_initialized,
    none_in_gangs,
    with_actual_gang_names,
)
from tests.history.story import Story

EXPECTED = expected(dict(load("disaggregated", {})))


def view(names: dict[str, str], *, without: str = "") -> View:
    """Return a view of the gangs in `names`, under their new names, and without the PodGroup of one clique."""
    story = Story()
    for gang in EXPECTED.gangs.values():
        if gang.name in names:
            cliques = sorted(gang.minimums.keys() - {without}, reverse=True)
            groups = [{"name": clique, "minReplicas": 0} for clique in cliques]
            story.record("podgangs", names[gang.name], {"metadata": {}, "spec": {"podgroups": groups}})
    result = View()
    for record in story.history.records():
        result.apply(record)
    return result


def test_gangs_are_found_by_the_cliques_that_they_hold() -> None:
    names = {name: f"other-{number}" for number, name in enumerate(EXPECTED.gangs)}
    actual = with_actual_gang_names(EXPECTED, view(names))
    assert {gang.name for gang in actual.gangs.values()} == set(names.values())
    for old, new in names.items():
        expected, observed = EXPECTED.gangs[old], actual.gangs[new]
        assert (observed.minimums, observed.owner, observed.labels) == (
            expected.minimums,
            expected.owner,
            expected.labels,
        )


def test_a_missing_gang_keeps_its_name() -> None:
    first, *rest = EXPECTED.gangs
    actual = with_actual_gang_names(EXPECTED, view({first: "other"}))
    assert set(actual.gangs) == {"other", *rest}


def test_a_gang_that_lacks_a_clique_is_found_by_the_others() -> None:
    first, *rest = EXPECTED.gangs
    lost = min(EXPECTED.gangs[first].minimums)
    names = {first: "other", **{gang: gang for gang in rest}}
    assert set(with_actual_gang_names(EXPECTED, view(names, without=lost)).gangs) == {"other", *rest}


def test_one_gang_does_not_count_for_two() -> None:
    story = Story()
    every = [{"name": clique, "minReplicas": 0} for clique in EXPECTED.cliques]
    story.record("podgangs", "all", {"metadata": {}, "spec": {"podgroups": every}})
    actual = with_actual_gang_names(EXPECTED, story.history.view())
    assert len(actual.gangs) == len(EXPECTED.gangs) > 1 and "all" in actual.gangs


def test_cliques_name_the_gangs_that_hold_them() -> None:
    names = {name: f"other-{number}" for number, name in enumerate(EXPECTED.gangs)}
    actual = with_actual_gang_names(EXPECTED, view(names)).cliques
    for clique in EXPECTED.cliques.values():
        now = actual[clique.name]
        assert now.gang == now.labels[labels.GANG] == names[clique.gang]
        assert now.base_gang == now.labels.get(labels.BASE_GANG, "") == names.get(clique.base_gang, "")
        assert {**now.labels, labels.GANG: "", labels.BASE_GANG: ""} == {
            **clique.labels,
            labels.GANG: "",
            labels.BASE_GANG: "",
        }


def test_a_gang_is_found_by_a_clique() -> None:
    first, *rest = EXPECTED.gangs
    current = view({first: "other"})
    held_cliques, other_cliques = sorted(EXPECTED.gangs[first].minimums), sorted(EXPECTED.gangs[rest[0]].minimums)
    assert (
        name(gang_of(current, held_cliques[0])) == "other"
        and cliques_of(gang_of(current, held_cliques[0])) == held_cliques
    )
    assert gang_of(current, other_cliques[0]) is None and cliques_of(None) == []
    assert all_in_gangs(held_cliques)(current) is True and none_in_gangs(other_cliques)(current) is True
    assert (
        str(all_in_gangs([*held_cliques, other_cliques[0]])(current))
        == f"no gang has a PodGroup for {other_cliques[0]}"
    )
    assert (
        str(none_in_gangs([held_cliques[0], *other_cliques])(current))
        == f"gangs still have PodGroups for {held_cliques[0]}"
    )
    assert str(is_initialized(held_cliques[0])(current)) == f"gang of {held_cliques[0]}: Initialized is absent"
