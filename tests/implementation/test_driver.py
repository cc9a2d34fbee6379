"""Tests of the driver: which implementation plays which role, what its processes get, and what happens to them."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from conformance.errors import HarnessError, UsageError
from conformance.implementation import loading, succession
from conformance.implementation.descriptor import Descriptor, Role, Upgrade
from conformance.implementation.driver import ClusterFacts, Driver, NotStarted

MARKER = "GROVE_CONFORMANCE_CLUSTER"
PROCESS = """
import json, os, pathlib, signal, sys
print(json.dumps({"argv": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd()}), flush=True)
if f"crash-{pathlib.Path.cwd().name}" in sys.argv:
    print("cannot go on", file=sys.stderr, flush=True)
    raise SystemExit(3)
signal.pause()
"""
HEAD = """\
apiVersion: conformance.grove.io/v1alpha1
kind: Implementation
name: {name}
version: "1"
roles: [{roles}]
schedulerName: {name}-scheduler
parameters:
  mutant: {{description: a mutant, default: ""}}
processes:
"""
ONE = """\
  {role}:
    argv: ["${{python}}", "${{here}}/process.py", "${{kubeconfig}}", "${{schedulerName}}", "${{port.health}}",
           "${{certificates}}", "${{file.c.yaml}}", [--mutant, "${{set.mutant}}"]]
    env: {{MINE: "${{directory}}"}}
    files: {{c.yaml: "scheduler: ${{schedulerName}}, port: ${{port.health}}"}}
    ready: {{log: argv, within: 20}}
    stop: {{grace: 5}}
"""

Make = Callable[..., Descriptor]


def _pid(driver: Driver, role: Role) -> int | None:
    return next(iter(driver.pids(role).values()), None)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    (tmp_path / "process.py").write_text(PROCESS)

    def make(name: str, *roles: str, replace: tuple[str, str] = ("", ""), **settings: str) -> Descriptor:
        text = HEAD.format(name=name, roles=", ".join(roles)) + "".join(ONE.format(role=role) for role in roles)
        (tmp_path / f"{name}.yaml").write_text(text.replace(*replace) if replace[0] else text)
        return loading.load(str(tmp_path / f"{name}.yaml"), settings)

    return make


@pytest.fixture
def facts(tmp_path: Path) -> ClusterFacts:
    return ClusterFacts(
        kubeconfig=tmp_path / "kubeconfig",
        directory=tmp_path / "cluster",
        environment={MARKER: "uid-1"},
        port=lambda index: 21000 + index,
    )


@pytest.fixture
def drive(facts: ClusterFacts) -> Iterator[Callable[..., Driver]]:
    drivers: list[Driver] = []

    def drive(*descriptors: Descriptor) -> Driver:
        drivers.append(Driver(descriptors[0], facts, *descriptors[1:]))
        return drivers[-1]

    yield drive
    for driver in drivers:
        driver.stop()


def received(driver: Driver, role: Role) -> dict:
    """Return the arguments, environment and folder that the most recent process of a role has printed."""
    return json.loads([line for line in driver.log(role).read_text().splitlines() if line.startswith("{")][-1])


def test_a_process_gets_what_the_descriptor_says(make: Make, drive, facts: ClusterFacts) -> None:
    driver = drive(make("mine", "operator", "gang-scheduler"))
    driver.start()
    operator, scheduler = received(driver, Role.OPERATOR), received(driver, Role.GANG_SCHEDULER)
    folder = facts.directory / "implementation"
    assert operator["argv"] == [
        str(facts.kubeconfig), "mine-scheduler", "21000", str(folder / "certificates"), str(folder / "operator/c.yaml")
    ]  # fmt: skip
    assert scheduler["argv"][2] == "21001"
    assert operator["env"]["MINE"] == operator["cwd"] == str(folder / "operator")
    assert operator["env"][MARKER] == scheduler["env"][MARKER] == "uid-1"
    assert psutil.Process(_pid(driver, Role.OPERATOR)).environ()[MARKER] == "uid-1"
    assert (folder / "operator/c.yaml").read_text() == "scheduler: mine-scheduler, port: 21000"
    assert stat.S_IMODE((folder / "operator/c.yaml").stat().st_mode) == 0o600
    assert driver.log(Role.OPERATOR) == facts.directory / "logs/operator.log"


def test_a_program_with_a_relative_path_starts_wherever_its_process_runs(make: Make, drive, tmp_path: Path) -> None:
    (tmp_path / "mine").symlink_to(sys.executable)
    driver = drive(make("mine", "operator", "gang-scheduler", replace=("${python}", "./mine")))
    driver.start()
    assert received(driver, Role.OPERATOR)["cwd"] != str(tmp_path)


def test_no_variable_leads_to_another_cluster(make: Make, drive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/somewhere/else")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    driver = drive(make("mine", "operator", "gang-scheduler"))
    driver.start()
    assert not {"KUBECONFIG", "KUBERNETES_SERVICE_HOST"} & set(received(driver, Role.OPERATOR)["env"])


def test_no_secret_of_the_environment_is_inherited(make: Make, drive, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CI_JOB_TOKEN", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD"):
        monkeypatch.setenv(name, "secret")
    inherited = {"HTTPS_PROXY": "http://127.0.0.1:1", "LC_ALL": "C", "SSL_CERT_FILE": "/ca", "MY_TOKEN": "wanted"}
    for name, value in inherited.items():
        monkeypatch.setenv(name, value)
    driver = drive(
        make("mine", "operator", "gang-scheduler", replace=("    env:", "    inherit: [MY_TOKEN]\n    env:"))
    )
    driver.start()
    environment = received(driver, Role.OPERATOR)["env"]
    assert "secret" not in environment.values()
    assert inherited.items() <= environment.items()
    assert {"PATH", MARKER, "MINE"} <= environment.keys()
    assert "secret" not in psutil.Process(_pid(driver, Role.OPERATOR)).parent().environ().values()


def test_a_variable_that_a_process_misses_is_named(make: Make, drive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPERATOR_HOME", "/opt/it")
    monkeypatch.setenv("OTHER_TOKEN", "secret")
    code = '["${python}", "-c", "import os; os.environ[\'OPERATOR_HOME\']"]'
    first_line = '["${python}", "${here}/process.py", "${kubeconfig}", "${schedulerName}", "${port.health}",\n'
    second_line = '           "${certificates}", "${file.c.yaml}", [--mutant, "${set.mutant}"]]'
    driver = drive(make("mine", "operator", "gang-scheduler", replace=(first_line + second_line, code)))
    with pytest.raises(NotStarted, match=r"KeyError: 'OPERATOR_HOME' .*; not inherited: OPERATOR_HOME \(name it in"):
        driver.start()


def test_a_folder_in_place_of_a_file_is_the_implementations_fault(make: Make, drive, facts: ClusterFacts) -> None:
    config_file = facts.directory / "implementation" / "operator" / "c.yaml"
    (config_file / "inside").mkdir(parents=True)
    driver = drive(make("mine", "operator", "gang-scheduler"))
    with pytest.raises(NotStarted, match=r"the operator cannot be started: .*c\.yaml.*: Is a directory"):
        driver.start()


def test_a_list_of_arguments_is_left_out_where_its_placeholder_is_empty(make: Make, drive) -> None:
    driver = drive(make("mine", "operator", "gang-scheduler", mutant="lazy"))
    driver.start()
    assert received(driver, Role.OPERATOR)["argv"][-2:] == ["--mutant", "lazy"]


def test_a_missing_role_is_supplied_under_the_implementations_scheduler_name(make: Make, drive) -> None:
    driver = drive(make("mine", "operator"), make("reference", "operator", "gang-scheduler"))
    driver.start()
    assert received(driver, Role.GANG_SCHEDULER)["argv"][1] == "mine-scheduler"
    assert driver.player(Role.OPERATOR).name == "mine"
    assert driver.player(Role.GANG_SCHEDULER).name == "reference"


def test_a_role_that_nobody_plays_is_an_error(make: Make, facts: ClusterFacts) -> None:
    with pytest.raises(HarnessError, match='nobody plays the role "gang-scheduler"'):
        Driver(make("mine", "operator"), facts)


def test_stop_kill_and_restart_are_not_failures(make: Make, drive) -> None:
    driver = drive(make("mine", "operator", "gang-scheduler"))
    driver.start()
    first = _pid(driver, Role.OPERATOR)
    driver.restart(Role.OPERATOR)
    assert _pid(driver, Role.OPERATOR) not in (first, None)
    assert received(driver, Role.OPERATOR)["argv"][2] == "21000"
    assert driver.log(Role.OPERATOR).read_text().count('"argv"') == 2
    driver.kill(Role.OPERATOR)
    assert not driver.alive(Role.OPERATOR)
    assert driver.alive(Role.GANG_SCHEDULER)
    driver.start()
    assert driver.alive(Role.OPERATOR)
    driver.stop()
    assert not driver.alive(Role.OPERATOR)
    assert not driver.alive(Role.GANG_SCHEDULER)
    assert driver.failures() == ()


def test_an_end_by_itself_is_a_failure_and_stays_one_after_a_new_start(make: Make, drive) -> None:
    driver = drive(make("mine", "operator", "gang-scheduler"))
    driver.start()
    pid = _pid(driver, Role.OPERATOR)
    os.kill(pid, signal.SIGKILL)
    driver._players[Role.OPERATOR].processes[0].group.wait()
    assert not driver.alive(Role.OPERATOR)
    driver.start(Role.OPERATOR)
    (failure,) = driver.failures()
    assert (failure.role, failure.implementation, failure.ended.code) == (Role.OPERATOR, "mine", -signal.SIGKILL)
    assert str(failure).startswith("mine: the operator was ended by SIGKILL; its log ends with: ")


@pytest.mark.parametrize(("role", "other"), [("operator", "gang-scheduler"), ("gang-scheduler", "operator")])
def test_a_role_that_does_not_start_stops_the_other_role(make: Make, drive, role: str, other: str) -> None:
    never_ready = ("ready: {log: argv", "ready: {log: never")
    driver = drive(make("mine", "operator", "gang-scheduler", replace=never_ready, mutant=f"crash-{role}"))
    with pytest.raises(NotStarted) as caught:
        driver.start()
    assert caught.value.role == Role(role)
    line = str(caught.value)
    assert line.startswith(f"mine: the {role} exited with code 3 before it was ready; its log ends with: ")
    assert "cannot go on" in line
    assert "\n" not in line
    assert not driver.alive(Role(other))


def test_one_that_runs_already_has_nothing_to_start(tmp_path: Path, drive, facts: ClusterFacts) -> None:
    (tmp_path / "there.yaml").write_text(
        HEAD.format(name="there", roles="operator, gang-scheduler").replace("processes:\n", "start: running\n")
    )
    driver = drive(loading.load(str(tmp_path / "there.yaml")))
    driver.install()  # there is no API server, so it must not contact one
    driver.start()
    assert not driver.alive(Role.OPERATOR)
    assert _pid(driver, Role.OPERATOR) is None
    driver.restart(Role.OPERATOR)
    assert driver.failures() == ()


TWO = ("scheduler: ${schedulerName}", "elect: ${leaderElection} in ${leaseNamespace}")


def test_a_second_operator_has_its_own_folder_ports_and_log(make: Make, drive, facts: ClusterFacts) -> None:
    driver = drive(make("mine", "operator", "gang-scheduler", replace=TWO))
    driver.start()
    folder, only_pid = facts.directory / "implementation", _pid(driver, Role.OPERATOR)
    assert (folder / "operator/c.yaml").read_text() == "elect: false in default, port: 21000"
    driver.operators.elect("test")
    first = _pid(driver, Role.OPERATOR)
    assert first not in (only_pid, None)
    assert (folder / "operator/c.yaml").read_text() == "elect: true in test, port: 21000"
    driver.operators.add_second()
    assert (folder / "operator-2/c.yaml").read_text() == "elect: true in test, port: 21002"
    assert driver.logs()["operator-2"].read_text().count('"argv"') == 1
    assert _pid(driver, Role.OPERATOR) == first

    driver.kill(Role.OPERATOR)
    driver.operators.swap()
    second = _pid(driver, Role.OPERATOR)
    assert second not in (first, None)
    driver.operators.add_second()  # start the killed operator again
    assert driver.log(Role.OPERATOR).read_text().count('"argv"') == 3
    assert _pid(driver, Role.OPERATOR) == second

    driver.operators.reset()
    assert not driver.alive(Role.OPERATOR) and not psutil.pid_exists(second)
    driver.start()
    assert (folder / "operator/c.yaml").read_text() == "elect: false in default, port: 21000"
    assert driver.failures() == ()


def test_an_earlier_version_has_the_operators_place_until_the_test_ends(make: Make, drive, facts: ClusterFacts) -> None:
    descriptor = make("mine", "operator", "gang-scheduler")
    earlier = descriptor.earlier(Upgrade("old", "the old one", {"mutant": "old"}))
    driver = drive(descriptor)
    driver.start()
    scheduler = _pid(driver, Role.GANG_SCHEDULER)

    def started() -> list[list[str]]:
        lines = driver.log(Role.OPERATOR).read_text().splitlines()
        return [json.loads(line)["argv"] for line in lines if line.startswith("{")]

    driver.operators.become(earlier)
    new, old = started()
    assert old == [*new, "--mutant", "old"]
    assert _pid(driver, Role.GANG_SCHEDULER) == scheduler
    driver.operators.become(descriptor)
    assert started()[-1] == new
    driver.operators.become(earlier)
    driver.operators.reset()
    assert not driver.alive(Role.OPERATOR)
    driver.start()
    assert started()[-1] == new
    assert driver.failures() == ()


def test_another_implementation_can_be_taken_over(make: Make, drive) -> None:
    implementation = succession.after(make("mine", "operator", "gang-scheduler"), make("theirs", "operator"))
    [old] = implementation.upgrades
    assert (old.about, "upgrade" in implementation.features) == ("theirs 1", True)
    driver = drive(implementation)
    driver.start()
    driver.operators.become(implementation.earlier(old))
    assert received(driver, Role.OPERATOR)["argv"][1] == "mine-scheduler"
    assert driver.player(Role.OPERATOR).name == "theirs"
    driver.operators.reset()
    assert driver.player(Role.OPERATOR).name == "mine"
    assert driver.failures() == ()


def test_an_implementation_without_an_operator_cannot_be_taken_over(make: Make) -> None:
    with pytest.raises(UsageError, match="theirs starts no operator"):
        succession.after(make("mine", "operator"), make("theirs", "gang-scheduler"))


def test_a_second_operator_that_ends_by_itself_is_a_failure(make: Make, drive) -> None:
    driver = drive(make("mine", "operator", "gang-scheduler", replace=TWO))
    driver.start()
    driver.operators.elect("test")
    driver.operators.add_second()
    [second] = driver.operators.second.processes
    os.kill(second.group.pid, signal.SIGKILL)
    second.group.wait()
    assert [failure.role for failure in driver.failures()] == [Role.OPERATOR]


def test_everything_stops_with_the_driver(make: Make, drive) -> None:
    driver = drive(make("mine", "operator", "gang-scheduler", replace=TWO))
    driver.start()
    driver.operators.elect("test")
    driver.operators.add_second()
    second = driver.operators.second.processes[0].group
    driver.stop()
    assert second.ended is not None and not driver.alive(Role.OPERATOR)


def test_an_api_server_that_is_gone_is_one_line(make: Make, drive, tmp_path: Path, facts: ClusterFacts) -> None:
    facts.kubeconfig.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\nusers: [{name: u, user: {}}]\n"
    )
    driver = drive(loading.load("blank"))
    with pytest.raises(HarnessError, match="the API server failed while CRDs and webhooks were installed: Client"):
        driver.install()


def test_a_webhook_by_service_is_refused(make: Make, drive, tmp_path: Path) -> None:
    (tmp_path / "hooks.yaml").write_text(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: v}\n"
        "webhooks: [{name: v.example, clientConfig: {service: {name: s, namespace: n}}}]\n"
    )
    driver = drive(
        make(
            "mine",
            "operator",
            "gang-scheduler",
            replace=("processes:", "install: {webhooks: [hooks.yaml]}\nprocesses:"),
        )
    )
    with pytest.raises(UsageError, match=r"hooks\.yaml: the webhook v\.example of v is not on loopback — "):
        driver.install()
