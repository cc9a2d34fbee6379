"""Tests that a cluster which belongs to a process is taken down when the process ends, without `cluster prune`."""

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
from conformance.cluster.state import RECORD, ClusterRecord, Owner, StateRoot
from conformance.errors import UsageError
from tests.cluster.test_prune import KWOK, START, assert_nothing_is_left, exists, of_root
from tests.cluster.waiting import Spawn, wait_for

DEAD = Owner(os.getpid(), 1.0)


class Looked(Exception):
    """Raised in place of the pause between two checks."""


def stop_at_pause(pause: float) -> None:
    raise Looked


def add(state: StateRoot, **fields: object) -> ClusterRecord:
    me = Owner.this_process()
    record = ClusterRecord(name="one", uid="uid-of-one", creator=me, owner=me)
    state.add(record)
    return state.update(record, **fields)


@pytest.mark.parametrize("fields", [{"creator": DEAD}, {"phase": "ready", "owner": DEAD}], ids=["starting", "ready"])
def test_the_cluster_of_a_dead_process_is_taken_down(state: StateRoot, fields: dict[str, object]) -> None:
    record = add(state, **fields)
    Ports().claim(state.directory("one"))
    marker = {processes.CLUSTER: record.uid, processes.STATE_ROOT: str(state.root)}
    with subprocess.Popen(["sleep", "1000"], env=os.environ | marker) as component:
        owner_watch.watch(state, "one", record.uid, stop_at_pause)
        assert component.wait(timeout=10) == -signal.SIGKILL
    assert_nothing_is_left(state)


@pytest.mark.parametrize("error", [RetryError(Future(1)), UsageError("the disk is full")], ids=["busy", "full"])
def test_a_take_down_that_fails_is_tried_again(
    state: StateRoot, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    record, tries, pauses = add(state, creator=DEAD), [error, None], []

    def take_down(*given: object) -> None:
        if (failure := tries.pop(0)) is not None:
            raise failure

    monkeypatch.setattr(owner_watch, "take_down", take_down)
    owner_watch.watch(state, "one", record.uid, pauses.append)
    assert (tries, len(pauses)) == ([], 1)


@pytest.mark.parametrize(
    "fields", [{}, {"phase": "ready"}, {"creator": DEAD, "phase": "ready"}], ids=["starting", "ready", "handed over"]
)
def test_the_cluster_of_a_living_process_stays(state: StateRoot, fields: dict[str, object]) -> None:
    record = add(state, **fields)
    with pytest.raises(Looked):
        owner_watch.watch(state, "one", record.uid, stop_at_pause)
    assert state.names() == ["one"]


def test_a_cluster_that_belongs_to_nobody_is_not_watched(state: StateRoot) -> None:
    record = add(state, creator=DEAD, owner=None, phase="ready")
    owner_watch.watch(state, "one", record.uid, stop_at_pause)
    assert state.names() == ["one"]


def test_another_cluster_of_the_same_name_stays(state: StateRoot) -> None:
    add(state, creator=DEAD)
    owner_watch.watch(state, "one", "another uid", stop_at_pause)
    owner_watch.take_down(state, "one", "another uid")
    assert state.names() == ["one"]


def test_an_owner_that_gave_the_cluster_away_as_its_last_act_takes_nothing_along(
    state: StateRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = add(state, phase="ready", owner=DEAD)

    def give_away_and_end(self: Owner) -> bool:
        state.update(record, owner=Owner.this_process())
        return False

    monkeypatch.setattr(Owner, "alive", give_away_and_end)
    assert state.abandoned("one") == ""


@pytest.mark.cluster
@pytest.mark.parametrize(
    "moment",
    [
        pytest.param(lambda folder: of_root(folder.parent.parent), id="the watch runs"),
        pytest.param(exists(f"{KWOK}/pids/etcd.pid"), id="etcd is forked", marks=pytest.mark.thorough),
        pytest.param(exists("kubeconfig"), id="it is Ready"),
    ],
)
def test_a_run_killed_with_its_process_group_leaves_nothing(state: StateRoot, moment: Callable[[Path], bool]) -> None:
    folder = state.directory("victim")
    with subprocess.Popen([sys.executable, "-c", START], stdin=subprocess.PIPE, start_new_session=True) as victim:
        wait_for(lambda: moment(folder))
        os.killpg(victim.pid, signal.SIGKILL)
    wait_for(lambda: not folder.exists() and not of_root(state.root))
    assert_nothing_is_left(state)


@pytest.mark.cluster
def test_a_cluster_that_was_lent_ends_with_its_borrower(state: StateRoot, spawn: Spawn) -> None:
    command = [sys.executable, "-m", "conformance.cli", "cluster", "up", "lent", "--owner"]
    with subprocess.Popen(["sleep", "1000"]) as borrower:
        subprocess.run([*command, str(borrower.pid)], check=True, capture_output=True)
        assert (state.directory("lent") / RECORD).exists()
        borrower.kill()
    wait_for(lambda: not state.directory("lent").exists() and not of_root(state.root))
    assert_nothing_is_left(state)
