"""Tests of updates of sets, scaling groups and cliques, on a miniature cluster (rolling.py)."""

from __future__ import annotations

import pytest

from reference_impl.api.coherent import RollingUpdate
from reference_impl.api.models import UpdateStrategyType
from reference_impl.api.pods import PodCondition
from tests.reference.rolling import Rolling

ROUTER, WORKERS = "llm-0-router", "llm-0-workers"


@pytest.fixture
def world():
    return Rolling()


def serving(world: Rolling, clique: str) -> int:
    return sum(pod.ready for pod in world.of(clique))


def test_a_new_set_has_no_update(world):
    assert world.progress is None
    assert all(clique.status.update_progress is None for clique in world.cliques.values())
    assert world.pcs.status.updated_replicas == 1


def test_only_the_pods_of_a_changed_clique_are_replaced_one_by_one(world):
    first = world.names(ROUTER)
    unchanged = {name: world.names(name) for name in world.cliques if name != ROUTER}
    world.change("router")
    for _ in world.until_ended():
        assert serving(world, ROUTER) >= 1
    assert world.deleted_pods == first and not world.outdated()
    assert unchanged == {name: world.names(name) for name in unchanged}
    progress = world.progress
    assert (progress.updated_pod_cliques_count, progress.total_pod_cliques_count) == (1, 1)
    assert (progress.updated_pod_clique_scaling_groups_count, progress.currently_updating) == (1, None)
    assert world.pcs.status.updated_replicas == 1
    assert world.cliques[ROUTER].status.update_progress.ready_pods_selected_to_update is None


def test_the_next_pod_waits_for_the_successor_of_the_previous_pod(world):
    first = world.names(ROUTER)
    world.held_cliques = {ROUTER}
    world.change("router")
    world.settle()
    assert world.deleted_pods == first[:1] and not world.ended()
    selection = world.cliques[ROUTER].status.update_progress.ready_pods_selected_to_update
    assert (selection.current, selection.completed) == (first[0], None)
    assert {c.type: c.status for c in world.cliques[ROUTER].status.conditions}["MinAvailableBreached"] == "Unknown"
    world.held_cliques = set()
    world.settle()
    assert world.deleted_pods == first and world.ended()


def test_unready_pods_are_deleted_at_once_without_waiting_for_successors(world):
    world.cliques[ROUTER].spec.replicas = 5
    world.settle()
    first = world.names(ROUTER)
    world.unready(*first[1:3])
    world.held_cliques = {ROUTER}
    world.change("router")
    world.tick()
    world.tick()
    assert set(world.deleted_pods) == {first[1], first[2], first[0]}
    world.settle()
    assert len(world.deleted_pods) == 3


def test_successors_of_unready_pods_do_not_replace_the_selected_pod(world):
    # Two successors of unready pods are Ready, but the successor of the first Ready pod is not (CHG-DF06).
    world.cliques[ROUTER].spec.replicas = 4
    world.settle()
    first = world.names(ROUTER)
    world.unready(*first[:2])
    world.held_cliques = {ROUTER}
    world.change("router")
    world.settle()
    assert set(world.deleted_pods) == set(first[:3])
    replaces = {p.metadata.name: (p.metadata.annotations or {}) for p in world.of(ROUTER)}
    [successor] = [name for name, notes in replaces.items() if notes]
    for pod in world.of(ROUTER):
        if not pod.ready and pod.metadata.name != successor:
            pod.status.conditions = [PodCondition("Ready", "True")]
    world.settle()
    assert len(world.deleted_pods) == 3
    world.held_cliques = set()
    world.settle()
    assert set(world.deleted_pods) == set(first) and world.ended()


@pytest.mark.parametrize("size", [1, 2, 0])
def test_a_clique_that_is_scaled_in_during_an_update_completes_it(world, size):
    # CHG-DF03
    world.cliques[ROUTER].spec.replicas = 3
    world.settle()
    world.change("router")
    for _ in range(3):
        world.tick()
    world.cliques[ROUTER].spec.replicas = size
    world.settle()
    assert world.ended() and len(world.names(ROUTER)) == size and not world.outdated()


def test_pods_added_during_an_update_are_created_once(world):
    world.change("router")
    world.tick()
    world.cliques[ROUTER].spec.replicas = 5
    first = world.names(ROUTER)
    world.settle()
    assert sorted(world.deleted_pods) == sorted(first[:2]) or len(world.deleted_pods) == 2
    assert world.ended() and len(world.names(ROUTER)) == 5 and not world.outdated()


def test_replicas_of_a_group_are_replaced_as_a_whole_and_in_order(world):
    first = [world.names(f"{WORKERS}-{j}-{clique}") for j in (0, 1) for clique in ("decode", "prefill")]
    world.change("prefill")
    missing_so_far = []
    for _ in world.until_ended():
        sizes = {f"{WORKERS}-{j}-{clique}": size for j in (0, 1) for clique, size in (("decode", 1), ("prefill", 2))}
        missing = {name.rsplit("-", 1)[0] for name, size in sizes.items() if serving(world, name) < size}
        assert len(missing) <= 1
        missing_so_far += missing
    assert missing_so_far == sorted(missing_so_far) and set(missing_so_far) == {f"{WORKERS}-0", f"{WORKERS}-1"}
    assert sorted(world.deleted_pods) == sorted(name for replica_pods in first for name in replica_pods)
    assert not any(name.startswith(ROUTER) for name in world.deleted_pods)
    status = world.groups[WORKERS].status
    assert (status.update_progress.updated_pod_cliques_count, status.update_progress.total_pod_cliques_count) == (4, 4)
    assert status.updated_replicas == 2 and status.update_progress.update_ended_at is not None


def test_an_unavailable_group_replica_is_deleted_first_and_at_once():
    world = Rolling(group_replicas=3)
    sick = f"{WORKERS}-2-decode"
    world.held_cliques = {sick}
    world.unready(*world.names(sick))
    world.change("decode")
    world.tick()
    world.tick()
    assert {name.rsplit("-", 2)[0] for name in world.deleted_pods} == {f"{WORKERS}-2", f"{WORKERS}-0"}
    world.settle()
    assert not world.ended() and not world.outdated(), "the replica is not available again (GM-106)"
    world.held_cliques = set()
    world.settle()
    assert world.ended()


def test_replicas_of_a_set_are_updated_one_by_one():
    world = Rolling(replicas=3)
    world.change("router", "decode")
    turns = []
    for _ in world.until_ended():
        if world.progress.currently_updating:
            [turn] = world.progress.currently_updating
            turns.append(turn.replica_index)
        for index in range(3):
            is_serving = serving(world, f"llm-{index}-router") == 2
            assert is_serving or index == turns[-1]
    assert turns == sorted(turns) and set(turns) == {0, 1, 2}
    assert world.pcs.status.updated_replicas == 3


def test_an_unplaced_replica_is_updated_first():
    world = Rolling(replicas=3)
    for pod in world.pods.values():
        if pod.metadata.name.startswith("llm-2-"):
            pod.spec.node_name, pod.status.conditions = "", []
    world.held_cliques = {name for name in world.cliques if name.startswith("llm-2-")}
    world.settle()
    world.change("router")
    world.tick()
    assert world.progress.currently_updating[0].replica_index == 2
    world.held_cliques = set()
    world.settle()
    assert world.ended()


def test_a_second_change_restarts_the_update_and_removes_the_first_version():
    world = Rolling(replicas=2)
    world.change("router", image="y")
    started = None
    for _ in range(60):
        world.tick()
        if world.progress.currently_updating[0].replica_index == 1 and serving(world, "llm-1-router") == 1:
            break
        started = world.progress.update_started_at
    world.held_cliques = {"llm-1-router"}
    world.unready(*world.names("llm-1-router")[:1])
    world.change("router", image="z")
    world.tick()
    assert world.progress.update_started_at != started
    assert world.progress.currently_updating[0].replica_index == 1, "the one that is not whole goes on"
    world.settle()
    assert serving(world, "llm-0-router") == 2
    world.held_cliques = set()
    world.settle()
    assert world.ended() and not world.outdated()


def test_a_reverted_change_keeps_untouched_pods(world):
    first = world.names(ROUTER)
    original = world.pcs.spec.template.cliques[0].spec.pod_spec
    world.held_cliques = {ROUTER}
    world.change("router")
    world.settle()
    world.change("router")
    world.pcs.spec.template.cliques[0].spec.pod_spec = original
    world.held_cliques = set()
    world.settle()
    assert world.ended() and not world.outdated()
    assert first[1] in world.names(ROUTER) and len(world.deleted_pods) == 2


def test_another_change_repairs_a_broken_template(world):
    world.held_cliques = {ROUTER, *(f"{WORKERS}-{j}-{c}" for j in (0, 1) for c in ("prefill", "decode"))}
    world.change("router", "decode", image="broken")
    world.settle()
    assert not world.ended() and serving(world, ROUTER) == 1
    world.held_cliques = set()
    world.change("router", "decode", image="right")
    for name in world.names(ROUTER):
        assert world.pods[name] is not None
    world.settle()
    assert world.ended() and not world.outdated()


def test_a_set_can_be_scaled_during_an_update():
    world = Rolling(replicas=2)
    world.held_cliques = {"llm-0-router"}
    world.change("router")
    world.settle()
    world.pcs.spec.replicas = 3
    world.settle()
    pod_names = world.names("llm-2-router")
    world.pcs.spec.replicas = 4
    world.held_cliques = set()
    world.settle()
    assert world.ended() and world.names("llm-2-router") == pod_names and not world.outdated()
    assert world.progress.total_pod_cliques_count == 4 == world.progress.updated_pod_cliques_count
    world.held_cliques = {"llm-3-router"}
    world.unready(*world.names("llm-3-router"))
    world.change("router", image="z")
    world.settle()
    assert world.progress.currently_updating[0].replica_index == 3 or world.progress.currently_updating
    world.pcs.spec.replicas = 1
    world.held_cliques = set()
    world.settle()
    assert world.ended() and not world.outdated()


@pytest.mark.parametrize("replicas", [1, 4])
def test_a_group_can_be_scaled_during_an_update(world, replicas):
    world.change("decode")
    world.tick()
    world.groups[WORKERS].spec.replicas = replicas
    world.settle()
    assert world.ended() and not world.outdated()
    assert world.groups[WORKERS].status.updated_replicas == replicas
    assert len(world.deleted_pods) == 6, "each pod that was there goes once"


def test_nothing_is_deleted_with_on_delete(world):
    world.strategy(UpdateStrategyType.ON_DELETE)
    world.change("router", "decode")
    world.settle()
    assert world.deleted_pods == [] and world.ended()
    for progress in (world.progress, world.groups[WORKERS].status.update_progress):
        assert progress.update_started_at and progress.update_ended_at
    assert all(clique.status.update_progress.update_ended_at for clique in world.cliques.values())
    assert world.pcs.status.updated_replicas == 0 == world.cliques[ROUTER].status.updated_replicas
    for name in world.outdated():
        del world.pods[name]
    world.settle()
    assert world.pcs.status.updated_replicas == 1 and not world.outdated()
    assert world.progress.updated_pod_cliques_count == 1


def test_the_next_change_after_on_delete_updates_outdated_pods(world):
    world.strategy(UpdateStrategyType.ON_DELETE)
    world.change("decode")
    world.settle()
    world.strategy(UpdateStrategyType.ROLLING_RECREATE)
    world.settle()
    assert world.deleted_pods == []
    world.change("router")
    world.settle()
    assert world.ended() and not world.outdated()


def test_a_group_changed_with_on_delete_does_not_block_the_update(world):
    # CHG-DF13
    world.strategy(UpdateStrategyType.ON_DELETE)
    world.change("router")
    world.settle()
    world.strategy(UpdateStrategyType.ROLLING_RECREATE)
    world.change("router", image="z")
    world.settle()
    assert world.ended() and world.pcs.status.updated_replicas == 1


def test_on_delete_ends_an_update_in_progress(world):
    # CHG-DF11
    world.held_cliques = {ROUTER, f"{WORKERS}-0-decode"}
    world.change("router", "decode")
    world.settle()
    deleted = list(world.deleted_pods)
    world.strategy(UpdateStrategyType.ON_DELETE)
    world.settle()
    assert world.ended() and world.deleted_pods == deleted and world.progress.currently_updating is None
    for part in (*world.cliques.values(), *world.groups.values()):
        progress = part.status.update_progress
        assert progress is None or progress.update_ended_at is not None
        assert {c.type: c.status for c in part.status.conditions}["MinAvailableBreached"] != "Unknown"


def test_a_partly_deleted_replica_is_deleted_completely(world):
    # The state is as if the operator was killed between the deletions of a replica's cliques. The unchanged clique
    # decode has already been deleted.
    world.change("prefill")
    world.tick()
    other = Rolling()
    other.change("prefill")
    other.set_pass("2027-01-01T00:00:00Z")
    other.drop(f"{WORKERS}-0-decode")
    other.settle()
    assert other.ended() and len([n for n in other.deleted_pods if n.startswith(f"{WORKERS}-0-")]) == 3


@pytest.mark.parametrize(("budget", "unready"), [(1, 0), (2, 0), (3, 0), (5, 0), (3, 2)])
def test_a_clique_never_exceeds_its_budget_of_unavailable_pods(budget, unready):
    # Pods that are not Ready are deleted regardless of maxUnavailable, and count as unavailable (GM-103, GM-104).
    world = Rolling()
    router = world.pcs.spec.template.cliques[0]
    router.rolling_update = RollingUpdate(max_unavailable=budget)
    world.cliques[ROUTER].spec.replicas = 5
    world.settle()
    world.unready(*world.names(ROUTER)[:unready])
    world.held_cliques = {ROUTER}
    world.change("router")
    world.settle()
    assert len(world.deleted_pods) == budget, world.deleted_pods
    world.held_cliques = set()
    lowest = min(sum(pod.ready for pod in world.of(ROUTER)) for _ in world.until_ended())
    assert lowest >= 5 - max(budget, unready + 1) and not world.outdated()


@pytest.mark.parametrize("budget", [1, 2, 4])
def test_a_group_never_exceeds_its_budget_of_unavailable_replicas(budget):
    world = Rolling(group_replicas=4)
    world.pcs.spec.template.pod_clique_scaling_groups[0].rolling_update = RollingUpdate(max_unavailable=budget)
    world.held_cliques = {f"{WORKERS}-{index}-decode" for index in range(4)}
    world.change("decode")
    world.settle()
    assert len({name.rsplit("-", 2)[0] for name in world.deleted_pods}) == budget
    world.held_cliques = set()
    world.settle()
    assert world.ended() and not world.outdated()
