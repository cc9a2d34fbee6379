"""Tests that a cluster that a process owns is taken down when the process ends, without `cluster prune`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tenacity import Future, RetryError

from conformance.cluster import owner_watch, processes
from conformance.cluster.ports import Ports
from conformance.cluster.state import RECORD_FILE, ClusterRecord, Owner, StateRoot
from conformance.errors import UsageError
from tests.cluster.test_prune import KWOK_FOLDER, START_SOURCE, assert_nothing_is_left, path_exists, processes_of_root
from tests.cluster.waiting import Spawn, wait_for

DEAD_OWNER = Owner(os.getpid(), 1.0)


class Paused(Exception):
    """Raised instead of a pause between two checks."""


def stop_at_pause(pause: float) -> None:
    raise Paused


def add_cluster(state: StateRoot, **fields: object) -> ClusterRecord:
    this_process = Owner.this_process()
    record = ClusterRecord(name="one", uid="uid-of-one", creator=this_process, owner=this_process)
    state.add(record)
    return state.update(record, **fields)


@pytest.mark.parametrize(
    "fields", [{"creator": DEAD_OWNER}, {"phase": "ready", "owner": DEAD_OWNER}], ids=["starting", "ready"]
)
def test_the_cluster_of_a_dead_process_is_taken_down(state: StateRoot, fields: dict[str, object]) -> None:
    record = add_cluster(state, **fields)
    Ports().claim(state.directory("one"))
    marker = {processes.CLUSTER: record.uid, processes.STATE_ROOT: str(state.root)}
    with subprocess.Popen(["sleep", "1000"], env=os.environ | marker) as component:
        owner_watch.watch(state, "one", record.uid, stop_at_pause)
        assert component.wait(timeout=10) == -signal.SIGKILL
    assert_nothing_is_left(state)


@pytest.mark.parametrize("error", [RetryError(Future(1)), UsageError("the disk is full")], ids=["busy", "full"])
def test_a_failed_take_down_is_retried(state: StateRoot, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    record, outcomes, pauses = add_cluster(state, creator=DEAD_OWNER), [error, None], []

    def take_down(*arguments: object) -> None:
        if (failure := outcomes.pop(0)) is not None:
            raise failure

    monkeypatch.setattr(owner_watch, "take_down", take_down)
    owner_watch.watch(state, "one", record.uid, pauses.append)
    assert (outcomes, len(pauses)) == ([], 1)


@pytest.mark.parametrize(
    "fields",
    [{}, {"phase": "ready"}, {"creator": DEAD_OWNER, "phase": "ready"}],
    ids=["starting", "ready", "handed over"],
)
def test_the_cluster_of_a_running_process_remains(state: StateRoot, fields: dict[str, object]) -> None:
    record = add_cluster(state, **fields)
    with pytest.raises(Paused):
        owner_watch.watch(state, "one", record.uid, stop_at_pause)
    assert state.names() == ["one"]


def test_a_cluster_without_an_owner_is_not_watched(state: StateRoot) -> None:
    record = add_cluster(state, creator=DEAD_OWNER, owner=None, phase="ready")
    owner_watch.watch(state, "one", record.uid, stop_at_pause)
    assert state.names() == ["one"]


def test_another_cluster_of_the_same_name_remains(state: StateRoot) -> None:
    add_cluster(state, creator=DEAD_OWNER)
    owner_watch.watch(state, "one", "another uid", stop_at_pause)
    owner_watch.take_down(state, "one", "another uid")
    assert state.names() == ["one"]


def test_a_cluster_that_is_handed_over_while_its_owner_ends_is_not_abandoned(
    state: StateRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = add_cluster(state, phase="ready", owner=DEAD_OWNER)

    def hand_over_and_end(self: Owner) -> bool:
        state.update(record, owner=Owner.this_process())
        return False

    monkeypatch.setattr(Owner, "is_alive", hand_over_and_end)
    assert state.abandonment_reason("one") == ""


@pytest.mark.cluster
@pytest.mark.parametrize(
    "is_reached",
    [
        pytest.param(lambda folder: processes_of_root(folder.parent.parent), id="the watch runs"),
        pytest.param(path_exists(f"{KWOK_FOLDER}/pids/etcd.pid"), id="etcd is forked", marks=pytest.mark.thorough),
        pytest.param(path_exists("kubeconfig"), id="it is Ready"),
    ],
)
def test_a_run_killed_with_its_process_group_leaves_nothing(
    state: StateRoot, is_reached: Callable[[Path], bool]
) -> None:
    folder = state.directory("victim")
    with subprocess.Popen(
        [sys.executable, "-c", START_SOURCE], stdin=subprocess.PIPE, start_new_session=True
    ) as victim:
        wait_for(lambda: is_reached(folder))
        os.killpg(victim.pid, signal.SIGKILL)
    wait_for(lambda: not folder.exists() and not processes_of_root(state.root))
    assert_nothing_is_left(state)


@pytest.mark.cluster
def test_a_cluster_ends_with_the_process_that_was_named_as_its_owner(state: StateRoot, spawn: Spawn) -> None:
    command = [sys.executable, "-m", "conformance.cli", "cluster", "up", "lent", "--owner"]
    with subprocess.Popen(["sleep", "1000"]) as owner:
        subprocess.run([*command, str(owner.pid)], check=True, capture_output=True)
        assert (state.directory("lent") / RECORD_FILE).exists()
        owner.kill()
    wait_for(lambda: not state.directory("lent").exists() and not processes_of_root(state.root))
    assert_nothing_is_left(state)
