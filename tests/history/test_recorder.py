"""Tests of the recorder on a real control plane."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from conformance.cluster import processes
from conformance.cluster.controlplane import Cluster
from conformance.cluster.ports import Ports
from conformance.cluster.settings import ClusterSettings
from conformance.cluster.state import StateRoot
from conformance.errors import HarnessError
from conformance.grove.kinds import SERVICE_ACCOUNTS
from conformance.history.query import History
from conformance.history.recorder import Recorder, Watched
from kube.client import Client
from kube.resource import CONFIG_MAPS, LEASES, NAMESPACES, NODES, PODS, SERVICES, Resource

pytestmark = pytest.mark.cluster

WATCHED = [Watched(resource) for resource in (PODS, SERVICES, NODES)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    root = tmp_path_factory.mktemp("recorder") / "state"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GROVE_CONFORMANCE_STATE", str(root))
        state = StateRoot()
        yield Cluster.up("recorder", settings=ClusterSettings(audit=False), owner=True, report=lambda *_: None)
        processes.end_marked(lambda environment: environment.get(processes.STATE_ROOT) == str(root))
        for name in state.names():
            Ports().release(state.directory(name))


@pytest.fixture
def recorder(cluster: Cluster) -> Iterator[Recorder]:
    recorder = Recorder(cluster.kubeconfig, "tests-history", WATCHED)
    recorder.start()
    yield recorder
    recorder.stop()


def ask(cluster: Cluster, request: Callable[[Client], Awaitable[object]]) -> None:
    """Send a request to the cluster's API server."""

    async def send() -> None:
        async with Client.from_kubeconfig(cluster.kubeconfig, user_agent="tests-history") as client:
            await request(client)

    asyncio.run(send())


def make(cluster: Cluster, name: str, namespace: str = "default") -> None:
    service = {"metadata": {"name": name}, "spec": {"clusterIP": "None"}}
    ask(cluster, lambda client: client.create(SERVICES, service, namespace=namespace))


def remove(cluster: Cluster, name: str) -> None:
    ask(cluster, lambda client: client.delete(SERVICES, "default", name))


def exists(name: str):
    return lambda view: view.get("services", name) is not None


def deleted(name: str):
    return lambda view: view.get("services", name) is None


def test_every_change_is_recorded_once_in_order_and_byte_for_byte(cluster: Cluster, recorder: Recorder) -> None:
    history = History(recorder, "default")
    make(cluster, "one")
    ask(cluster, lambda client: client.patch(SERVICES, "default", "one", {"metadata": {"labels": {"step": "two"}}}))
    remove(cluster, "one")
    history.wait("the service has come", lambda view: any(history.records("services", "one")), 30)
    history.wait("the service has gone", deleted("one"), 30)
    records = history.records("services", "one")
    assert [record.kind for record in records] == ["ADDED", "MODIFIED", "DELETED"]
    assert [record.revision for record in records] == sorted({record.revision for record in records})
    assert [record.seq for record in records] == sorted(record.seq for record in records)
    assert records[1].object["metadata"]["labels"] == {"step": "two"}
    assert b"managedFields" in records[0].raw
    assert not any(record.listed for record in records)


def test_other_namespaces_stay_out_of_a_history(cluster: Cluster, recorder: Recorder) -> None:
    make(cluster, "elsewhere", "kube-public")
    assert History(recorder, "kube-public").wait("it is there", exists("elsewhere"), 30)
    assert History(recorder, "default").view().get("services", "elsewhere") is None


def test_past_changes_are_recorded_once_the_log_is_complete(cluster: Cluster, recorder: Recorder) -> None:
    for number in range(5):
        make(cluster, f"whole-{number}")
        assert recorder.complete("default", 30).lagging == ""
        assert History(recorder, "default").records("services", f"whole-{number}")


def test_a_watch_that_lags_is_named_and_waited_for(
    cluster: Cluster, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch's events are held back on their way to the log, for longer than a watch takes on an idle machine."""
    watch = next(feed.reflector for feed in recorder._feeds if feed.resource == SERVICES)
    delayed: list[bytes] = []
    monkeypatch.setattr(watch, "_process_line", delayed.append)
    make(cluster, "held")
    assert recorder.complete("default", 1).lagging == "services"
    monkeypatch.undo()
    answers: list[str] = []
    waiting = threading.Thread(target=lambda: answers.append(recorder.complete("default", 1).lagging))
    waiting.start()
    for line in delayed:
        recorder._loop.call_soon_threadsafe(recorder._loop.call_later, 2, watch._process_line, line)
    waiting.join()
    assert answers == [""]
    assert [record.kind for record in History(recorder, "default").records("services", "held")] == ["ADDED"]


def requests(counting: Recorder, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list to which the paths of the recorder's requests are added."""
    sent: list[str] = []
    client = counting._client
    assert client is not None
    send = client.request

    async def request(method: str, path: str, **options: object) -> bytes:
        sent.append(path)
        return await send(method, path, **options)

    monkeypatch.setattr(client, "request", request)
    return sent


@pytest.fixture
def counting(cluster: Cluster) -> Iterator[Recorder]:
    """A recorder that knows from revisions which events it has received."""
    unrecorded = [LEASES, NAMESPACES, CONFIG_MAPS]
    recorder = Recorder(cluster.kubeconfig, "tests-history", WATCHED, [Watched(resource) for resource in unrecorded])
    recorder.start()
    yield recorder
    recorder.stop()


def test_one_request_shows_that_nothing_is_missing(
    cluster: Cluster, counting: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(cluster, "counted-0")
    assert counting.complete("default", 30).lagging == ""
    sent = requests(counting, monkeypatch)
    for number in range(1, 9):
        make(cluster, f"counted-{number}")
        assert counting.complete("default", 30).lagging == ""
        assert History(counting, "default").records("services", f"counted-{number}")
    assert sent.count(PODS.path("default")) < 8  # it lists only if Kubernetes has meanwhile written something else


def test_an_event_that_lags_is_missed_without_lists(
    cluster: Cluster, counting: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(cluster, "missed-0")
    assert counting.complete("default", 30).lagging == ""
    watch = next(feed.reflector for feed in counting._feeds if feed.resource == SERVICES)
    monkeypatch.setattr(watch, "_process_line", lambda line: None)
    make(cluster, "missed-1")
    assert counting.complete("default", 1).lagging == "services"


def test_a_write_to_an_unwatched_resource_is_not_a_gap(cluster: Cluster, counting: Recorder) -> None:
    make(cluster, "beside-0")
    assert counting.complete("default", 30).lagging == ""
    for number in range(3):
        account = {"metadata": {"name": f"beside-{number}"}}
        ask(cluster, lambda client, account=account: client.create(SERVICE_ACCOUNTS, account, namespace="default"))
        make(cluster, f"beside-{number + 1}")
        present = counting.complete("default", 30)
        assert present.lagging == "" and present.revision is not None
        [record] = History(counting, "default").records("services", f"beside-{number + 1}")
        assert record.revision <= present.revision


def test_nothing_is_lost_when_the_api_server_dies(cluster: Cluster, recorder: Recorder) -> None:
    history = History(recorder, "default")
    make(cluster, "before")
    history.wait("it is there", exists("before"), 30)
    cluster.kill("kube-apiserver")
    cluster.start()
    remove(cluster, "before")
    make(cluster, "after")
    history.wait("the deletion was seen", deleted("before"), 60)
    history.wait("the creation was seen", exists("after"), 60)
    assert [record.kind for record in history.records("services", "before")] == ["ADDED", "DELETED"]


def test_a_resource_that_is_not_served_is_named(cluster: Cluster) -> None:
    unknown = Resource("nowhere.example", "v1", "things", "Thing")
    recorder = Recorder(cluster.kubeconfig, "tests-history", [*WATCHED, Watched(unknown)])
    with pytest.raises(HarnessError, match=r"could not list things\.nowhere\.example"):
        recorder.start(timeout=2)


def test_a_missing_kubeconfig_is_reported(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "none", "tests-history", WATCHED)
    with pytest.raises(HarnessError, match="no such kubeconfig"):
        recorder.start(timeout=5)
