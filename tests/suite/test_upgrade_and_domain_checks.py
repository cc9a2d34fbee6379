"""Tests that checks of upgrades and of topology domains judge only their own requirement."""

from __future__ import annotations

from conformance.grove import workloads
from conformance.grove.expected import ExpectedClique, expected
from conformance.tests.topology import test_hierarchy
from conformance.tests.upgrade import test_earlier_versions
from tests.history.recording import Recording

REWRITTEN_STEPS = "hashes of u rewritten", "hashes of i rewritten"


def test_an_update_without_a_restart_is_no_restart() -> None:
    """UPG-002 judges whether an update is reported."""
    recording = Recording()
    for set_name in "ui":
        recording.at(f"earlier version: {set_name} has its pods", f"earlier version: {set_name} available")
    recording.story.record("podcliquesets", "u", {"metadata": {"generation": 1}})
    recording.scene.uids = {"u-0-f": recording.pod("u-0-f", "u-0-f")}
    recording.at("before the upgrade")
    status = {"updateProgress": {"updateStartedAt": "2026-01-01T00:00:00Z"}}
    recording.story.record("podcliquesets", "u", {"metadata": {"generation": 1}, "status": status})
    recording.at(*REWRITTEN_STEPS, "taken over")
    assert recording.outcome(test_earlier_versions.test_an_upgrade_restarts_nothing) == "passed"
    assert recording.outcome(test_earlier_versions.test_an_upgrade_rewrites_all_hashes) == "failed"


def place(recording: Recording, cliques: list[ExpectedClique], racks: str) -> None:
    """Bind the pods of cliques to the nodes of these racks in turn."""
    for number, clique in enumerate(cliques):
        recording.pod(clique.name, clique.name, node=f"node-{racks[number % len(racks)]}")


def test_a_replica_over_two_racks_shares_none_with_another() -> None:
    """Replica 0 of the second set spans both racks. This breaks TOPO-050 only, because TOPO-051 just forbids requiring
    replicas to share a rack."""
    recording = Recording()
    for rack in "ab":
        recording.story.node(f"node-{rack}", tags={test_hierarchy.KEYS["rack"]: rack})
    values = {"binding": "b", "outer": "rack", "workers": 1, "decodes": 1}
    first = list(expected(workloads.load("nested", {**values, "setName": "first", "workers": 2})).cliques.values())
    second = list(expected(workloads.load("nested", {**values, "setName": "second", "replicas": 2})).cliques.values())
    recording.scene.first, recording.scene.second = first, second
    place(recording, first, "ab")
    recording.at("workers of the first set bound", "first set at rest")
    place(recording, [clique for clique in second if clique.set_index == 0], "ab")
    place(recording, [clique for clique in second if clique.set_index == 1], "b")
    recording.at("replicas of the second set bound", "second set at rest")
    assert recording.outcome(test_hierarchy.test_domains_of_replicas_are_independent) == "passed"
    assert recording.outcome(test_hierarchy.test_pods_of_a_replica_run_in_one_rack) == "failed"
