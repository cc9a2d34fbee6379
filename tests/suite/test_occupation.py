"""Tests of a run on a cluster that it has not started: what it refuses, what it does to KWOK, and what it leaves."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from conformance.cluster import abilities, nodes
from conformance.cluster.chosen_kubeconfig import ChosenKubeconfig
from conformance.cluster.controlplane import Cluster
from conformance.cluster.existing import claim, kwok_stages, leftovers
from conformance.cluster.existing.kwok_stages import STAGES
from conformance.cluster.existing.marks import with_run_label
from conformance.errors import UsageError
from conformance.implementation import loading
from conformance.run import trial
from conformance.suite.outcomes import ledger, ledger_file
from conformance.suite.session import occupation
from conformance.suite.session.occupation import OccupationTerms, occupied
from kube.client import Client
from kube.leases import LeaseTiming
from kube.resource import LEASES, NAMESPACES, NODES, PODS
from tests.cluster.foreign import foreign_cluster

pytestmark = pytest.mark.cluster
T = TypeVar("T")
OPTIONS = ("--context", "theirs")
SHORT_TERMS = LeaseTiming(lease=2, deadline=1.5, retry=0.2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def foreign(folder: Path) -> Iterator[Cluster]:
    """A cluster whose KWOK was installed by its Helm chart, and whose owner has declared it disposable."""
    with foreign_cluster(folder, by_api=True) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim.ClusterClaim.__init__, "__defaults__", (SHORT_TERMS,))


def run_on(cluster: Cluster, action: Callable[[Client], Awaitable[T]]) -> T:
    async def ask() -> T:
        async with Client.from_kubeconfig(cluster.kubeconfig, user_agent="test") as client:
            return await action(client)

    return asyncio.run(ask())


def specs(cluster: Cluster) -> dict[str, Any]:
    """Return the labels and the spec of each Stage of a cluster, by name."""
    stages = run_on(cluster, lambda client: client.list(STAGES))
    return {stage["metadata"]["name"]: (stage["metadata"].get("labels"), stage["spec"]) for stage in stages}


def remains(cluster: Cluster) -> list[str]:
    """Return the objects that runs have left on a cluster, including their Lease."""
    leftover_names = [f"{item.resource} {item.name}" for item in run_on(cluster, leftovers.find)]
    leases = run_on(cluster, lambda client: client.list(LEASES, claim.NAMESPACE))
    return leftover_names + [item["metadata"]["name"] for item in leases if item["metadata"]["name"] == claim.NAME]


def test_a_kwok_with_our_stages_plays_everything_and_gets_its_own_back(foreign: Cluster) -> None:
    before = specs(foreign)
    assert set(before) == {"node-initialize", "pod-ready", "pod-delete"}
    with occupied(foreign.kubeconfig, OccupationTerms("r1", OPTIONS)) as plain:
        assert set(plain.unplayed) == set(abilities.Ability)
    with occupied(foreign.kubeconfig, OccupationTerms("r2", OPTIONS, install_stages=True)) as session:
        assert session.unplayed == {}
        assert session.lines == ["replaces the 3 Stages of its KWOK by ours; puts these back at the end"]
        assert "pod-starts" in specs(foreign)
        assert session.simulator is not None and session.simulator.is_alive()
    assert not session.simulator.is_alive()
    assert specs(foreign) == before
    assert remains(foreign) == []


def test_stages_that_are_kept_outlive_the_run_until_they_are_cleaned_up(foreign: Cluster) -> None:
    before = specs(foreign)
    with occupied(foreign.kubeconfig, OccupationTerms("r3", OPTIONS, install_stages=True, keep_stages=True)):
        pass
    assert "pod-starts" in specs(foreign)
    with occupied(foreign.kubeconfig, OccupationTerms("r4", OPTIONS)) as session:  # no trace of a killed run
        assert abilities.Ability.BEHAVIORS not in session.unplayed
    assert "pod-starts" in specs(foreign)
    occupation.clean(foreign.kubeconfig)
    assert specs(foreign) == before
    assert remains(foreign) == []


@pytest.mark.parametrize("step", range(1, 6))
def test_a_run_that_is_killed_while_it_replaces_stages_loses_none(
    foreign: Cluster, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = specs(foreign)

    class Killed(BaseException):
        pass

    async def install(client: Client) -> None:
        writes = 0

        def count() -> None:
            nonlocal writes
            writes += 1
            if writes > step:
                raise Killed

        client.before_write = count
        await kwok_stages.install(client, "r5")

    with pytest.raises(Killed):
        run_on(foreign, install)
    occupation.clean(foreign.kubeconfig)
    assert specs(foreign) == before
    assert remains(foreign) == []


def test_the_remains_of_a_killed_run_are_named_and_removed(foreign: Cluster) -> None:
    async def leave(client: Client) -> None:
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "left-behind"}}
        await client.create(NAMESPACES, with_run_label(space, "r6"))
        (node,) = nodes.manifests("single", 1, "left")
        await client.create(NODES, with_run_label(node, "r6"))
        metadata = {"name": "held", "namespace": "left-behind", "finalizers": ["grove.io/finalizer"]}
        await client.create(kwok_stages.CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        for node_name in ("left-single-0", "gone"):
            await client.create(PODS, pod(f"on-{node_name}", "left-behind", node_name))

    run_on(foreign, leave)
    message = (
        r"^--context theirs: a run that was killed has left 1 namespaces, 1 nodes, of the run r6 — "
        r"grove-conformance cluster clean --context theirs$"
    )
    with pytest.raises(UsageError, match=message), occupied(foreign.kubeconfig, OccupationTerms("r7", OPTIONS)):
        pytest.fail("it would be taken for what was there before")
    assert occupation.clean(foreign.kubeconfig, "another") == []
    assert {item.name for item in occupation.clean(foreign.kubeconfig)} == {"left-behind", "left-single-0"}
    assert remains(foreign) == []
    assert "left-behind" not in [item["metadata"]["name"] for item in run_on(foreign, lambda c: c.list(NAMESPACES))]


def test_two_runs_do_not_share_a_cluster(foreign: Cluster) -> None:
    with (
        claim.claim_cluster(foreign.kubeconfig, "r8"),
        pytest.raises(UsageError, match=r"^lease kube-system/grove-conformance: the run r8 on \S+ uses this cluster"),
        claim.claim_cluster(foreign.kubeconfig, "r9"),
    ):
        pytest.fail("both would start an operator")
    with claim.claim_cluster(foreign.kubeconfig, "r9"):
        pass
    assert remains(foreign) == []


def test_a_scheduler_that_serves_the_judged_name_is_named(foreign: Cluster) -> None:
    # kube-scheduler writes core events, which name no instance, if discovery did not answer when it started.
    message = (
        r"^--context theirs: another scheduler serves the scheduler name 'default-scheduler': it bound the pod "
        r"default/preflight-\w+ \(an event says: kube-scheduler as default-scheduler( at \S+)?\) — stop it"
    )
    with (
        pytest.raises(UsageError, match=message),
        occupied(foreign.kubeconfig, OccupationTerms("r10", OPTIONS, scheduler="default-scheduler")),
    ):
        pytest.fail("its bindings would be judged")
    with occupied(foreign.kubeconfig, OccupationTerms("r11", OPTIONS, scheduler="nobody-serves-this")):
        pass
    assert remains(foreign) == []


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        (
            OccupationTerms("r12", install_stages=True),
            r"^--install-stages: needs a cluster that you name — add --context",
        ),
        (
            OccupationTerms("r13", OPTIONS, install_stages=True),
            r"^--install-stages: its KWOK plays 1 pods of others, .* the first: default/theirs — delete them",
        ),
    ],
)
def test_stages_are_installed_only_where_they_change_nothing_for_others(
    foreign: Cluster, terms: OccupationTerms, message: str
) -> None:
    before = specs(foreign)

    async def make(client: Client) -> None:
        (node,) = nodes.manifests("single", 1)
        await client.create(NODES, node)
        await nodes.wait_until_schedulable(client, ["single-0"])
        await client.create(PODS, pod("theirs", "default", "single-0"))

    async def remove(client: Client) -> None:
        await client.delete(PODS, "default", "theirs", grace_seconds=0)
        await client.delete(NODES, None, "single-0")

    run_on(foreign, make)
    try:
        with pytest.raises(UsageError, match=message), occupied(foreign.kubeconfig, terms):
            pytest.fail("the pods of others would behave otherwise")
    finally:
        run_on(foreign, remove)
    assert specs(foreign) == before


def test_a_kwok_that_reads_its_stages_from_a_file_is_refused(tmp_path: Path) -> None:
    message = r"^--install-stages: its KWOK reads no Stages from the API — start KWOK with --enable-crds=Stage"
    with (
        foreign_cluster(tmp_path, by_api=False) as cluster,
        pytest.raises(UsageError, match=message),
        occupied(cluster.kubeconfig, OccupationTerms("r14", OPTIONS, install_stages=True)),
    ):
        pytest.fail("KWOK would go on with its own")


@pytest.mark.thorough
def test_an_implementation_is_tried_on_a_cluster_of_others_and_leaves_nothing(foreign: Cluster) -> None:
    on = ChosenKubeconfig(foreign.kubeconfig, OPTIONS)
    outcome = trial.run_trial(loading.load("reference"), None, 60, lambda subject, step: None, existing_cluster=on)
    assert outcome.complete, outcome
    assert remains(foreign) == []


@pytest.mark.timeout(600)
@pytest.mark.thorough
def test_workers_on_one_cluster_share_an_implementation(foreign: Cluster, tmp_path: Path) -> None:
    """The first worker starts the implementation. At the end, it alone plays the scenes that affect other tests."""
    words = ["--cluster=existing", f"--kubeconfig={foreign.kubeconfig}", "--install-stages", "--workers=2"]
    words += [f"--report-dir={tmp_path}", "--test=resources/test_names.py", "--test=resources/test_secondary.py"]
    result = subprocess.run(
        [sys.executable, "-m", "conformance", "run", *words],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    (run,) = tmp_path.iterdir()
    played = [event for event in ledger_file.read(run / "ledger") if isinstance(event, ledger.ScenePlayed)]
    assert {event.worker for event in played} == {"gw0", "gw1"}
    lone_scenes = [event for event in played if event.scene.endswith("::ForeignServiceAndNoToken")]
    assert [event.worker for event in lone_scenes] == ["gw0"]
    assert (
        max(event.wall for event in played if event not in lone_scenes) <= lone_scenes[0].wall - lone_scenes[0].seconds
    )
    assert remains(foreign) == []


def pod(name: str, namespace: str, node: str) -> dict[str, Any]:
    spec = {
        "nodeName": node,
        "automountServiceAccountToken": False,
        "containers": [{"name": "main", "image": "registry.example/main:1"}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec}
