"""Tests that prune removes everything that a run leaves if it is killed at any moment, and nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from conformance.cluster import owner_watch, processes
from conformance.cluster.controlplane import Cluster, find
from conformance.cluster.ports import Ports
from conformance.cluster.prune import prune
from conformance.cluster.state import RECORD_FILE, ClusterRecord, Owner, StateRoot, known_roots, user_state
from tests.cluster.test_commands import grove_conformance
from tests.cluster.waiting import Spawn, wait_for

START_SOURCE = """
import sys
from conformance.cluster.controlplane import Cluster
cluster = Cluster.up("victim")
print("up", flush=True)
sys.stdin.readline()
"""

KWOK_FOLDER = "kwok/clusters/victim"


def processes_of_root(root: Path) -> list[str]:
    """Return the names of the living processes with the marker of a state root."""
    return [
        process.name() for process, _ in processes.find_marked(lambda env: env.get(processes.STATE_ROOT) == str(root))
    ]


def assert_nothing_is_left(state: StateRoot) -> None:
    assert processes_of_root(state.root) == []
    assert list(state.clusters.iterdir()) == []
    assert [folder for folder in Ports().claims().values() if folder.is_relative_to(state.root)] == []


def add_dead_cluster(state: StateRoot, name: str, **fields: object) -> Path:
    """Add the record of a cluster whose processes are all dead; return its folder."""
    owner = Owner(os.getpid(), 1.0)
    record = ClusterRecord(name=name, uid=name, creator=owner, owner=owner)
    folder = state.add(record)
    state.update(record, **fields)
    return folder


def test_nothing_to_prune_is_not_an_error(state: StateRoot) -> None:
    prune_result = prune()
    assert not prune_result.clusters and not prune_result.processes


def test_a_cluster_of_a_dead_owner_is_removed_with_its_ports(state: StateRoot) -> None:
    folder = add_dead_cluster(state, "dead", phase="ready")
    first_port = Ports().claim(folder)
    prune_result = prune()
    assert list(prune_result.clusters) == ["dead"]
    assert first_port in prune_result.ports  # checkouts share the claims, so another checkout may also have void claims
    assert_nothing_is_left(state)


def test_prune_of_all_checkouts_removes_dead_clusters_and_keeps_unreadable_ones(
    state: StateRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    other_root, temporary_root, newer_root = (
        (StateRoot(user_state() / "other")),
        StateRoot(tmp_path / "elsewhere"),
        StateRoot(user_state() / "new"),
    )
    for root in (other_root, temporary_root):
        Ports().claim(add_dead_cluster(root, "dead", phase="ready"))
    (add_dead_cluster(newer_root, "unread") / RECORD_FILE).write_text('{"of": "another version"}')
    add_dead_cluster(newer_root, "dead", phase="ready")
    # Another run releases its ports after this process has listed the claims and before it reads them.
    released_port = user_state() / "ports" / "29999"
    released_port.symlink_to(tmp_path / "nothing")
    assert known_roots() == sorted([temporary_root.root, newer_root.root, other_root.root])
    released_port.unlink()
    listing = grove_conformance("cluster", "list", "--all", "--json").stdout
    assert [Path(entry["directory"]).parent.parent.name for entry in json.loads(listing)].count("other") == 1
    assert grove_conformance("cluster", "prune").stdout == "nothing to remove\n"
    assert grove_conformance("cluster", "prune", "--all").stdout.count("removed cluster dead") == 2
    for root in (other_root, temporary_root):
        assert_nothing_is_left(root)
    assert newer_root.names() == ["dead", "unread"]


@pytest.mark.parametrize("text", ["", "{", '{"name": "bad"}'])
def test_a_cluster_without_a_readable_record_is_removed(state: StateRoot, text: str) -> None:
    (add_dead_cluster(state, "bad") / RECORD_FILE).write_text(text)
    assert list(prune().clusters) == ["bad"]
    assert_nothing_is_left(state)


def test_leftovers_of_a_killed_add_or_remove_are_removed(state: StateRoot) -> None:
    with state.lock():
        (state.clusters / ".new-abc").mkdir()
        (state.clusters / ".gone-abc").mkdir()
    prune()
    assert_nothing_is_left(state)


def test_a_cluster_that_its_living_owner_starts_is_kept(state: StateRoot) -> None:
    this_process = Owner.this_process()
    state.add(ClusterRecord(name="mine", uid="mine", creator=this_process, owner=this_process))
    prune_result = prune()
    assert not prune_result.clusters and state.names() == ["mine"]
    assert prune_result.owner_pids == {"mine": this_process.pid}


def test_only_processes_of_this_root_without_a_living_cluster_are_ended(state: StateRoot, tmp_path: Path) -> None:
    this_process = Owner.this_process()
    state.add(ClusterRecord(name="mine", uid="living", creator=this_process, owner=this_process))

    def start_sleep(root: Path, uid: str) -> subprocess.Popen[bytes]:
        marker = {processes.CLUSTER: uid, processes.STATE_ROOT: str(root)}
        return subprocess.Popen(["sleep", "1000"], env=os.environ | marker)

    orphan, cluster_process, foreign_process = (
        start_sleep(state.root, "gone"),
        start_sleep(state.root, "living"),
        start_sleep(tmp_path, "gone"),
    )
    try:
        assert prune().processes == [f"sleep ({orphan.pid})"]
        assert orphan.wait(timeout=10) == -signal.SIGKILL
        assert cluster_process.poll() is None and foreign_process.poll() is None
    finally:
        for process in (orphan, cluster_process, foreign_process):
            process.kill()
            process.wait()


def kill_with_owner_watch(victim: subprocess.Popen[str], state: StateRoot) -> None:
    """Send SIGKILL to a run, and to the watch that would take down the run's cluster."""
    victim.send_signal(signal.SIGSTOP)
    for process, environment in processes.find_marked(lambda env: env.get(processes.STATE_ROOT) == str(state.root)):
        with contextlib.suppress(psutil.NoSuchProcess):  # the process that starts the components ends by itself
            if environment[processes.CLUSTER] == uid_of_victim(state) and owner_watch.__name__ in process.cmdline():
                process.kill()
    victim.send_signal(signal.SIGKILL)
    victim.wait(timeout=10)


def uid_of_victim(state: StateRoot) -> str:
    record = state.read("victim")
    assert record is not None
    return record.uid


def test_a_descendant_that_emptied_its_environment_is_ended(state: StateRoot) -> None:
    code = "import signal, subprocess as s; s.Popen(['sleep', '1000'], env={}, start_new_session=True); signal.pause()"
    marker = {processes.CLUSTER: "gone", processes.STATE_ROOT: str(state.root)}
    with subprocess.Popen([sys.executable, "-c", code], env=os.environ | marker) as orphan:
        (child,) = wait_for(psutil.Process(orphan.pid).children)
        wait_for(lambda: child.name() == "sleep")
        assert f"sleep ({child.pid})" in prune().processes
        assert orphan.wait(timeout=10) == -signal.SIGKILL
    wait_for(lambda: processes.find_start_time(child.pid) is None)


def path_exists(path: str) -> Callable[[Path], bool]:
    return lambda folder: (folder / path).exists()


@pytest.mark.cluster
@pytest.mark.parametrize(
    "is_reached",
    [
        pytest.param(path_exists(RECORD_FILE), id="the record is written"),
        pytest.param(path_exists("kwokctl.log"), id="kwokctl starts", marks=pytest.mark.thorough),
        pytest.param(path_exists(f"{KWOK_FOLDER}/pki/ca.key"), id="the certificates are made"),
        pytest.param(path_exists(f"{KWOK_FOLDER}/pids/etcd.pid"), id="etcd is forked", marks=pytest.mark.thorough),
        pytest.param(path_exists(f"{KWOK_FOLDER}/pids/kube-scheduler.pid"), id="all are forked"),
        pytest.param(path_exists("kubeconfig"), id="it is well", marks=pytest.mark.thorough),
    ],
)
def test_a_run_killed_while_it_starts_a_cluster_leaves_nothing_after_prune(
    state: StateRoot, spawn: Spawn, is_reached: Callable[[Path], bool]
) -> None:
    victim = spawn(START_SOURCE)
    wait_for(lambda: is_reached(state.directory("victim")))
    kill_with_owner_watch(victim, state)
    assert list(prune().clusters) == ["victim"]
    assert_nothing_is_left(state)


@pytest.mark.cluster
@pytest.mark.parametrize(
    "component",
    [
        "etcd",
        pytest.param("kube-apiserver", marks=pytest.mark.thorough),
        pytest.param("kube-controller-manager", marks=pytest.mark.thorough),
        pytest.param("kwok-controller", marks=pytest.mark.thorough),
    ],
)
def test_a_cluster_without_an_owner_is_removed_only_if_a_component_is_dead(state: StateRoot, component: str) -> None:
    cluster = Cluster.up("victim", owner=False)
    assert not prune().clusters and cluster.monitor.healthy()
    cluster.kill(component)
    assert prune().clusters == {"victim": f"{component} does not run"}
    assert_nothing_is_left(state)


@pytest.mark.cluster
def test_the_removal_of_a_killed_run_affects_no_other_cluster(state: StateRoot, spawn: Spawn) -> None:
    other_cluster = Cluster.up("other")
    victim = spawn(START_SOURCE)
    assert victim.stdout is not None and victim.stdout.readline() == "up\n"
    driver = subprocess.Popen(["sleep", "1000"], env=os.environ | find("victim").marker())
    kill_with_owner_watch(victim, state)
    prune_result = prune()
    assert list(prune_result.clusters) == ["victim"] and f"sleep ({driver.pid})" in prune_result.processes
    assert driver.wait(timeout=10) == -signal.SIGKILL
    assert other_cluster.monitor.healthy()
    other_cluster.down()
    assert_nothing_is_left(state)


@pytest.mark.cluster
def test_an_interrupt_while_a_cluster_starts_leaves_nothing_even_without_prune(state: StateRoot, spawn: Spawn) -> None:
    victim = spawn(START_SOURCE)
    wait_for(lambda: path_exists(f"{KWOK_FOLDER}/pids/etcd.pid")(state.directory("victim")))
    victim.send_signal(signal.SIGINT)
    output, _ = victim.communicate(timeout=30)
    assert "KeyboardInterrupt" in output
    assert_nothing_is_left(state)
