"""Tests of implementations that are deployed in the cluster by manifests or by Helm: their Deployments are started,
stopped, killed, watched and removed through the API. A fake kubelet runs the containers of their pods."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tenacity import Retrying, retry_if_not_result, stop_after_delay, wait_fixed

from conformance.cluster import kubeconfigs
from conformance.cluster.controlplane import Cluster
from conformance.cluster.settings import ClusterSettings
from conformance.implementation import deployment, loading
from conformance.implementation.descriptor import Role
from conformance.implementation.driver import Driver, NotStarted
from conformance.suite.scenes.api import Api
from kube.errors import ApiError
from tests.implementation.deployed.fake_kubelet import FakeKubelet

pytestmark = pytest.mark.cluster

DESCRIPTORS = Path(__file__).parent / "deployed"
OPERATOR_KEY = ("grove-system", "operator")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GROVE_CONFORMANCE_STATE", str(tmp_path_factory.mktemp("state")))
        new_cluster = Cluster.up("deployed", settings=ClusterSettings(), owner=True)
        try:
            yield new_cluster
        finally:
            new_cluster.down()


@pytest.fixture
def kubelet(cluster: Cluster, tmp_path: Path) -> Iterator[FakeKubelet]:
    with FakeKubelet(cluster.kubeconfig, tmp_path).run_node() as fake_kubelet:
        yield fake_kubelet


def wait_until(condition: Callable[[], object], timeout: float = 60) -> None:
    Retrying(retry=retry_if_not_result(bool), wait=wait_fixed(0.1), stop=stop_after_delay(timeout))(condition)


def driver_of(cluster: Cluster, name: str = "manifests", **settings: str) -> Driver:
    implementation, supplier = loading.load(str(DESCRIPTORS / f"{name}.yaml"), settings), loading.load("reference")
    return Driver(implementation, deployment.facts_of(cluster), supplier)


def test_a_deployment_is_started_stopped_killed_and_removed_through_the_api(
    cluster: Cluster, api: Api, kubelet: FakeKubelet, tmp_path: Path
) -> None:
    with driver_of(cluster) as driver:
        driver.install()
        driver.start(Role.OPERATOR)
        assert driver.controls(Role.OPERATOR) and driver.is_alive(Role.OPERATOR)
        (first_process,) = kubelet.processes.values()
        assert "reference_impl" in " ".join(map(str, first_process.args))

        driver.stop(Role.OPERATOR)
        assert not driver.is_alive(Role.OPERATOR) and first_process.returncode == 0, "the platform ends it by SIGTERM"
        assert kubelet.processes == {}
        driver.start(Role.OPERATOR)
        (second_process,) = kubelet.processes.values()
        driver.kill(Role.OPERATOR)
        wait_until(lambda: second_process.returncode == -9)
        driver.restart(Role.OPERATOR)
        assert driver.is_alive(Role.OPERATOR) and driver.failures() == ()

        (third_process,) = kubelet.processes.values()
        third_process.kill()
        wait_until(driver.failures)
        (failure,) = driver.failures()
        assert str(failure).startswith("deployed: the operator was ended by SIGKILL; its container was restarted")
        assert str(failure).endswith("its log ends with: started as 1 | started as 1 | started as 1")
        read_lines = driver.logs()["operator"].read_text().splitlines()
        written_lines = [line for path in tmp_path.glob("*.log") for line in path.read_text().splitlines()]
        assert 4 <= read_lines.count("started as 1") <= written_lines.count("started as 1"), (
            "each line once, of every pod"
        )
    with pytest.raises(ApiError, match="not found"):
        api.get("deployments", *OPERATOR_KEY)


@pytest.mark.thorough
def test_another_version_replaces_the_deployment_and_is_replaced_again(
    cluster: Cluster, api: Api, kubelet: FakeKubelet
) -> None:
    def image() -> str:
        (container,) = api.get("deployments", *OPERATOR_KEY)["spec"]["template"]["spec"]["containers"]
        return str(container["image"])

    with driver_of(cluster) as driver:
        driver.install()
        driver.start(Role.OPERATOR)
        earlier_version = loading.load(str(DESCRIPTORS / "manifests.yaml"), {"version": "0"})
        driver.operators.replace_operator(earlier_version)
        assert image().endswith(":0") and driver.is_alive(Role.OPERATOR)
        driver.operators.replace_operator(driver.descriptor)
        assert image().endswith(":1") and driver.is_alive(Role.OPERATOR)


def test_objects_that_existed_before_remain(cluster: Cluster, api: Api, kubelet: FakeKubelet) -> None:
    assert "grove-system" not in api.names("namespaces")
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "grove-system"}})
    with driver_of(cluster) as driver:
        driver.install()
        driver.start(Role.OPERATOR)
    assert api.get("namespaces", None, "grove-system")["status"]["phase"] == "Active"


def test_a_deployment_that_does_not_become_available_is_reported_with_its_pods(
    cluster: Cluster, kubelet: FakeKubelet, tmp_path: Path
) -> None:
    folder = tmp_path / "broken"
    folder.mkdir()
    text = (DESCRIPTORS / "operator.yaml").read_text().replace("path: /readyz", "path: /never")
    (folder / "operator.yaml").write_text(text)
    (folder / "manifests.yaml").write_text(
        (DESCRIPTORS / "manifests.yaml").read_text().replace("within: 60", "within: 3")
    )
    implementation = loading.load(str(folder / "manifests.yaml"))
    with Driver(implementation, deployment.facts_of(cluster), loading.load("reference")) as driver:
        driver.install()
        with pytest.raises(NotStarted) as caught:
            driver.start(Role.OPERATOR)
    expected_message = "of 1 replicas of the Deployment grove-system/operator, availableReplicas is 0; pod operator-"
    assert f"deployed: the operator is not ready after 3 s: {expected_message}" in str(caught.value)
    assert "its log ends with: started as 1" in str(caught.value)


@pytest.mark.skipif(shutil.which("helm") is None, reason="needs helm on PATH")
def test_a_chart_is_installed_upgraded_and_uninstalled(cluster: Cluster, api: Api, kubelet: FakeKubelet) -> None:
    def image() -> str:
        (container,) = api.get("deployments", *OPERATOR_KEY)["spec"]["template"]["spec"]["containers"]
        return str(container["image"])

    with driver_of(cluster, "helm") as driver:
        driver.install()
        driver.start(Role.OPERATOR)
        assert driver.is_alive(Role.OPERATOR) and image().endswith(":1")
        driver.operators.replace_operator(loading.load(str(DESCRIPTORS / "helm.yaml"), {"version": "0"}))
        assert driver.is_alive(Role.OPERATOR) and image().endswith(":0")
        driver.restart(Role.OPERATOR)
        assert driver.is_alive(Role.OPERATOR)
    with pytest.raises(ApiError, match="not found"):
        api.get("deployments", *OPERATOR_KEY)


def report(folder: Path) -> dict[str, Any]:
    [path] = folder.glob("*/report.yaml")
    content: dict[str, Any] = yaml.safe_load(path.read_text())
    return content


@pytest.mark.thorough
def test_a_deployed_implementation_is_judged_like_one_that_runs_as_processes(
    cluster: Cluster, kubelet: FakeKubelet, tmp_path: Path
) -> None:
    """CORE-001 inspects objects; the scene of SCALE-003 kills the operator."""
    command = [sys.executable, "-m", "conformance", "run", "--cluster=existing", "--workers=1"]
    options = [
        f"--implementation={DESCRIPTORS / 'manifests.yaml'}",
        f"--kubeconfig={kubeconfigs.suite_kubeconfig(cluster)}",
    ]
    selection = ["--id=CORE-001", "--id=SCALE-003", f"--report-dir={tmp_path / 'reports'}"]
    result = subprocess.run([*command, *options, *selection], capture_output=True, text=True, env=os.environ)
    assert result.returncode == 0, result.stdout + result.stderr
    outcomes = {r["id"]: r["outcome"] for r in report(tmp_path / "reports")["verdict"]["requirements"]}
    assert (outcomes["CORE-001"], outcomes["SCALE-003"]) == ("passed", "passed")
