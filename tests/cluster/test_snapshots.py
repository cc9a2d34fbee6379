"""Tests that snapshots of a cluster are consistent, and that a restore removes objects that were created later."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from tenacity import AsyncRetrying, retry_if_result, stop_after_delay, wait_fixed

from conformance.cluster import nodes, snapshots
from conformance.cluster.controlplane import Cluster
from conformance.cluster.prune import prune
from conformance.cluster.state import ClusterRecord, Owner, StateRoot
from conformance.cluster.usage import pod_state
from conformance.errors import UsageError
from kube.client import Client
from kube.errors import ApiError
from kube.resource import NAMESPACES, NODES, PODS, Resource
from tests.cluster.test_commands import grove_conformance, run_in_process
from tests.cluster.test_etcd_data import Killed, kill_at
from tests.cluster.waiting import wait_for

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GROVE_CONFORMANCE_STATE", str(tmp_path_factory.mktemp("state")))
        cluster = Cluster.up("kept")
        yield cluster
        cluster.down()


def client(cluster: Cluster) -> Client:
    return Client.from_kubeconfig(cluster.kubeconfig, user_agent="cluster-test/1")


def config_map(name: str, value: str = "") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value}}


def stored_objects(cluster: Cluster) -> dict[str, str]:
    """Return all namespaces and nodes, and the config maps of the default namespace: name → UID and data."""

    async def read() -> dict[str, str]:
        async with client(cluster) as api:
            lists = [await api.list(NAMESPACES), await api.list(NODES), await api.list(CONFIG_MAPS, "default")]
            return {
                item["metadata"]["name"]: item["metadata"]["uid"] + str(item.get("data"))
                for items in lists
                for item in items
            }

    return asyncio.run(read())


def change_everything(cluster: Cluster) -> None:
    """Create a namespace, change a config map, and delete a config map and a node."""

    async def change() -> None:
        async with client(cluster) as api:
            await api.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "later"}})
            await api.patch(CONFIG_MAPS, "default", "changed", {"data": {"value": "after"}})
            await api.delete(CONFIG_MAPS, "default", "deleted")
            await api.delete(NODES, None, "tiny-0")

    asyncio.run(change())


async def run_pod(cluster: Cluster) -> None:
    """Create a pod on a node of the snapshot and wait until it is Ready, which shows that KWOK simulates the node."""
    container = {"name": "main", "image": "registry.example/main:1"}
    spec = {"nodeName": "tiny-0", "containers": [container]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "played"}, "spec": spec}
    async with client(cluster) as api:
        await api.create(PODS, pod, namespace="default")
        wait = AsyncRetrying(
            retry=retry_if_result(lambda state: state != "Ready"), wait=wait_fixed(0.1), stop=stop_after_delay(60)
        )
        await wait(_only_pod_state, api)


async def _only_pod_state(api: Client) -> str:
    (pod,) = await api.list(PODS, "default")
    return pod_state(pod)


@pytest.mark.cluster
def test_a_restore_recreates_the_objects_of_the_snapshot_and_removes_later_ones(cluster: Cluster) -> None:
    async def create_objects() -> None:
        async with client(cluster) as api:
            await nodes.create_nodes(api, nodes.manifests("tiny", 2))
            for name in ("changed", "deleted"):
                await api.create(CONFIG_MAPS, config_map(name, "before"), namespace="default")

    asyncio.run(create_objects())
    objects_before = stored_objects(cluster)
    assert grove_conformance("cluster", "snapshot", "kept").returncode == 0
    change_everything(cluster)
    assert stored_objects(cluster) != objects_before
    result = grove_conformance("cluster", "restore", "kept")
    assert result.stdout == "cluster kept is as in its snapshot latest\n", result.stderr
    assert stored_objects(cluster) == objects_before and cluster.monitor.healthy()
    asyncio.run(run_pod(cluster))

    # If a restore is killed while etcd is stopped, the next start completes or undoes it.
    change_everything(cluster)
    changed_objects = stored_objects(cluster)
    command = [sys.executable, "-m", "conformance.cli", "cluster", "restore", "kept"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        wait_for(lambda: "etcd" not in cluster.monitor.pids())
        process.send_signal(signal.SIGKILL)
    assert grove_conformance("cluster", "start", "kept").returncode == 0
    assert stored_objects(cluster) in (objects_before, changed_objects) and cluster.monitor.healthy()


@pytest.mark.cluster
def test_a_snapshot_contains_exactly_the_writes_before_one_moment(cluster: Cluster) -> None:
    stop_requested = threading.Event()
    written_names: list[str] = []

    async def write_config_maps() -> None:
        async with client(cluster) as api:
            while not stop_requested.is_set():
                name = f"write-{len(written_names)}"
                try:
                    await api.create(CONFIG_MAPS, config_map(name), namespace="default")
                except (ApiError, OSError) as error:  # etcd is stopped; an earlier attempt may have been accepted
                    if not (isinstance(error, ApiError) and error.already_exists):
                        continue
                written_names.append(name)

    writer = threading.Thread(target=lambda: asyncio.run(write_config_maps()))
    writer.start()
    try:
        wait_for(lambda: len(written_names) > 50)
        count_before = len(written_names)
        with cluster.hold_lock():
            snapshots.take(cluster, "busy")
        count_after = len(written_names)
        wait_for(lambda: len(written_names) > count_after + 50)
    finally:
        stop_requested.set()
        writer.join()
    with cluster.hold_lock():
        snapshots.restore(cluster, "busy")
    names = [name for name in stored_objects(cluster) if name.startswith("write-")]
    assert sorted(names) == sorted(f"write-{number}" for number in range(len(names)))
    assert count_before <= len(names) <= count_after + 1
    assert [snapshot.name for snapshot in snapshots.list_snapshots(cluster)][-1] == "busy"
    assert run_in_process("cluster", "snapshots", "kept", "--remove", "busy").stdout == "removed snapshot busy\n"
    assert "busy" not in run_in_process("cluster", "snapshots", "kept").stdout


def add_cluster(state: StateRoot) -> Cluster:
    """Record a cluster that has no running process, and return it."""
    record = ClusterRecord("idle", "idle", Owner.this_process(), None, phase="ready")
    state.add(record)
    return Cluster(state, record)


def test_mistakes_about_snapshots_are_reported_in_one_line(state: StateRoot) -> None:
    cluster = add_cluster(state)
    with pytest.raises(UsageError, match="'No' is not a valid name of a snapshot"):
        snapshots.take(cluster, "No")
    with pytest.raises(UsageError, match="no snapshot 'latest' — take one: cluster snapshot idle latest"):
        snapshots.restore(cluster, "latest")
    assert run_in_process("cluster", "snapshots", "idle").stdout == "none\n"
    (cluster.directory / "snapshots" / "first").mkdir(parents=True)
    with pytest.raises(UsageError, match="a snapshot named 'first' exists already — choose another name"):
        snapshots.take(cluster, "first")
    with pytest.raises(UsageError, match='did you mean "first"'):
        snapshots.remove(cluster, "frist")


def test_a_stopped_cluster_is_not_started_for_a_snapshot(state: StateRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = add_cluster(state)
    monkeypatch.setattr(Cluster, "_own_assets", lambda *_: None)
    monkeypatch.setattr(Cluster, "_start_dead_components", lambda *_: pytest.fail("it was started"))
    with pytest.raises(UsageError, match=r"no component 'etcd' runs — start .*: grove-conformance cluster start idle"):
        snapshots.take(cluster, "first")
    assert snapshots.list_snapshots(cluster) == []


@pytest.fixture
def idle_cluster(state: StateRoot, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster without running processes, whose etcd has the data `new`."""
    monkeypatch.setattr(Cluster, "without", lambda *_, **__: nullcontext())
    cluster = add_cluster(state)
    write_data(cluster, "new")
    return cluster


def write_data(cluster: Cluster, content: str) -> None:
    (cluster.workspace / "etcd" / "member").mkdir(parents=True, exist_ok=True)
    (cluster.workspace / "etcd" / "member" / "db").write_text(content)


def restored_data(cluster: Cluster) -> dict[str, str]:
    """Restore each snapshot in turn, and return the restored data by snapshot name."""
    content = {}
    for snapshot in snapshots.list_snapshots(cluster):
        snapshots.restore(cluster, snapshot.name)
        content[snapshot.name] = (cluster.workspace / "etcd/member/db").read_text()
    return content


STEPS = range(10)
"""The numbers, from 0, of the renames and removals in `take` with `replace`, and one number after the last of them."""


@pytest.mark.parametrize("step", STEPS)
def test_an_interrupted_replacement_leaves_one_complete_snapshot(
    idle_cluster: Cluster, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_data(idle_cluster, "old")
    snapshots.take(idle_cluster, "first")
    write_data(idle_cluster, "new")
    with monkeypatch.context() as patch:
        kill_at(step, patch)
        with pytest.raises(Killed) if step != STEPS[-1] else nullcontext():
            snapshots.take(idle_cluster, "first", replace=True)
    assert [snapshot.name for snapshot in snapshots.list_snapshots(idle_cluster)] == ["first"]
    assert restored_data(idle_cluster) == {"first": "old" if step < 5 else "new"}
    assert [path.name for path in (idle_cluster.directory / "snapshots").iterdir()] == ["first"], (
        "the next command cleans up"
    )


@pytest.mark.parametrize("step", range(7))
def test_an_interrupted_first_snapshot_is_complete_or_absent(
    idle_cluster: Cluster, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_at(step, patch)
        snapshots.take(idle_cluster, "first")
    assert restored_data(idle_cluster) == ({"first": "new"} if step > 2 else {})


@pytest.mark.parametrize("step", range(4))
def test_an_interrupted_removal_leaves_a_complete_snapshot_or_none(
    idle_cluster: Cluster, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshots.take(idle_cluster, "first")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_at(step, patch)
        snapshots.remove(idle_cluster, "first")
    assert restored_data(idle_cluster) == ({"first": "new"} if step == 0 else {})


def test_prune_keeps_a_cluster_whose_components_are_stopped_temporarily(state: StateRoot) -> None:
    cluster = add_cluster(state)
    with cluster.hold_lock():
        assert not prune(state).clusters
    assert list(prune(state).clusters) == ["idle"]
