"""Tests of `lab gaps`: the objects that each form (an API with a scheduler) creates, and the cells of the page that
show the outcomes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from conformance.errors import UsageError
from conformance.grove.scheduling import manifests
from conformance.lab.gaps import forms, instances, mappings, picture, results
from conformance.lab.gaps.forms import FORMS
from conformance.lab.gaps.instances import Gap, GapInstance, NodeGroup, ServiceComponent
from conformance.lab.gaps.playing import FormFailure, GapOutcome, MappingOutcome
from conformance.lab.gaps.sets import SetInstanceRun
from conformance.testing.workload_groups import Leaf, Tree

FORM_BY_NAME = {form.name: form for form in FORMS}
PREFILL, DECODE = (
    ServiceComponent("prefill", 1, replicas=2, pods=4, rack=True),
    ServiceComponent("decode", 1, replicas=3),
)
SERVICE = GapInstance("service", ("WL37-G06",), (NodeGroup(6),), (PREFILL, DECODE), "minimum", block=True)


def test_a_tree_requires_each_component_and_as_many_replicas_as_needed() -> None:
    [root] = forms.roots(FORM_BY_NAME["trees"], SERVICE)
    assert isinstance(root, Tree) and (root.minimum, root.key) == (2, "kubernetes.io/block")
    prefill, decode = root.children
    assert isinstance(prefill, Tree) and prefill.minimum == 1
    assert [(leaf.name, leaf.pods, leaf.minimum, leaf.key) for leaf in prefill.leaves] == [
        ("a-prefill-0", 4, 4, "kubernetes.io/rack"),
        ("a-prefill-1", 4, 4, "kubernetes.io/rack"),
    ]
    assert decode == Leaf("b-decode", pods=3, minimum=1)


def test_replicas_of_one_component_are_a_tree_without_another_root() -> None:
    [root] = forms.roots(
        FORM_BY_NAME["trees"], GapInstance("one", ("WL37-G08",), (), (ServiceComponent("p", 2, 3, 2),), "minimum")
    )
    assert isinstance(root, Tree) and (root.minimum, len(root.children)) == (2, 3)


def test_groups_are_independent_of_each_other() -> None:
    assert [root.name for root in forms.roots(FORM_BY_NAME["groups"], SERVICE)] == [
        "a-prefill-0",
        "a-prefill-1",
        "b-decode",
    ]


def test_gangs_have_the_required_replicas_in_the_base() -> None:
    base_gang, scaled_gang = forms.gangs(SERVICE)
    assert [(g.name, g.minimum, g.desired, g.required) for g in base_gang.groups] == [
        ("a-prefill-0", 4, 4, "rack"),
        ("b-decode", 1, 3, ""),
    ]
    assert (base_gang.required, scaled_gang.base, [g.name for g in scaled_gang.groups]) == (
        "block",
        "base",
        ["a-prefill-1"],
    )


def test_counts_are_by_component() -> None:
    assert forms.bound_counts(SERVICE, [4, 0, 2]) == {"prefill": [4, 0], "decode": [2]}


@pytest.mark.parametrize(
    ("bound_counts", "expected_standing"),
    [
        ({"prefill": [4, 0], "decode": [1]}, "minimum"),
        ({"prefill": [3, 1], "decode": [1]}, "part"),
        ({"prefill": [4, 0], "decode": [0]}, "part"),
        ({"prefill": [0, 0], "decode": [0]}, "nothing"),
    ],
)
def test_a_service_is_bound_completely_partly_or_not(
    bound_counts: dict[str, list[int]], expected_standing: str
) -> None:
    assert SERVICE.bound_part(bound_counts) == expected_standing
    assert SERVICE.matches_expectation(bound_counts) == (expected_standing == "minimum")


def test_a_lost_pod_must_be_bound_again() -> None:
    instance_with_loss = GapInstance(
        "lost", ("WL37-G13",), (), (ServiceComponent("p", 2, 2), ServiceComponent("d", 1)), "d again", lost=("p", "d")
    )
    assert instance_with_loss.matches_expectation({"p": [1], "d": [1]}) and not instance_with_loss.matches_expectation(
        {"p": [2], "d": [0]}
    )


@pytest.mark.parametrize(
    ("form", "are_right", "expected_word"),
    [
        ("trees", [True, True], "closed"),
        ("trees", [True, False], "partly"),
        ("trees", [False, False], "not"),
        ("plain", [True, True], "not"),  # by luck: the API of plain pods cannot express it
    ],
)
def test_a_gap_is_closed_partly_or_not(form: str, are_right: list[bool], expected_word: str) -> None:
    assert Gap("g", "a gap", "why", ("trees",), ()).closure(form, are_right) == expected_word


def sample_document(*runs: str) -> tuple[results.Document, Gap]:
    gap = Gap("g", "a gap", "why", ("trees",), (SERVICE,))
    document = results.document({"kubernetes": "1.37.2"}, [FORM_BY_NAME["trees"]], 2)
    document["complete"] = True
    for number, problem in enumerate(runs, 1):
        counts = {"prefill": [0, 0] if problem else [4, 0], "decode": [0 if problem else 1]}
        results.add(document, GapOutcome(FORM_BY_NAME["trees"], SERVICE, number, counts, problem))
    return document, gap


@pytest.mark.parametrize(
    ("runs", "expected_word"),
    [(("", ""), "closed"), (("expected: minimum", "expected: minimum"), "not"), (("", "expected: minimum"), "varies")],
)
def test_a_cell_says_if_runs_differ(runs: tuple[str, str], expected_word: str) -> None:
    document, gap = sample_document(*runs)
    assert results.cell(document, gap, FORM_BY_NAME["trees"]) == expected_word


def test_the_page_has_cells_and_outcomes() -> None:
    document, gap = sample_document("", "expected: minimum")
    page = results.markdown(document, [gap], "grove-conformance lab gaps", "x.svg")
    assert "| a gap | **varies** |" in page
    assert "| service | WL37-G06 | minimum | {4+0, 1} or {0+0, 0} ✗ |" in page


def mark_positions(svg: str, group_id: str) -> list[tuple[float, float]]:
    """Return the x and y coordinates of the marks in the group with this id, in drawing order, which is row by row."""
    [group] = [element for element in ElementTree.fromstring(svg).iter() if element.get("id") == group_id]
    return [
        (float(element.get("x", "")), float(element.get("y", "")))
        for element in group.iter()
        if element.tag.endswith("}use")
    ]


def test_the_picture_has_a_square_for_each_pod_of_the_first_run() -> None:
    document, gap = sample_document("", "expected: minimum")
    svg = picture.draw(document, [gap])
    prefill, decode = mark_positions(svg, "bound")[:4], mark_positions(svg, "bound")[4:]
    waiting_marks = mark_positions(svg, "waiting")
    assert len(waiting_marks) == 6 and len(decode) == 1 and not mark_positions(svg, "unexpected")
    assert [y for _, y in [*prefill, *waiting_marks[:4]]] == [prefill[0][1]] * 8
    assert {y for _, y in waiting_marks[4:]} == {decode[0][1]} and decode[0][1] > prefill[0][1]
    assert sorted([*prefill, *waiting_marks[:4]]) == [*prefill, *waiting_marks[:4]], (
        "the first replica stands on the left"
    )


def test_an_unexpected_outcome_has_a_cross_before_its_squares() -> None:
    document, gap = sample_document("expected: minimum")
    svg = picture.draw(document, [gap])
    [(x, y)] = mark_positions(svg, "unexpected")
    assert all(x < x_of_square and y <= top for x_of_square, top in mark_positions(svg, "waiting"))
    assert not mark_positions(svg, "bound") and ">unexpected<" in svg


def test_gaps_without_an_instance_have_a_picture() -> None:
    document, _ = sample_document("")
    assert "Bound pods of each instance" in picture.draw(document, [Gap("g", "a gap", "why", ("trees",), ())])


def test_the_gaps_of_inference_are_readable_and_each_form_has_its_column() -> None:
    gaps = instances.load()
    assert [gap.name for gap in gaps][:2] == ["complete-replicas", "one-of-each"]
    for gap in gaps:
        assert set(gap.expressed_by) <= {form.api for form in FORMS}
        for instance in gap.instances:
            assert [leaf for root in forms.roots(FORM_BY_NAME["trees"], instance) for leaf in root.leaves] == [
                leaf for _, leaves in forms.leaves_by_component(instance) for leaf in leaves
            ]


def test_a_duplicate_name_is_reported(tmp_path: Path) -> None:
    entry = "  - {name: a, rows: [WL37-G01], nodes: [{}], components: [{name: p, minimum: 1}], expect: minimum}\n"
    header = "apiVersion: conformance.grove.io/v1alpha1\nkind: Gaps\ngaps:\n- name: g\n  title: a title\n"
    (tmp_path / "gaps.yaml").write_text(
        header + "  needs: it is needed\n  expressedBy: []\n  instances:\n" + entry + entry
    )
    with pytest.raises(UsageError, match=r"gaps.yaml:10: gaps\[0\].instances\[1\].name: a is defined twice"):
        instances.load(tmp_path / "gaps.yaml")


@pytest.mark.parametrize(
    ("bound_counts", "expected_word", "is_right"),
    [
        ({"router": 0, "p0": 0, "d0": 0, "p1": 0, "d1": 0}, "0", False),
        ({"router": 2, "p0": 3, "d0": 0, "p1": 0, "d1": 0}, "part", False),
        ({"router": 1, "p0": 3, "d0": 2, "p1": 0, "d1": 0}, "F", True),
        ({"router": 2, "p0": 3, "d0": 2, "p1": 0, "d1": 2}, "F+r+d", True),
        ({"router": 2, "p0": 3, "d0": 2, "p1": 3, "d1": 2}, "all", True),
    ],
)
def test_a_mapping_binds_the_floor_or_not(bound_counts: dict[str, int], expected_word: str, is_right: bool) -> None:
    assert mappings.describe(bound_counts) == expected_word
    assert mappings.is_right_outcome(9, expected_word) is is_right
    assert mappings.is_right_outcome(5, expected_word) is (expected_word == "0")


@pytest.mark.parametrize(
    ("form", "row", "gpus", "is_luck"),
    [("groups", "WL37-M01", 7, True), ("groups", "WL37-M01", 12, False), ("groups", "WL37-M02", 7, False),
     ("trees", "WL37-M03", 6, True), ("trees", "WL37-M03", 7, False), ("trees", "WL37-M06", 6, False),
     ("trees", "WL37-M09", 7, True), ("trees", "WL37-M09", 5, False), ("trees", "WL37-M10", 7, False)],
)  # fmt: skip
def test_outcomes_that_depend_on_luck_are_not_compared(form: str, row: str, gpus: int, is_luck: bool) -> None:
    mapping = next(candidate for candidate in mappings.MAPPINGS if candidate.row == row)
    assert mappings.depends_on_luck(FORM_BY_NAME[form], mapping, gpus) is is_luck


def test_the_mapping_of_the_proposal_has_a_tree_for_each_gang() -> None:
    [base_gang], scaled_gangs = mappings.gangs("h1")
    assert isinstance(base_gang, Tree) and base_gang.minimum == len(base_gang.children) == 3
    assert [leaf.pods for leaf in base_gang.leaves] == [2, 1, 2, 1, 1]
    assert [root.name for root in scaled_gangs] == ["p1", "d1"]


def test_the_page_has_a_row_for_each_mapping_that_was_run() -> None:
    document, gap = sample_document("", "")
    [mapping] = [candidate for candidate in mappings.MAPPINGS if candidate.row == "WL37-M06"]
    for nodes, outcome in ((5, "0"), (6, "0"), (12, "all")):
        results.add(document, MappingOutcome(FORM_BY_NAME["trees"], mapping, nodes, 1, outcome))
    page = results.markdown(document, [gap], "grove-conformance lab gaps", "x.svg")
    row = next(line for line in page.splitlines() if line.startswith("| WL37-M06 "))
    cells = ["0", "0 ✗", *["not run"] * 5, "all"]  # M06 is defined for every number of nodes
    assert row == f"| WL37-M06 | h1 | free | Workload API, hierarchical (1.37) | {' | '.join(cells)} |"


def test_cells_say_if_nothing_was_run() -> None:
    document, gap = sample_document("")
    document["complete"] = False
    results.add(document, FormFailure(FORM_BY_NAME["trees"], "the scheduler ended"))
    assert results.cell(document, gap, FORM_BY_NAME["trees"]) == "closed (1 of 2 runs)"
    page = results.markdown(document, [gap], "grove-conformance lab gaps", "x.svg")
    assert "**The run did not end**" in page
    assert "Not played: Workload API, hierarchical (1.37): the scheduler ended" in page
    empty_document = results.document({}, FORMS, 2)
    assert [results.cell(empty_document, gap, form) for form in FORMS] == ["not run"] * len(FORMS)
    row = f"| service | WL37-G06 | minimum | {' | '.join(['not run'] * len(FORMS))} |"
    assert row in results.markdown(empty_document, [gap], "x", "x.svg")


def test_a_set_has_a_clique_for_single_pods_and_a_scaling_group_for_replicas() -> None:
    created_objects: list[dict[str, Any]] = []
    set_play = SetInstanceRun(environment_recording(created_objects), FORM_BY_NAME["operator"], SERVICE)
    set_play.create()
    binding, pcs = created_objects
    assert [level["domain"] for level in binding["spec"]["levels"]] == ["block", "rack"]
    template = pcs["spec"]["template"]
    cliques = {clique["name"]: clique["spec"] for clique in template["cliques"]}
    counts = {name: (spec["replicas"], spec["minAvailable"]) for name, spec in cliques.items()}
    assert counts == {"aw": (4, 4), "b-decode": (3, 1)}
    [group] = template["podCliqueScalingGroups"]
    assert (group["cliqueNames"], group["replicas"], group["minAvailable"]) == (["aw"], 2, 1)
    assert group["topologyConstraint"]["pack"] == {"required": "rack"}
    assert template["topologyConstraint"]["pack"] == {"required": "block"}


def environment_recording(created_objects: list[dict[str, Any]]) -> Any:
    """Return an environment that appends objects to `created_objects` instead of creating them."""
    testbed = manifests.Testbed("ns", "pool", "default-scheduler", prefix="x")
    return SimpleNamespace(
        namespace="ns", served=lambda kind: "v1", testbed=lambda name: testbed, create=created_objects.append
    )
