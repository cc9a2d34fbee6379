"""Tests of implementations that are not processes of the suite: valid fields of their descriptors, the calls of helm,
and the calls of the user's commands. The tests need no cluster."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.errors import HarnessError, UsageError
from conformance.implementation import deployment, loading
from conformance.implementation.descriptor import Descriptor, Role
from conformance.implementation.driver import ClusterFacts, Driver, NotStarted
from conformance.implementation.release import Release
from conformance.implementation.values import Values

DESCRIPTOR_HEAD = """\
apiVersion: conformance.grove.io/v1alpha1
kind: Implementation
name: mine
version: "1"
roles: [operator, gang-scheduler]
schedulerName: mine
parameters:
  tag: {description: tag of the image, default: "1"}
"""
DEPLOYMENTS_FIELD = "deployments: {operator: {name: a}, gang-scheduler: {name: b}}\n"
MANIFESTS_DESCRIPTOR = DESCRIPTOR_HEAD + "start: manifests\ninstall: {manifests: [objects.yaml]}\n" + DEPLOYMENTS_FIELD
CHART_FIELDS = 'chart: chart, release: mine, namespace: ours, values: [v.yaml], set: {tag: "a,${set.tag}"}'
HELM_DESCRIPTOR = DESCRIPTOR_HEAD + f"start: helm\ninstall: {{helm: {{{CHART_FIELDS}}}}}\n" + DEPLOYMENTS_FIELD
COMMANDS_DESCRIPTOR = DESCRIPTOR_HEAD + (
    "start: running\ncontrol:\n  operator:\n"
    '    {stop: ["${here}/tool", stop], start: ["${here}/tool", start, "${set.tag}"], kill: ["${here}/tool", kill]}\n'
)
TOOL_SOURCE = """#!{python}
import json, os, sys
with open({log!r}, "a") as file:
    file.write(json.dumps({{"argv": sys.argv[1:], "env": dict(os.environ)}}) + "\\n")
print("said by", *sys.argv[1:])
sys.exit(os.path.exists({log!r} + ".fails"))
"""


class RecordingTool:
    """A program that records the arguments and the environment of its calls."""

    def __init__(self, path: Path) -> None:
        self._log = path.with_suffix(".calls")
        path.write_text(TOOL_SOURCE.format(python=sys.executable, log=str(self._log)))
        path.chmod(0o755)

    @property
    def calls(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._log.read_text().splitlines()] if self._log.exists() else []

    def make_calls_fail(self) -> None:
        self._log.with_suffix(".calls.fails").touch()


@pytest.fixture
def helm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RecordingTool:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return RecordingTool(tmp_path / "bin/helm")


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chart").mkdir()
    (tmp_path / "v.yaml").touch()
    (tmp_path / "objects.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}")


def load(text: str, **settings: str) -> Descriptor:
    Path("mine.yaml").write_text(text)
    return loading.load("./mine.yaml", settings)


@pytest.fixture
def facts(tmp_path: Path) -> ClusterFacts:
    return ClusterFacts(tmp_path / "kubeconfig", tmp_path / "cluster", {}, lambda index: 21000 + index)


# -- descriptors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "old", "new", "expected_text"),
    [
        (
            MANIFESTS_DESCRIPTOR,
            "manifests: [objects.yaml]",
            "",
            "mine.yaml:9: start: there is nothing to deploy: install.manifests",
        ),
        (
            MANIFESTS_DESCRIPTOR,
            "gang-scheduler: {name: b}",
            "",
            'mine.yaml:5: roles[1]: the role "gang-scheduler" has no Deployment',
        ),
        (MANIFESTS_DESCRIPTOR, "start: manifests", "start: helm", "install.manifests: has no meaning with start: helm"),
        (
            MANIFESTS_DESCRIPTOR,
            "start: manifests\n",
            "",
            "deployments: has no meaning with start: processes — remove it, or say",
        ),
        (MANIFESTS_DESCRIPTOR, "[objects.yaml]", "[nowhere]", "install.manifests[0]: no YAML file at nowhere"),
        (
            MANIFESTS_DESCRIPTOR,
            "parameters:",
            "features: [leader-election]\nparameters:",
            "features[0]: a second operator can only",
        ),
        (
            HELM_DESCRIPTOR,
            "chart: chart",
            "chart: charts",
            "install.helm.chart: charts does not exist — give a path relative",
        ),
        (HELM_DESCRIPTOR, "[v.yaml]", "[w.yaml]", "install.helm.values[0]: w.yaml does not exist"),
        (
            HELM_DESCRIPTOR,
            "${set.tag}",
            "${set.tga}",
            'install.helm.set.tag: ${set.tga}: there is no such parameter — did you mean "tag"',
        ),
        (COMMANDS_DESCRIPTOR, "start: running\n", "", "control: has no meaning with start: processes"),
        (COMMANDS_DESCRIPTOR, "${here}/tool", "${here}/none", "control.operator.stop[0]: none does not exist"),
    ],
)
def test_a_mistake_is_reported_in_one_line(
    helm: RecordingTool, text: str, old: str, new: str, expected_text: str
) -> None:
    RecordingTool(Path("tool"))
    assert old in text
    with pytest.raises(UsageError) as caught:
        load(text.replace(old, new, 1))
    assert expected_text in str(caught.value) and "\n" not in str(caught.value)


def test_helm_is_needed_only_by_descriptors_that_use_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert load(MANIFESTS_DESCRIPTOR).start == "manifests"
    with pytest.raises(UsageError, match=r'^mine.yaml:9: start: "helm" is not on PATH — install it'):
        load(HELM_DESCRIPTOR)


def test_a_deployed_implementation_is_refused_on_nodes_without_containers(helm: RecordingTool) -> None:
    with pytest.raises(UsageError, match=r"start: manifests needs nodes that run containers, .* --cluster existing"):
        deployment.require_containers(load(MANIFESTS_DESCRIPTOR))
    deployment.require_containers(loading.load("reference"))


# -- helm ------------------------------------------------------------------------------------------------------------


def test_a_release_is_upgraded_only_to_another_version_and_uninstalled(
    helm: RecordingTool, facts: ClusterFacts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI_TOKEN", "secret")
    monkeypatch.setenv("KUBECONFIG", "/another/cluster")
    release, current_version, earlier_version = (
        Release(Values(facts, "mine")),
        load(HELM_DESCRIPTOR),
        load(HELM_DESCRIPTOR, tag="0"),
    )
    for implementation in (current_version, current_version, earlier_version):
        release.apply(implementation)
    release.remove()
    install_call, upgrade_call, uninstall_call = helm.calls
    chart = ["upgrade", "--install", "mine", str(tmp_path / "chart"), "--namespace", "ours", "--create-namespace"]
    files = ["--values", str(tmp_path / "v.yaml"), "--set-string", r"tag=a\,1"]
    assert install_call["argv"] == [*chart, *files, "--kubeconfig", str(facts.kubeconfig)]
    assert r"tag=a\,0" in upgrade_call["argv"]
    assert uninstall_call["argv"][:2] == ["uninstall", "mine"] and str(facts.kubeconfig) in uninstall_call["argv"]
    assert not {"CI_TOKEN", "KUBECONFIG"} & install_call["env"].keys()


def test_a_chart_that_cannot_be_installed_is_reported_with_helms_reason(
    helm: RecordingTool, facts: ClusterFacts
) -> None:
    helm.make_calls_fail()
    with pytest.raises(HarnessError, match=r"mine.yaml:10: install.helm: helm upgrade failed: exit code 1"):
        Release(Values(facts, "mine")).apply(load(HELM_DESCRIPTOR))


def test_a_deployment_of_another_client_is_not_the_judged_version(facts: ClusterFacts) -> None:
    driver = Driver(load(MANIFESTS_DESCRIPTOR), facts)
    assert not driver.is_alive(Role.OPERATOR), "so a start deploys it, without a look at what runs under its name"


# -- commands of the user --------------------------------------------------------------------------------------------


@pytest.fixture
def tool() -> RecordingTool:
    return RecordingTool(Path("tool"))


@pytest.fixture
def driver(tool: RecordingTool, facts: ClusterFacts) -> Iterator[Driver]:
    with Driver(load(COMMANDS_DESCRIPTOR), facts) as running_driver:
        yield running_driver


def called_commands(tool: RecordingTool) -> list[str]:
    return [" ".join(call["argv"]) for call in tool.calls]


def test_a_role_with_commands_is_controlled_and_others_are_not(driver: Driver, tool: RecordingTool) -> None:
    assert driver.controls(Role.OPERATOR) and not driver.controls(Role.GANG_SCHEDULER)
    driver.start()
    assert called_commands(tool) == [], "it runs already"
    driver.stop(Role.OPERATOR)
    assert not driver.is_alive(Role.OPERATOR)
    driver.stop(Role.OPERATOR)
    driver.start()
    driver.kill(Role.OPERATOR)
    driver.restart(Role.OPERATOR)
    assert driver.is_alive(Role.OPERATOR)
    assert called_commands(tool) == ["stop", "start 1", "kill", "start 1"]
    assert tool.calls[0]["env"]["KUBECONFIG"] == str(driver.cluster.kubeconfig)
    log = driver.logs()["operator"]
    assert log.read_text().splitlines()[0] == "said by stop"


def test_a_stopped_operator_is_started_again_at_the_end(tool: RecordingTool, facts: ClusterFacts) -> None:
    with Driver(load(COMMANDS_DESCRIPTOR), facts) as driver:
        driver.stop(Role.OPERATOR)
    assert called_commands(tool) == ["stop", "start 1"]


def test_an_earlier_version_is_started_by_the_same_command(driver: Driver, tool: RecordingTool) -> None:
    driver.operators.replace_operator(load(COMMANDS_DESCRIPTOR, tag="0"))
    driver.operators.replace_operator(driver.descriptor)
    assert called_commands(tool) == ["stop", "start 0", "stop", "start 1"]


def test_a_command_that_fails_is_reported_with_its_output(driver: Driver, tool: RecordingTool) -> None:
    tool.make_calls_fail()
    with pytest.raises(HarnessError, match=r"tool exited with code 1; it said: said by stop"):
        driver.stop(Role.OPERATOR)
    Path("tool.calls.fails").unlink()
    driver.stop(Role.OPERATOR)
    tool.make_calls_fail()
    with pytest.raises(NotStarted, match=r"mine: the operator .*tool exited with code 1; it said: said by start 1"):
        driver.start()
    Path("tool.calls.fails").unlink()


def test_logs_of_commands_are_readable_by_their_user_only(driver: Driver) -> None:
    driver.stop(Role.OPERATOR)
    assert stat.S_IMODE(driver.logs()["operator"].parent.stat().st_mode) == 0o700
