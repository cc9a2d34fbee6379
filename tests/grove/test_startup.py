"""Tests of the start-up order oracle with the scenarios OBJ-S69 to OBJ-S75."""

from __future__ import annotations

import pytest

from conformance.grove import startup, template
from conformance.grove.expected import expected
from tests.grove.test_expected import clique


def parents(startup_type, cliques, group=(), minimums=None, **fields):
    """Return the parents of each clique object that has parents, with their minimums; None if the specification leaves
    them open."""
    templates = [
        clique(name, 3, minAvailable=(minimums or {}).get(name, 1), startsAfter=after)
        for name, after in cliques.items()
    ]
    groups = [{"name": "sg", "cliqueNames": list(group), "replicas": 3, **fields}] if group else []
    spec = {
        "cliqueStartupType": f"CliqueStartupType{startup_type}",
        "cliques": templates,
        "podCliqueScalingGroups": groups,
    }
    workload = {"metadata": {"name": "p"}, "spec": {"replicas": 1, "template": spec}}
    pcs, by_clique = template.read(workload), {}
    for expected_clique in expected(workload).cliques.values():
        position = startup.clique_position(pcs, expected_clique.name, expected_clique.labels)
        assert position is not None and position.clique == expected_clique.template.name
        by_clique[expected_clique.name] = startup.parents(pcs, position)
    return {name: after for name, after in by_clique.items() if after != {}}


F = {"fe": [], "ld": [], "wk": ["fe", "ld"]}


def test_any_order_has_no_parents():
    assert parents("AnyOrder", F, ["ld", "wk"]) == {}


def test_in_order():
    """Scenarios OBJ-S70 and OBJ-S71."""
    assert parents("InOrder", F, ["ld", "wk"], {"ld": 2}) == {
        "p-0-sg-0-ld": {"p-0-fe": 1},
        "p-0-sg-0-wk": {"p-0-sg-0-ld": 2},
        "p-0-sg-1-wk": {"p-0-sg-1-ld": 2},
        "p-0-sg-2-wk": {"p-0-sg-2-ld": 2},
    }
    two = parents("InOrder", F, ["ld", "wk"], minAvailable=2)
    assert two["p-0-sg-0-wk"] == two["p-0-sg-1-wk"] == {"p-0-sg-0-ld": 1, "p-0-sg-1-ld": 1}


def test_the_order_after_a_clique_outside_a_scaled_gang_is_open():
    by_clique = parents("InOrder", {"a": [], "x": [], "b": []}, ["a", "b"])
    assert by_clique["p-0-sg-0-b"] == {"p-0-x": 1} and by_clique["p-0-sg-1-b"] is None
    assert parents("InOrder", {"x": [], "b": []}, ["b"]) == {"p-0-sg-0-b": {"p-0-x": 1}}, "nothing is open here"


def test_explicit():
    """Scenarios OBJ-S72 and OBJ-S73."""
    by_clique = parents("Explicit", F, ["ld", "wk"])
    assert list(by_clique["p-0-sg-0-wk"]) == ["p-0-fe", "p-0-sg-0-ld"]
    assert by_clique["p-0-sg-2-wk"] == {"p-0-sg-2-ld": 1} and "p-0-sg-0-ld" not in by_clique
    after = parents("Explicit", {"z": ["wk"], "wk": []}, ["wk"], minAvailable=2)
    assert after == {"p-0-z": {"p-0-sg-0-wk": 1, "p-0-sg-1-wk": 1}}


def test_floors_are_those_of_whole_names():
    """Scenario OBJ-S75."""
    assert parents("InOrder", {"b": [], "a-b": [], "c": []}, minimums={"b": 1, "a-b": 2})["p-0-c"] == {"p-0-a-b": 2}


@pytest.mark.parametrize("tags", [{}, {"grove.io/podcliqueset-replica-index": "x"}])
def test_a_clique_without_readable_labels_has_no_position(tags):
    workload = {"metadata": {"name": "p"}, "spec": {"replicas": 1, "template": {"cliques": [clique("fe")]}}}
    assert startup.clique_position(template.read(workload), "p-0-fe", tags) is None
