"""Tests that the profile's tests accept behavior that the documents permit, and reject other behavior, on histories
that are written in this module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from conformance.grove import labels
from conformance.suite.outcomes.checks import Checks
from conformance.suite.outcomes.ledger import Check
from conformance.suite.scenes.dry_run import Reply
from conformance.suite.scenes.recorded import Recorded
from conformance.suite.scenes.scene import Scene, SceneRun, Step
from conformance.tests.coherent import (
    sets,
    test_first_deployment,
    test_never_ready,
    test_served,
    test_shapes,
    test_update,
)
from conformance.tests.coherent.never_ready import SCALE_TARGETS, NeverReady
from conformance.tests.coherent.scenes import ALL, ORDERED, SHAPES, SetsOfEveryShape, SetUpdatedFourTimes
from conformance.tests.coherent.sets import COHERENT, ON_DELETE, ROLLING
from tests.history.story import Story

HASH = "podCliqueSetGenerationHash"
SELECTOR = {"matchLabels": {"scheduling.grove.io/anchor": "true"}}


def failed_checks(
    test: Callable[..., None], id: str, scene: Scene, story: Story, steps: Mapping[str, Step]
) -> list[str]:
    """Return the failed checks of a test."""
    checks: list[Check] = []
    scene_run = SceneRun("scene", scene, story.history, steps, {})
    test(Recorded(scene_run, scene, Checks("test", [id], checks.append)))
    assert checks
    return [check.what for check in checks if check.outcome == "failed"]


def step(name: str, story: Story) -> Step:
    """Return a step that starts after all records of the story."""
    record = story.record("configmaps", "clock", {})
    return Step(name, record.seq, None, record.at)


# -- writes of PodGangMaps ---------------------------------------------------------------------------------------------

Entry = tuple[str, str, int, Sequence[int]]
"""Name, generation, number of pods of f, and replica indices of g."""
INITIAL_ENTRIES: tuple[Entry, ...] = (
    ("b", "1", 7, [0, 1]),
    ("t2", "1", 0, [2]),
    ("t3", "1", 0, [3]),
    ("t4", "1", 0, [4]),
)
WRITES: tuple[tuple[Entry, ...], ...] = (
    (("b", "1", 4, []), *INITIAL_ENTRIES[1:]),
    (("b", "1", 4, []), *INITIAL_ENTRIES[1:], ("m5", "2", 3, [0, 1])),
    (("b", "1", 1, []), INITIAL_ENTRIES[3], ("m5", "2", 3, [0, 1])),
    (("b", "1", 1, []), INITIAL_ENTRIES[3], ("m5", "2", 3, [0, 1]), ("m6", "2", 3, [2, 3])),
    (("b", "1", 1, []), INITIAL_ENTRIES[3], ("m5", "2", 3, [0, 1]), ("m6", "2", 4, [2, 3])),
    (INITIAL_ENTRIES[3], ("m5", "2", 3, [0, 1]), ("m6", "2", 4, [2, 3])),
    (("m5", "2", 3, [0, 1]), ("m6", "2", 4, [2, 3])),
    (("m5", "2", 3, [0, 1]), ("m6", "2", 4, [2, 3]), ("t7", "2", 0, [4])),
)
"""Two steps with an anchor, and the remaining members. Entries lose members in one write, and other entries get these
members in the next write."""


def failed_checks_of_writes(writes: Sequence[Sequence[Entry]]) -> list[str]:
    story, scene = Story(), SetsOfEveryShape()
    env: Any = SimpleNamespace(placed=lambda workload: workload)
    scene.workloads = {"uneven": sets.set_manifest(env, "uneven", *SHAPES["uneven"])}
    steps = {}
    for number, write in enumerate((INITIAL_ENTRIES, *writes)):
        entries = [
            {"name": name, HASH: generation, "podCliques": {"f": pods}, "pcsgReplicaIndices": {"g": list(replicas)}}
            | ({} if pods else {"dependsOn": SELECTOR})
            for name, generation, pods, replicas in write
        ]
        spec = {"podCliqueSetReplicaIndex": 0, "entries": entries}
        story.record("podgangmaps", "uneven-0", {"metadata": {"labels": {labels.PART_OF: "uneven"}}, "spec": spec})
        if number == 0:
            steps = {name: step(name, story) for name in ("deployed", "change")}
    steps |= {name: step(name, story) for name in ("uneven: updated", "end")}
    return failed_checks(test_shapes.test_what_is_left_follows_after_the_last_step, "COHR-046", scene, story, steps)


def test_entries_may_be_written_one_by_one() -> None:
    assert failed_checks_of_writes(WRITES) == []


def test_pods_that_join_an_earlier_anchor_are_reported() -> None:
    wrong_writes = [
        [(name, generation, {"m5": 4, "m6": 3}.get(name, pods), replicas) for name, generation, pods, replicas in write]
        for write in WRITES[4:]
    ]
    assert failed_checks_of_writes([*WRITES[:4], *wrong_writes]) == ["gangs that pods have joined"]


# -- gangs of the first deployment -------------------------------------------------------------------------------------


def failures_of_deployment(
    *extra_gangs: str, referenced_pods: Sequence[str] = ("s-0-f-a",), index: str = "0"
) -> dict[str, list[str]]:
    """Deploy a set with one clique, one pod, one gang and the gangs in `extra_gangs`, and return the failed checks by
    requirement."""
    story, tags = Story(), {labels.PART_OF: "s"}
    entry = {"name": "s-0-1", HASH: "1", "podCliques": {"f": 1}}
    spec = {"podCliqueSetReplicaIndex": 0, "entries": [entry]}
    story.record(sets.MAPS, "s-0", {"metadata": {"labels": tags}, "spec": spec})
    story.record(sets.CLIQUES, "s-0-f", {"metadata": {"labels": tags}})
    story.pod("s-0-f-a", gang="s-0-1", clique="s-0-f", extra=tags, owner=(sets.CLIQUES, "s-0-f"))
    gang_labels = {**tags, labels.SET_INDEX: index, labels.GENERATION_HASH: "1", "scheduling.grove.io/anchor": "true"}
    group = {
        "name": "s-0-f",
        "podReferences": [{"namespace": "space", "name": pod_name} for pod_name in referenced_pods],
    }
    story.record(sets.GANGS, "s-0-1", {"metadata": {"labels": gang_labels}, "spec": {"podgroups": [group]}})
    for gang in extra_gangs:
        story.record(sets.GANGS, gang, {"metadata": {"labels": tags}, "spec": {"podgroups": []}})
    steps = {name: step(name, story) for name in ("deployed", "at rest", f"{ALL}: at rest")}
    tests = {
        "COHR-012": test_first_deployment.test_a_gang_for_each_entry,
        "COHR-013": test_first_deployment.test_anchors_are_marked,
        "COHR-014": test_first_deployment.test_gangs_say_of_what_they_are,
        "COHR-015": test_first_deployment.test_pods_name_their_gang,
    }
    failures = {id: failed_checks(test, id, SetUpdatedFourTimes(), story, steps) for id, test in tests.items()}
    return {id: failed for id, failed in failures.items() if failed}


def test_a_gang_without_an_entry_is_judged_once() -> None:
    assert failures_of_deployment() == {}
    assert failures_of_deployment("s-0-2") == {"COHR-012": ["PodGroups"]}


def test_the_labels_of_gangs_are_judged() -> None:
    assert failures_of_deployment(index="1") == {"COHR-014": ["replica and generation of gangs"]}


def test_a_gang_must_refer_to_its_pods_and_may_refer_to_others() -> None:
    """Another requirement judges references to other pods."""
    assert failures_of_deployment(referenced_pods=["s-0-f-a", "gone"]) == {}
    steps = ("at rest", f"{ALL}: at rest")
    assert failures_of_deployment(referenced_pods=["gone"]) == {
        "COHR-015": [f"gangs of pods, {step}" for step in steps]
    }


# -- what is in flight -------------------------------------------------------------------------------------------------


def progress(*turns: Mapping[str, Any]) -> dict[str, Any]:
    update_progress = {"updateStartedAt": "2026-01-01T00:00:00Z", "currentlyUpdating": list(turns)}
    return {"status": {"currentGenerationHash": "2", "updateProgress": update_progress}}


@pytest.mark.parametrize(
    ("progress_fields", "expected_failures"),
    [
        ({"inFlightPodGangs": ["ordered-0-2"]}, []),
        ({"inFlightEpochs": ["2"]}, []),
        ({}, ["whether gangs are in flight"]),
    ],
)
def test_a_gang_that_waits_for_a_held_pod_is_in_flight(
    progress_fields: Mapping[str, Any], expected_failures: list[str]
) -> None:
    story = Story()
    story.record(sets.SETS, ORDERED, progress({"replicaIndex": 0, **progress_fields}))
    steps = {name: step(name, story) for name in ("deployed", f"{ORDERED}: pods of f wait", f"{ORDERED}: f released")}
    test = test_shapes.test_what_an_update_waits_for_is_in_flight
    assert failed_checks(test, "COHR-034", SetsOfEveryShape(), story, steps) == expected_failures


@pytest.mark.parametrize(
    ("progress_fields", "expected_failures"),
    [
        ({}, []),
        ({"inFlightPodGangs": []}, []),
        ({"inFlightPodGangs": ["s-0-2"]}, ["gangs in flight that are not new", "in flight at the end"]),
    ],
)
def test_an_update_without_waits_may_report_no_gangs_in_flight(
    progress_fields: Mapping[str, Any], expected_failures: list[str]
) -> None:
    """Another requirement judges that no replica is being updated at the end."""
    story = Story()
    steps = {name: step(name, story) for name in (f"{ALL}: change",)}
    story.record(sets.SETS, "s", progress({"replicaIndex": 0, **progress_fields}))
    steps |= {name: step(name, story) for name in (f"{ALL}: updated", f"{ALL}: at rest")}
    assert (
        failed_checks(test_update.test_what_is_in_flight, "COHR-034", SetUpdatedFourTimes(), story, steps)
        == expected_failures
    )


# -- scaling during an update ------------------------------------------------------------------------------------------


def failed_requirements(is_refused: Callable[[str], bool]) -> list[str]:
    """Return the requirements that fail if scale requests are rejected for the objects for which `is_refused` holds."""
    story, scene = Story(), NeverReady()
    rejection = Reply(403, message="spec.replicas: a coherent update is in progress on PodCliqueSet s")
    scene.scale_replies = {
        key: rejection if is_refused(name) else Reply(200) for key, (_, name, _) in SCALE_TARGETS.items()
    }
    steps = {"first sub-step": step("first sub-step", story)}
    tests = {
        "COHR-050": test_never_ready.test_children_cannot_be_scaled,
        "COHR-054": test_never_ready.test_the_refusal_says_why,
        "COHR-104": test_never_ready.test_the_refusal_names_the_field,
        "COHR-113": test_never_ready.test_children_of_other_replicas_cannot_be_scaled,
    }
    return [id for id, test in tests.items() if failed_checks(test, id, scene, story, steps)]


def test_scaling_must_be_rejected_only_for_the_replica_that_is_updated() -> None:
    assert failed_requirements(lambda name: name.startswith("s-")) == []
    assert failed_requirements(lambda name: "{updated}" in name) == ["COHR-113"]
    assert failed_requirements(lambda name: "{other}" in name) == ["COHR-050"]
    assert failed_requirements(lambda name: name in ("s-{updated}-f", "s-{updated}-p")) == ["COHR-050", "COHR-113"]


# -- defaults ----------------------------------------------------------------------------------------------------------

Budgets = tuple[int | None, int | None, int | None]
"""maxUnavailable of the clique f, of the scaling group's clique pl, and of the scaling group p."""


def failures_of_defaults(test: Callable[..., None], id: str, **defaults: Budgets) -> list[str]:
    def reply(clique: int | None, member: int | None, group: int | None) -> Reply:
        parts = [
            {} if budget is None else {"rollingUpdate": {"maxUnavailable": budget}}
            for budget in (clique, member, group)
        ]
        return Reply(201, {"spec": {"template": {"cliques": parts[:2], "podCliqueScalingGroups": parts[2:]}}})

    scene = test_served.AskedAboutCoherentUpdates()
    scene.unset_replies = {
        COHERENT: reply(2, None, 2),
        **{strategy: reply(*budgets) for strategy, budgets in defaults.items()},
    }
    return failed_checks(test, id, scene, Story(), {})


@pytest.mark.parametrize(
    ("rolling_budgets", "expected_failures"),
    [
        ((1, None, 1), []),
        ((None, None, None), []),
        ((1, None, None), []),
        ((2, None, 2), ["RollingRecreate: defaults that are not permitted"]),
    ],
)
def test_each_component_may_have_the_default_of_its_strategy(
    rolling_budgets: Budgets, expected_failures: list[str]
) -> None:
    default_budgets = {ROLLING: rolling_budgets, ON_DELETE: (None, None, None)}
    assert (
        failures_of_defaults(test_served.test_defaults_of_other_strategies, "COHR-007", **default_budgets)
        == expected_failures
    )


def test_the_default_of_a_member_is_judged_by_its_own_requirement() -> None:
    default_budgets = {ROLLING: (1, 1, 1), ON_DELETE: (None, None, None)}
    assert failures_of_defaults(test_served.test_defaults_of_other_strategies, "COHR-007", **default_budgets) == []
    assert failures_of_defaults(test_served.test_the_default_of_a_coherent_set, "COHR-006", **default_budgets) == [
        "defaults of pl"
    ]
