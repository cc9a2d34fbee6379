"""Tests that pods of one release line are assigned to the gangs of the other release line (GM-80 to GM-90)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from reference_impl.api.models import PodClique, PodCliqueScalingGroup, PodCliqueSet
from reference_impl.plan import children, components, gang_migration, kai, labels, names
from reference_impl.plan.layout import first_layout
from reference_impl.plan.lines import MAPS, NAMES, Line, Placement
from tests.reference.examples import clique, disaggregated, members, pod, standalone

T = 1_790_000_000_000_000_000
ANCHOR, TAIL = (f"llm-0-{T}", f"llm-0-{T + 1}-workers-1")


@pytest.fixture
def pcs() -> PodCliqueSet:
    return disaggregated(group_replicas=2)


def placement_of(pcs: PodCliqueSet) -> Placement:
    """Return the gangs on the release line `maps`."""
    cliques = [components.clique(t.name, t.spec.replicas, t.spec.minimum) for t in children.standalone_templates(pcs)]
    groups = [components.group(c.name, c.replicas, c.min_available) for c in children.group_configs(pcs)]
    layout = first_layout([*cliques, *groups], "g", lambda count: [str(T + number) for number in range(count)])
    return Placement(MAPS, names.replica("llm", 0), layout)


def router(pcs: PodCliqueSet) -> PodClique:
    return clique(standalone(pcs, 0, pcs.spec.template.cliques[0]))


def member(pcs: PodCliqueSet, index: int) -> PodClique:
    """Return the clique `decode` of a replica of the scaling group, as the release line `names` creates it."""
    manifest = children.scaling_group(pcs, 0, children.group_configs(pcs)[0])
    metadata = {**manifest["metadata"], "uid": "u-group", "generation": 1, "resourceVersion": "1"}
    group = msgspec.convert({**manifest, "metadata": metadata}, PodCliqueScalingGroup)
    by_name = {item["metadata"]["name"]: item for item in members(pcs, group)}
    return clique(by_name[f"llm-0-workers-{index}-decode"])


@pytest.mark.parametrize(
    ("line", "gang", "foreign"),
    [(MAPS, "llm-0", True), (MAPS, "llm-0-workers-0", True), (MAPS, ANCHOR, False), (NAMES, ANCHOR, True),
     (NAMES, TAIL, True), (NAMES, "llm-0-workers-0", False)],
)  # fmt: skip
def test_gangs_of_the_other_release_line_are_recognized_by_their_names(
    pcs: PodCliqueSet, line: Line, gang: str, foreign: bool
) -> None:
    existing: Any = SimpleNamespace(metadata=SimpleNamespace(name=gang, label=lambda key: "0"))
    assert gang_migration.has_foreign_gangs(line, pcs, [existing]) is foreign


def test_pods_and_member_cliques_get_the_gang_of_the_layout(pcs: PodCliqueSet) -> None:
    placement, base, scaled = placement_of(pcs), member(pcs, 0), member(pcs, 1)
    assert changed_labels(gang_migration.pod_change(MAPS, pcs, base, pod(base, 0), placement)) == {
        labels.PODGANG: ANCHOR
    }
    expected = {labels.PODGANG: TAIL, labels.BASE_PODGANG: None}
    assert changed_labels(gang_migration.pod_change(MAPS, pcs, scaled, pod(scaled, 0), placement)) == expected
    assert changed_labels(gang_migration.clique_change(MAPS, pcs, scaled, placement)) == expected


def test_the_pods_of_a_standalone_clique_name_their_gang_but_the_clique_does_not(pcs: PodCliqueSet) -> None:
    clique = router(pcs)
    assert changed_labels(gang_migration.clique_change(MAPS, pcs, clique, placement_of(pcs))) == {labels.PODGANG: None}
    assert changed_labels(gang_migration.pod_change(MAPS, pcs, clique, pod(clique, 0), placement_of(pcs))) == {
        labels.PODGANG: ANCHOR
    }


def test_assigned_objects_are_unchanged(pcs: PodCliqueSet) -> None:
    clique = router(pcs)
    assert gang_migration.pod_change(MAPS, pcs, clique, pod(clique, 0, gang=ANCHOR), placement_of(pcs)) == {}
    assert gang_migration.pod_change(MAPS, pcs, clique, pod(clique, 0, terminating=True), placement_of(pcs)) == {}


def test_the_kai_annotation_is_updated_in_the_same_write(pcs: PodCliqueSet) -> None:
    clique = router(pcs)
    marked = pod(clique, 0)
    marked.metadata.annotations = {kai.POD_GROUP: "llm-0", "example.com/note": "mine"}
    change = gang_migration.pod_change(MAPS, pcs, clique, marked, placement_of(pcs))
    assert change["metadata"]["annotations"] == {kai.POD_GROUP: ANCHOR}


def changed_labels(patch: dict[str, Any]) -> dict[str, str | None]:
    """Return the labels that a patch changes, and check that it changes nothing else."""
    assert patch.keys() == {"metadata"} and patch["metadata"].keys() == {"labels"}
    return dict(patch["metadata"]["labels"])
