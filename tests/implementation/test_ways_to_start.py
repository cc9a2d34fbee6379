"""Tests of implementations that are not processes of the suite: what their descriptors may say, how helm is called, and
when the user's commands are called. Needs no cluster."""

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

HEAD = """\
apiVersion: conformance.grove.io/v1alpha1
kind: Implementation
name: mine
version: "1"
roles: [operator, gang-scheduler]
schedulerName: mine
parameters:
  tag: {description: tag of the image, default: "1"}
"""
BOTH = "deployments: {operator: {name: a}, gang-scheduler: {name: b}}\n"
MANIFESTS = HEAD + "start: manifests\ninstall: {manifests: [objects.yaml]}\n" + BOTH
CHART = 'chart: chart, release: mine, namespace: ours, values: [v.yaml], set: {tag: "a,${set.tag}"}'
HELM = HEAD + f"start: helm\ninstall: {{helm: {{{CHART}}}}}\n" + BOTH
COMMANDS = HEAD + (
    "start: running\ncontrol:\n  operator:\n"
    '    {stop: ["${here}/tool", stop], start: ["${here}/tool", start, "${set.tag}"], kill: ["${here}/tool", kill]}\n'
)
TOOL = """#!{python}
import json, os, sys
with open({log!r}, "a") as file:
    file.write(json.dumps({{"argv": sys.argv[1:], "env": dict(os.environ)}}) + "\\n")
print("said by", *sys.argv[1:])
sys.exit(os.path.exists({log!r} + ".fails"))
"""


class Tool:
    """A program that records how it is called."""

    def __init__(self, path: Path) -> None:
        self._log = path.with_suffix(".calls")
        path.write_text(TOOL.format(python=sys.executable, log=str(self._log)))
        path.chmod(0o755)

    @property
    def calls(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._log.read_text().splitlines()] if self._log.exists() else []

    def fail(self) -> None:
        self._log.with_suffix(".calls.fails").touch()


@pytest.fixture
def helm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return Tool(tmp_path / "bin/helm")


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
    ("text", "old", "new", "words"),
    [
        (
            MANIFESTS,
            "manifests: [objects.yaml]",
            "",
            "mine.yaml:9: start: there is nothing to deploy: install.manifests",
        ),
        (
            MANIFESTS,
            "gang-scheduler: {name: b}",
            "",
            'mine.yaml:5: roles[1]: the role "gang-scheduler" has no Deployment',
        ),
        (MANIFESTS, "start: manifests", "start: helm", "install.manifests: has no meaning with start: helm"),
        (MANIFESTS, "start: manifests\n", "", "deployments: has no meaning with start: processes — remove it, or say"),
        (MANIFESTS, "[objects.yaml]", "[nowhere]", "install.manifests[0]: no YAML file at nowhere"),
        (
            MANIFESTS,
            "parameters:",
            "features: [leader-election]\nparameters:",
            "features[0]: a second operator can only",
        ),
        (HELM, "chart: chart", "chart: charts", "install.helm.chart: charts does not exist — give a path relative"),
        (HELM, "[v.yaml]", "[w.yaml]", "install.helm.values[0]: w.yaml does not exist"),
        (
            HELM,
            "${set.tag}",
            "${set.tga}",
            'install.helm.set.tag: ${set.tga}: there is no such parameter — did you mean "tag"',
        ),
        (COMMANDS, "start: running\n", "", "control: has no meaning with start: processes"),
        (COMMANDS, "${here}/tool", "${here}/none", "control.operator.stop[0]: none does not exist"),
    ],
)
def test_a_mistake_gets_one_line(helm: Tool, text: str, old: str, new: str, words: str) -> None:
    Tool(Path("tool"))
    assert old in text
    with pytest.raises(UsageError) as caught:
        load(text.replace(old, new, 1))
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_helm_is_needed_only_by_those_who_say_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert load(MANIFESTS).start == "manifests"
    with pytest.raises(UsageError, match=r'^mine.yaml:9: start: "helm" is not on PATH — install it'):
        load(HELM)


def test_a_deployed_one_is_refused_where_nothing_would_run(helm: Tool) -> None:
    with pytest.raises(UsageError, match=r"start: manifests needs nodes that run containers, .* --cluster existing"):
        deployment.require_containers(load(MANIFESTS))
    deployment.require_containers(loading.load("reference"))


# -- helm ------------------------------------------------------------------------------------------------------------


def test_a_release_is_upgraded_only_to_another_version_and_uninstalled(
    helm: Tool, facts: ClusterFacts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI_TOKEN", "secret")
    monkeypatch.setenv("KUBECONFIG", "/another/cluster")
    release, now, earlier = Release(Values(facts, "mine")), load(HELM), load(HELM, tag="0")
    for implementation in (now, now, earlier):
        release.apply(implementation)
    release.remove()
    first, second, third = helm.calls
    chart = ["upgrade", "--install", "mine", str(tmp_path / "chart"), "--namespace", "ours", "--create-namespace"]
    files = ["--values", str(tmp_path / "v.yaml"), "--set-string", r"tag=a\,1"]
    assert first["argv"] == [*chart, *files, "--kubeconfig", str(facts.kubeconfig)]
    assert r"tag=a\,0" in second["argv"]
    assert third["argv"][:2] == ["uninstall", "mine"] and str(facts.kubeconfig) in third["argv"]
    assert not {"CI_TOKEN", "KUBECONFIG"} & first["env"].keys()


def test_a_chart_that_cannot_be_installed_gets_the_reason_of_helm(helm: Tool, facts: ClusterFacts) -> None:
    helm.fail()
    with pytest.raises(HarnessError, match=r"mine.yaml:10: install.helm: helm upgrade failed: exit code 1"):
        Release(Values(facts, "mine")).apply(load(HELM))


def test_a_foreign_deployment_is_not_the_judged_version(facts: ClusterFacts) -> None:
    driver = Driver(load(MANIFESTS), facts)
    assert not driver.alive(Role.OPERATOR), "so a start deploys it, without a look at what runs under its name"


# -- commands of the user --------------------------------------------------------------------------------------------


@pytest.fixture
def tool() -> Tool:
    return Tool(Path("tool"))


@pytest.fixture
def driver(tool: Tool, facts: ClusterFacts) -> Iterator[Driver]:
    with Driver(load(COMMANDS), facts) as running:
        yield running


def words(tool: Tool) -> list[str]:
    return [" ".join(call["argv"]) for call in tool.calls]


def test_a_role_with_commands_is_controlled_and_others_are_not(driver: Driver, tool: Tool) -> None:
    assert driver.controls(Role.OPERATOR) and not driver.controls(Role.GANG_SCHEDULER)
    driver.start()
    assert words(tool) == [], "it runs already"
    driver.stop(Role.OPERATOR)
    assert not driver.alive(Role.OPERATOR)
    driver.stop(Role.OPERATOR)
    driver.start()
    driver.kill(Role.OPERATOR)
    driver.restart(Role.OPERATOR)
    assert driver.alive(Role.OPERATOR)
    assert words(tool) == ["stop", "start 1", "kill", "start 1"]
    assert tool.calls[0]["env"]["KUBECONFIG"] == str(driver.cluster.kubeconfig)
    log = driver.logs()["operator"]
    assert log.read_text().splitlines()[0] == "said by stop"


def test_it_runs_again_at_the_end(tool: Tool, facts: ClusterFacts) -> None:
    with Driver(load(COMMANDS), facts) as driver:
        driver.stop(Role.OPERATOR)
    assert words(tool) == ["stop", "start 1"]


def test_an_earlier_version_is_started_by_the_same_command(driver: Driver, tool: Tool) -> None:
    driver.operators.become(load(COMMANDS, tag="0"))
    driver.operators.become(driver.descriptor)
    assert words(tool) == ["stop", "start 0", "stop", "start 1"]


def test_a_command_that_fails_is_reported_with_its_output(driver: Driver, tool: Tool) -> None:
    tool.fail()
    with pytest.raises(HarnessError, match=r"tool exited with code 1; it said: said by stop"):
        driver.stop(Role.OPERATOR)
    Path("tool.calls.fails").unlink()
    driver.stop(Role.OPERATOR)
    tool.fail()
    with pytest.raises(NotStarted, match=r"mine: the operator .*tool exited with code 1; it said: said by start 1"):
        driver.start()
    Path("tool.calls.fails").unlink()


def test_logs_of_commands_are_readable_by_their_user_only(driver: Driver) -> None:
    driver.stop(Role.OPERATOR)
    assert stat.S_IMODE(driver.logs()["operator"].parent.stat().st_mode) == 0o700
