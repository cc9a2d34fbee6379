"""Tests that checks of PodGangMaps judge only their own requirement: other requirements cover names of PodGangs, hashes
of entries, and pods that do not run. Needs no cluster."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.grove import labels
from conformance.suite.scenes.scene import Step
from conformance.tests.gang_maps import test_lost_maps, test_new_sets, test_scaled_sets, test_updated_sets
from tests.history.story import Story
from tests.suite.judging import failures

TEMPLATE = {"cliques": [{"name": "a", "spec": {"replicas": 2, "minAvailable": 1, "podSpec": {"containers": []}}}]}


class Sets(Story):
    """Sets of one standalone clique `a`, with their maps and gangs."""

    def of(self, name: str, replicas: int = 1, generation: str = "now") -> None:
        status = {"currentGenerationHash": generation}
        self.record("podcliquesets", name, {"spec": {"replicas": replicas, "template": TEMPLATE}, "status": status})

    def map_of(self, name: str, replica: int, epoch: str, pods: int = 2, generation: str = "now") -> None:
        entry = {"epoch": epoch, "role": "Anchor", "podCliques": {"a": pods}, "podCliqueSetGenerationHash": generation}
        spec = {"podCliqueSetReplicaIndex": replica, "entries": [entry]}
        self.record("podgangmaps", f"{name}-{replica}", {"spec": spec})

    def gang_of(self, name: str, replica: int, epoch: str, called: str, **options: Any) -> None:
        tags = {labels.PART_OF: name, labels.EPOCH: epoch, labels.GANG_ROLE: "Anchor", labels.GENERATION_HASH: "now"}
        pods = [{"name": f"{name}-{replica}-a-{index}"} for index in range(2)]
        spec = {"podgroups": [{"name": f"{name}-{replica}-a", "podReferences": pods}]}
        self.record("podgangs", called, {"metadata": {"labels": tags}, "spec": spec}, **options)

    def step(self, name: str, unmet: str = "") -> tuple[str, Step]:
        return name, Step.now(name, self.history, unmet)


def new_sets(hash_of_entries: str) -> Sets:
    story = Sets()
    for name, replicas in test_new_sets.SIZES.items():
        story.of(name, replicas)
        for replica in range(replicas):
            story.map_of(name, replica, "1", generation=hash_of_entries)
            story.gang_of(name, replica, "1", f"{name}-{replica}-1")
    return story


def test_the_hash_of_a_gang_is_compared_with_that_of_its_set() -> None:
    """MAP-002 judges whether the hash of an entry is right."""
    story = new_sets("another")
    steps = dict([story.step(test_new_sets.AT_REST)])
    assert failures(test_new_sets.test_gangs_say_to_which_entry_they_belong, story, steps) == []


def scaled_sets(first: str, second: str, third: str) -> tuple[Sets, dict[str, Step]]:
    """Return the story and the steps of a set that gets a second replica, loses it and gets it back. The arguments are
    the epochs of its three gangs, whose names all start like names of the second replica."""
    story = Sets()
    story.of("s", 2)
    steps = dict([story.step("new")])
    story.map_of("s", 0, first)
    story.gang_of("s", 0, first, "s-1a")
    story.map_of("s", 1, second)
    story.gang_of("s", 1, second, "s-1b")
    for step in (test_scaled_sets.SET_OUT, "map of the removed replica gone", "gangs of the removed replica gone"):
        unmet = "pods are not Ready" if step == test_scaled_sets.SET_OUT else ""
        steps |= dict([story.step(step, unmet), story.step(f"{step}: at rest")])
        if step == test_scaled_sets.SET_OUT:
            story.delete("podgangs", "s-1b")
            story.delete("podgangmaps", "s-1")
    story.map_of("s", 1, third)
    story.gang_of("s", 1, third, "s-1c")
    return story, steps | dict([story.step(test_scaled_sets.SET_BACK), story.step("set scaled out again: at rest")])


def test_epochs_are_compared_whatever_the_names_of_gangs_and_whether_pods_run() -> None:
    story, steps = scaled_sets("1", "2", "3")
    assert failures(test_scaled_sets.test_an_added_replica_begins_with_new_epochs, story, steps) == []
    assert failures(test_scaled_sets.test_maps_of_removed_replicas_go, story, steps) == []


def test_a_gang_that_reuses_an_earlier_epoch_is_reported() -> None:
    story, steps = scaled_sets("1", "2", "2")
    [failure] = failures(test_scaled_sets.test_an_added_replica_begins_with_new_epochs, story, steps)
    assert failure.startswith("epochs of earlier PodGangs")


@pytest.mark.parametrize(("pods", "count"), ((4, 0), (2, 1)))
def test_an_anchor_may_list_pods_that_do_not_run(pods: int, count: int) -> None:
    story = Sets()
    story.of("s")
    story.map_of("s", 0, "1")
    steps = dict([story.step("new")])
    for step, listed in ((test_scaled_sets.CLIQUE_OUT, pods), (test_scaled_sets.CLIQUE_IN, 1)):
        story.map_of("s", 0, "1", pods=listed)
        steps |= dict([story.step(step, "no pod is Ready"), story.step(f"{step}: at rest")])
    assert len(failures(test_scaled_sets.test_an_anchor_follows_its_standalone_clique, story, steps)) == count


def test_a_rebuilt_map_may_have_too_few_pods_as_long_as_each_pod_has_its_gang() -> None:
    """MAP-007 judges the contents of the map."""
    story = Sets()
    story.of("s")
    story.record("podcliques", "s-0-a", {"metadata": {"labels": {labels.PART_OF: "s"}}, "spec": {"replicas": 2}})
    story.map_of("s", 0, "1", pods=1)
    story.gang_of("s", 0, "1", "s-0-1")
    story.pod("s-0-a-0", clique="s-0-a", gang="s-0-1")
    step = test_lost_maps.MAP_REBUILT_AGAIN
    steps = dict([story.step(step, "entries hold 1 pods of a"), story.step(f"{step}: at rest")])
    assert failures(test_lost_maps.test_no_pod_leaves_its_gang_when_a_map_is_rebuilt, story, steps) == []


@pytest.mark.parametrize(("pods", "count"), ((2, 0), (1, 2)))
def test_members_added_after_an_update_are_compared_with_maps(pods: int, count: int) -> None:
    """MAP-008 judges whether added pods name a PodGang that exists."""
    story = Sets()
    sets = (test_updated_sets.ROLLED_SET, test_updated_sets.ON_DELETE_SET)
    for name in sets:
        story.of(name)
        clique = {"metadata": {"labels": {labels.PART_OF: name}}, "spec": {"replicas": 2}}
        story.record("podcliques", f"{name}-0-a", clique)
        story.map_of(name, 0, "1", pods=pods)
        story.pod(f"{name}-0-a-0", clique=f"{name}-0-a", gang="gone")
    steps = dict([*(story.step(f"{name}: added pods Ready") for name in sets), story.step("end")])
    assert len(failures(test_updated_sets.test_what_is_added_after_an_update_runs, story, steps)) == count
    assert len(failures(test_updated_sets.test_every_pod_is_referred_to_after_an_update, story, steps)) == 2
