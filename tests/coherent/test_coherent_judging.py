"""Tests that each check of coherent updates judges only its own requirement: a breach of another requirement does not
fail it."""

from __future__ import annotations

from collections.abc import Callable

from conformance.grove import labels
from conformance.history.query import Unmet
from conformance.tests.coherent import sets, test_interrupted, test_killed, test_never_ready, test_scaling
from conformance.tests.coherent import test_strategies as strategies
from tests.history.recording import Recording


def of_tight(*lost: str) -> str:
    """Return the outcome of COHR-062 when the pods in `lost` are gone at the end."""
    recording = Recording()
    for name, tag in (("old", "1"), ("new-a", "2"), ("new-b", "2")):
        recording.pod("tight-0-f", name, tag)
    recording.at("first sub-step")
    for name in lost:
        recording.story.delete("pods", name)
    recording.at("stuck")
    return recording.outcome(test_never_ready.test_gangs_are_not_terminated)


def test_an_update_that_goes_on_is_no_termination() -> None:
    assert of_tight("old") == "passed"
    assert of_tight("old", "new-a", "new-b") == "failed"


def of_starts(*states: tuple[str, str]) -> str:
    """Return the outcome of COHR-072 when the set has had these generation hashes and update start times."""
    recording = Recording()
    recording.story.record("podcliquesets", "s", {"status": {"currentGenerationHash": "old"}})
    recording.at("deployed", "change")
    for generation, start in states:
        progress = {"updateStartedAt": f"2026-01-01T00:00:{start}Z"}
        status = {"currentGenerationHash": generation, "updateProgress": progress}
        recording.story.record("podcliquesets", "s", {"status": status})
    recording.at("updated", "end")
    return recording.outcome(test_killed.test_a_change_while_the_operator_is_down)


def test_a_start_that_is_lost_with_the_operator_is_no_second_update() -> None:
    assert of_starts(("old", "01"), ("new", "02"), ("new", "02")) == "passed"
    assert of_starts(("new", "01"), ("new", "02")) == "failed"


def test_a_completed_component_is_judged_by_itself() -> None:
    """COHR-064 judges whether the other components have the last version."""
    recording = Recording()
    complete = recording.pod("partly-0-f", "f", "2")
    recording.pod("partly-0-g-0-gm", "gm", "2")
    recording.scene.complete = {complete: "partly-0-f"}
    recording.at("second sub-steps", "partly: ended", "end")
    assert recording.outcome(test_interrupted.test_what_is_complete_is_not_replaced_again) == "passed"


def test_a_replica_that_is_not_terminated_says_nothing_of_its_gangs() -> None:
    recording = Recording(first={})
    recording.pod("s-0-f", "f")
    recording.at("pods of the template", "pods of the template: at rest")
    recording.at("terminated", unmet="4 of 4 pods are left")
    recording.at("terminated and recovered", unmet="4 of 4 pods are left")
    recording.at("end")
    assert recording.outcome(test_scaling.test_a_terminated_replica_keeps_its_gangs) == "blocked"


def gangs_of_entries(*gangs: str) -> bool | Unmet:
    """Return whether these PodGangs belong to entries only. The map has an entry with members and an empty one."""
    recording = Recording()
    entries = [{"name": "s-0-1", "podCliques": {"f": 2}}, {"name": "s-0-2", "podCliques": {"f": 0}}]
    metadata = {"labels": {labels.PART_OF: "s"}}
    spec = {"podCliqueSetReplicaIndex": 0, "entries": entries}
    recording.story.record("podgangmaps", "s-0", {"metadata": metadata, "spec": spec})
    for gang in gangs:
        recording.story.record("podgangs", gang, {"metadata": metadata})
    return sets.only_gangs_of_entries("s")(recording.story.history.view())


def test_a_gang_without_members_is_waited_for() -> None:
    assert gangs_of_entries("s-0-1") is True
    assert isinstance(gangs_of_entries("s-0-1", "s-0-2"), Unmet)


def of_switch(test: Callable[..., None], *, recreated: bool = False) -> str:
    """Return the outcome of a test of strategy switches when the switch moves the pods of all sets to other gangs."""
    recording = Recording()
    cliques = [f"{name}-0-f" for name in ("joins", "asks", "part")] + ["part-0-e-0-em"]
    uids = {clique: recording.pod(clique, clique) for clique in cliques}
    recording.scene.first = {clique.partition("-")[0]: {uid: "g"} for clique, uid in uids.items()}
    recording.at("deployed", "at rest")
    for clique in cliques:
        if recreated:
            recording.story.delete("pods", clique)
        recording.pod(clique, clique, gang="another")
    recording.at("switched")
    recording.at("joins: updated", "part: updated", "end")
    return recording.outcome(test)


def test_a_switch_that_renames_gangs_deletes_no_pod() -> None:
    """COHR-091 judges the gangs."""
    assert of_switch(strategies.test_a_switch_deletes_nothing) == "passed"
    assert of_switch(strategies.test_a_switch_deletes_nothing, recreated=True) == "failed"
    assert of_switch(strategies.test_on_delete_rolls_nothing) == "passed"
    assert of_switch(strategies.test_on_delete_rolls_nothing, recreated=True) == "failed"
    assert of_switch(strategies.test_the_first_partial_update_after_a_switch) == "passed"
