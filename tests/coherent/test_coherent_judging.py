"""Tests that each check of coherent updates judges only its own requirement, and does not fail if another requirement
is broken."""

from __future__ import annotations

from collections.abc import Callable

from conformance.grove import labels
from conformance.history.query import Unmet
from conformance.tests.coherent import sets, test_interrupted, test_killed, test_never_ready, test_scaling
from conformance.tests.coherent import test_strategies as strategies
from tests.history.recording import Recording


def termination_outcome(*deleted_pods: str) -> str:
    """Return the outcome of COHR-062 if the pods in `deleted_pods` do not exist at the end."""
    recording = Recording()
    for name, tag in (("old", "1"), ("new-a", "2"), ("new-b", "2")):
        recording.pod("tight-0-f", name, tag)
    recording.at("first sub-step")
    for name in deleted_pods:
        recording.story.delete("pods", name)
    recording.at("stuck")
    return recording.outcome(test_never_ready.test_gangs_are_not_terminated)


def test_an_update_that_continues_is_not_a_termination() -> None:
    assert termination_outcome("old") == "passed"
    assert termination_outcome("old", "new-a", "new-b") == "failed"


def start_outcome(*states: tuple[str, str]) -> str:
    """Return the outcome of COHR-072 for a set that has had these generation hashes and update start times."""
    recording = Recording()
    recording.story.record("podcliquesets", "s", {"status": {"currentGenerationHash": "old"}})
    recording.at("deployed", "change")
    for generation, start in states:
        progress = {"updateStartedAt": f"2026-01-01T00:00:{start}Z"}
        status = {"currentGenerationHash": generation, "updateProgress": progress}
        recording.story.record("podcliquesets", "s", {"status": status})
    recording.at("updated", "end")
    return recording.outcome(test_killed.test_a_change_while_the_operator_is_down)


def test_a_start_that_is_lost_with_the_operator_is_not_a_second_update() -> None:
    assert start_outcome(("old", "01"), ("new", "02"), ("new", "02")) == "passed"
    assert start_outcome(("new", "01"), ("new", "02")) == "failed"


def test_a_complete_component_is_judged_separately() -> None:
    """COHR-064 judges whether the other components have the last version."""
    recording = Recording()
    complete_pod = recording.pod("partly-0-f", "f", "2")
    recording.pod("partly-0-g-0-gm", "gm", "2")
    recording.scene.completed_pods = {complete_pod: "partly-0-f"}
    recording.at("second sub-steps", "partly: ended", "end")
    assert recording.outcome(test_interrupted.test_what_is_complete_is_not_replaced_again) == "passed"


def test_gangs_are_not_judged_if_their_replica_is_not_terminated() -> None:
    recording = Recording(first={})
    recording.pod("s-0-f", "f")
    recording.at("pods of the template", "pods of the template: at rest")
    recording.at("terminated", unmet="4 of 4 pods are left")
    recording.at("terminated and recovered", unmet="4 of 4 pods are left")
    recording.at("end")
    assert recording.outcome(test_scaling.test_a_terminated_replica_keeps_its_gangs) == "blocked"


def gangs_of_entries(*gangs: str) -> bool | Unmet:
    """Return whether all of these PodGangs belong to entries. The map has an entry with members and an empty entry."""
    recording = Recording()
    entries = [{"name": "s-0-1", "podCliques": {"f": 2}}, {"name": "s-0-2", "podCliques": {"f": 0}}]
    metadata = {"labels": {labels.PART_OF: "s"}}
    spec = {"podCliqueSetReplicaIndex": 0, "entries": entries}
    recording.story.record("podgangmaps", "s-0", {"metadata": metadata, "spec": spec})
    for gang in gangs:
        recording.story.record("podgangs", gang, {"metadata": metadata})
    return sets.has_only_gangs_of_entries("s")(recording.story.history.view())


def test_a_check_waits_for_the_deletion_of_a_gang_without_members() -> None:
    assert gangs_of_entries("s-0-1") is True
    assert isinstance(gangs_of_entries("s-0-1", "s-0-2"), Unmet)


def switch_outcome(test: Callable[..., None], *, with_new_pods: bool = False) -> str:
    """Return the outcome of a test of strategy switches if the switch moves the pods of all sets to other gangs."""
    recording = Recording()
    cliques = [f"{name}-0-f" for name in ("joins", "asks", "part")] + ["part-0-e-0-em"]
    uids = {clique: recording.pod(clique, clique) for clique in cliques}
    recording.scene.initial_pods = {clique.partition("-")[0]: {uid: "g"} for clique, uid in uids.items()}
    recording.at("deployed", "at rest")
    for clique in cliques:
        if with_new_pods:
            recording.story.delete("pods", clique)
        recording.pod(clique, clique, gang="another")
    recording.at("switched")
    recording.at("joins: updated", "part: updated", "end")
    return recording.outcome(test)


def test_moving_pods_to_other_gangs_does_not_count_as_deleting_them() -> None:
    """COHR-091 judges the gangs."""
    assert switch_outcome(strategies.test_a_switch_deletes_nothing) == "passed"
    assert switch_outcome(strategies.test_a_switch_deletes_nothing, with_new_pods=True) == "failed"
    assert switch_outcome(strategies.test_on_delete_rolls_nothing) == "passed"
    assert switch_outcome(strategies.test_on_delete_rolls_nothing, with_new_pods=True) == "failed"
    assert switch_outcome(strategies.test_the_first_partial_update_after_a_switch) == "passed"
