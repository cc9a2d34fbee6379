"""Tests of the driver: which implementation plays which role, which values its processes get, and how they start and
end."""

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
from conformance.implementation.descriptor import Descriptor, Role
from conformance.implementation.driver import ClusterFacts, Driver, NotStarted
from conformance.implementation.fields import Upgrade

MARKER_VARIABLE = "GROVE_CONFORMANCE_CLUSTER"
PROCESS_SOURCE = """
import json, os, pathlib, signal, sys
print(json.dumps({"argv": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd()}), flush=True)
if f"crash-{pathlib.Path.cwd().name}" in sys.argv:
    print("cannot go on", file=sys.stderr, flush=True)
    raise SystemExit(3)
signal.pause()
"""
DESCRIPTOR_HEAD = """\
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
PROCESS_FIELD = """\
  {role}:
    argv: ["${{python}}", "${{here}}/process.py", "${{kubeconfig}}", "${{schedulerName}}", "${{port.health}}",
           "${{certificates}}", "${{file.c.yaml}}", [--mutant, "${{set.mutant}}"]]
    env: {{MINE: "${{directory}}"}}
    files: {{c.yaml: "scheduler: ${{schedulerName}}, port: ${{port.health}}"}}
    ready: {{log: argv, within: 20}}
    stop: {{grace: 5}}
"""

CreateDescriptor = Callable[..., Descriptor]


def _pid(driver: Driver, role: Role) -> int | None:
    return next(iter(driver.pids(role).values()), None)


@pytest.fixture
def create_descriptor(tmp_path: Path) -> CreateDescriptor:
    (tmp_path / "process.py").write_text(PROCESS_SOURCE)

    def create_descriptor(name: str, *roles: str, replace: tuple[str, str] = ("", ""), **settings: str) -> Descriptor:
        text = DESCRIPTOR_HEAD.format(name=name, roles=", ".join(roles)) + "".join(
            PROCESS_FIELD.format(role=role) for role in roles
        )
        (tmp_path / f"{name}.yaml").write_text(text.replace(*replace) if replace[0] else text)
        return loading.load(str(tmp_path / f"{name}.yaml"), settings)

    return create_descriptor


@pytest.fixture
def facts(tmp_path: Path) -> ClusterFacts:
    return ClusterFacts(
        kubeconfig=tmp_path / "kubeconfig",
        directory=tmp_path / "cluster",
        environment={MARKER_VARIABLE: "uid-1"},
        port=lambda index: 21000 + index,
    )


@pytest.fixture
def create_driver(facts: ClusterFacts) -> Iterator[Callable[..., Driver]]:
    drivers: list[Driver] = []

    def create_driver(*descriptors: Descriptor) -> Driver:
        drivers.append(Driver(descriptors[0], facts, *descriptors[1:]))
        return drivers[-1]

    yield create_driver
    for driver in drivers:
        driver.stop()


def received_values(driver: Driver, role: Role) -> dict:
    """Return the arguments, the environment and the folder that the latest process of a role has printed."""
    return json.loads([line for line in driver.log(role).read_text().splitlines() if line.startswith("{")][-1])


def test_a_process_gets_the_values_in_the_descriptor(
    create_descriptor: CreateDescriptor, create_driver, facts: ClusterFacts
) -> None:
    driver = create_driver(create_descriptor("mine", "operator", "gang-scheduler"))
    driver.start()
    operator, scheduler = received_values(driver, Role.OPERATOR), received_values(driver, Role.GANG_SCHEDULER)
    folder = facts.directory / "implementation"
    assert operator["argv"] == [
        str(facts.kubeconfig), "mine-scheduler", "21000", str(folder / "certificates"), str(folder / "operator/c.yaml")
    ]  # fmt: skip
    assert scheduler["argv"][2] == "21001"
    assert operator["env"]["MINE"] == operator["cwd"] == str(folder / "operator")
    assert operator["env"][MARKER_VARIABLE] == scheduler["env"][MARKER_VARIABLE] == "uid-1"
    assert psutil.Process(_pid(driver, Role.OPERATOR)).environ()[MARKER_VARIABLE] == "uid-1"
    assert (folder / "operator/c.yaml").read_text() == "scheduler: mine-scheduler, port: 21000"
    assert stat.S_IMODE((folder / "operator/c.yaml").stat().st_mode) == 0o600
    assert driver.log(Role.OPERATOR) == facts.directory / "logs/operator.log"


def test_a_program_with_a_relative_path_starts_in_any_working_folder(
    create_descriptor: CreateDescriptor, create_driver, tmp_path: Path
) -> None:
    (tmp_path / "mine").symlink_to(sys.executable)
    driver = create_driver(create_descriptor("mine", "operator", "gang-scheduler", replace=("${python}", "./mine")))
    driver.start()
    assert received_values(driver, Role.OPERATOR)["cwd"] != str(tmp_path)


def test_no_variable_refers_to_another_cluster(
    create_descriptor: CreateDescriptor, create_driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/somewhere/else")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    driver = create_driver(create_descriptor("mine", "operator", "gang-scheduler"))
    driver.start()
    assert not {"KUBECONFIG", "KUBERNETES_SERVICE_HOST"} & set(received_values(driver, Role.OPERATOR)["env"])


def test_no_secret_of_the_environment_is_inherited(
    create_descriptor: CreateDescriptor, create_driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CI_JOB_TOKEN", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD"):
        monkeypatch.setenv(name, "secret")
    inherited_variables = {
        "HTTPS_PROXY": "http://127.0.0.1:1",
        "LC_ALL": "C",
        "SSL_CERT_FILE": "/ca",
        "MY_TOKEN": "wanted",
    }
    for name, value in inherited_variables.items():
        monkeypatch.setenv(name, value)
    driver = create_driver(
        create_descriptor(
            "mine", "operator", "gang-scheduler", replace=("    env:", "    inherit: [MY_TOKEN]\n    env:")
        )
    )
    driver.start()
    environment = received_values(driver, Role.OPERATOR)["env"]
    assert "secret" not in environment.values()
    assert inherited_variables.items() <= environment.items()
    assert {"PATH", MARKER_VARIABLE, "MINE"} <= environment.keys()
    assert "secret" not in psutil.Process(_pid(driver, Role.OPERATOR)).parent().environ().values()


def test_a_variable_that_a_process_lacks_is_named(
    create_descriptor: CreateDescriptor, create_driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPERATOR_HOME", "/opt/it")
    monkeypatch.setenv("OTHER_TOKEN", "secret")
    code = '["${python}", "-c", "import os; os.environ[\'OPERATOR_HOME\']"]'
    first_line = '["${python}", "${here}/process.py", "${kubeconfig}", "${schedulerName}", "${port.health}",\n'
    second_line = '           "${certificates}", "${file.c.yaml}", [--mutant, "${set.mutant}"]]'
    driver = create_driver(
        create_descriptor("mine", "operator", "gang-scheduler", replace=(first_line + second_line, code))
    )
    with pytest.raises(NotStarted, match=r"KeyError: 'OPERATOR_HOME' .*; not inherited: OPERATOR_HOME \(name it in"):
        driver.start()


def test_a_folder_in_place_of_a_file_is_blamed_on_the_implementation(
    create_descriptor: CreateDescriptor, create_driver, facts: ClusterFacts
) -> None:
    config_file = facts.directory / "implementation" / "operator" / "c.yaml"
    (config_file / "inside").mkdir(parents=True)
    driver = create_driver(create_descriptor("mine", "operator", "gang-scheduler"))
    with pytest.raises(NotStarted, match=r"the operator cannot be started: .*c\.yaml.*: Is a directory"):
        driver.start()


def test_a_list_of_arguments_is_omitted_if_its_placeholder_is_empty(
    create_descriptor: CreateDescriptor, create_driver
) -> None:
    driver = create_driver(create_descriptor("mine", "operator", "gang-scheduler", mutant="lazy"))
    driver.start()
    assert received_values(driver, Role.OPERATOR)["argv"][-2:] == ["--mutant", "lazy"]


def test_a_missing_role_is_supplied_under_the_implementations_scheduler_name(
    create_descriptor: CreateDescriptor, create_driver
) -> None:
    driver = create_driver(
        create_descriptor("mine", "operator"), create_descriptor("reference", "operator", "gang-scheduler")
    )
    driver.start()
    assert received_values(driver, Role.GANG_SCHEDULER)["argv"][1] == "mine-scheduler"
    assert driver.descriptor_of(Role.OPERATOR).name == "mine"
    assert driver.descriptor_of(Role.GANG_SCHEDULER).name == "reference"


def test_a_role_without_an_implementation_is_an_error(create_descriptor: CreateDescriptor, facts: ClusterFacts) -> None:
    with pytest.raises(HarnessError, match='nobody plays the role "gang-scheduler"'):
        Driver(create_descriptor("mine", "operator"), facts)


def test_stop_kill_and_restart_are_not_failures(create_descriptor: CreateDescriptor, create_driver) -> None:
    driver = create_driver(create_descriptor("mine", "operator", "gang-scheduler"))
    driver.start()
    first_pid = _pid(driver, Role.OPERATOR)
    driver.restart(Role.OPERATOR)
    assert _pid(driver, Role.OPERATOR) not in (first_pid, None)
    assert received_values(driver, Role.OPERATOR)["argv"][2] == "21000"
    assert driver.log(Role.OPERATOR).read_text().count('"argv"') == 2
    driver.kill(Role.OPERATOR)
    assert not driver.is_alive(Role.OPERATOR)
    assert driver.is_alive(Role.GANG_SCHEDULER)
    driver.start()
    assert driver.is_alive(Role.OPERATOR)
    driver.stop()
    assert not driver.is_alive(Role.OPERATOR)
    assert not driver.is_alive(Role.GANG_SCHEDULER)
    assert driver.failures() == ()


def test_an_unrequested_end_remains_a_failure_after_a_new_start(
    create_descriptor: CreateDescriptor, create_driver
) -> None:
    driver = create_driver(create_descriptor("mine", "operator", "gang-scheduler"))
    driver.start()
    pid = _pid(driver, Role.OPERATOR)
    os.kill(pid, signal.SIGKILL)
    driver._runners[Role.OPERATOR].processes[0].group.wait()
    assert not driver.is_alive(Role.OPERATOR)
    driver.start(Role.OPERATOR)
    (failure,) = driver.failures()
    assert (failure.role, failure.implementation, failure.end.code) == (Role.OPERATOR, "mine", -signal.SIGKILL)
    assert str(failure).startswith("mine: the operator was ended by SIGKILL; its log ends with: ")


@pytest.mark.parametrize(("role", "other_role"), [("operator", "gang-scheduler"), ("gang-scheduler", "operator")])
def test_a_role_that_does_not_start_stops_the_other_role(
    create_descriptor: CreateDescriptor, create_driver, role: str, other_role: str
) -> None:
    never_ready = ("ready: {log: argv", "ready: {log: never")
    driver = create_driver(
        create_descriptor("mine", "operator", "gang-scheduler", replace=never_ready, mutant=f"crash-{role}")
    )
    with pytest.raises(NotStarted) as caught:
        driver.start()
    assert caught.value.role == Role(role)
    line = str(caught.value)
    assert line.startswith(f"mine: the {role} exited with code 3 before it was ready; its log ends with: ")
    assert "cannot go on" in line
    assert "\n" not in line
    assert not driver.is_alive(Role(other_role))


def test_nothing_is_started_for_a_running_implementation(tmp_path: Path, create_driver, facts: ClusterFacts) -> None:
    (tmp_path / "there.yaml").write_text(
        DESCRIPTOR_HEAD.format(name="there", roles="operator, gang-scheduler").replace(
            "processes:\n", "start: running\n"
        )
    )
    driver = create_driver(loading.load(str(tmp_path / "there.yaml")))
    driver.install()  # there is no API server, so the driver must not contact one
    driver.start()
    assert not driver.is_alive(Role.OPERATOR)
    assert _pid(driver, Role.OPERATOR) is None
    driver.restart(Role.OPERATOR)
    assert driver.failures() == ()


LEADER_ELECTION = ("scheduler: ${schedulerName}", "elect: ${leaderElection} in ${leaseNamespace}")


def test_a_second_operator_has_its_own_folder_ports_and_log(
    create_descriptor: CreateDescriptor, create_driver, facts: ClusterFacts
) -> None:
    driver = create_driver(create_descriptor("mine", "operator", "gang-scheduler", replace=LEADER_ELECTION))
    driver.start()
    folder, only_pid = facts.directory / "implementation", _pid(driver, Role.OPERATOR)
    assert (folder / "operator/c.yaml").read_text() == "elect: false in default, port: 21000"
    driver.operators.enable_leader_election("test")
    first_pid = _pid(driver, Role.OPERATOR)
    assert first_pid not in (only_pid, None)
    assert (folder / "operator/c.yaml").read_text() == "elect: true in test, port: 21000"
    driver.operators.add_second()
    assert (folder / "operator-2/c.yaml").read_text() == "elect: true in test, port: 21002"
    assert driver.logs()["operator-2"].read_text().count('"argv"') == 1
    assert _pid(driver, Role.OPERATOR) == first_pid

    driver.kill(Role.OPERATOR)
    driver.operators.swap()
    second_pid = _pid(driver, Role.OPERATOR)
    assert second_pid not in (first_pid, None)
    driver.operators.add_second()  # start the killed operator again
    assert driver.log(Role.OPERATOR).read_text().count('"argv"') == 3
    assert _pid(driver, Role.OPERATOR) == second_pid

    driver.operators.reset()
    assert not driver.is_alive(Role.OPERATOR) and not psutil.pid_exists(second_pid)
    driver.start()
    assert (folder / "operator/c.yaml").read_text() == "elect: false in default, port: 21000"
    assert driver.failures() == ()


def test_an_earlier_version_replaces_the_operator_until_the_test_ends(
    create_descriptor: CreateDescriptor, create_driver, facts: ClusterFacts
) -> None:
    descriptor = create_descriptor("mine", "operator", "gang-scheduler")
    earlier_version = descriptor.earlier(Upgrade("old", "the old one", {"mutant": "old"}))
    driver = create_driver(descriptor)
    driver.start()
    scheduler_pid = _pid(driver, Role.GANG_SCHEDULER)

    def started_arguments() -> list[list[str]]:
        lines = driver.log(Role.OPERATOR).read_text().splitlines()
        return [json.loads(line)["argv"] for line in lines if line.startswith("{")]

    driver.operators.replace_operator(earlier_version)
    new_arguments, old_arguments = started_arguments()
    assert old_arguments == [*new_arguments, "--mutant", "old"]
    assert _pid(driver, Role.GANG_SCHEDULER) == scheduler_pid
    driver.operators.replace_operator(descriptor)
    assert started_arguments()[-1] == new_arguments
    driver.operators.replace_operator(earlier_version)
    driver.operators.reset()
    assert not driver.is_alive(Role.OPERATOR)
    driver.start()
    assert started_arguments()[-1] == new_arguments
    assert driver.failures() == ()


def test_the_objects_of_another_implementation_can_be_taken_over(
    create_descriptor: CreateDescriptor, create_driver
) -> None:
    implementation = succession.take_over(
        create_descriptor("mine", "operator", "gang-scheduler"), create_descriptor("theirs", "operator")
    )
    [upgrade] = implementation.upgrades
    assert (upgrade.about, "upgrade" in implementation.features) == ("theirs 1", True)
    driver = create_driver(implementation)
    driver.start()
    driver.operators.replace_operator(implementation.earlier(upgrade))
    assert received_values(driver, Role.OPERATOR)["argv"][1] == "mine-scheduler"
    assert driver.descriptor_of(Role.OPERATOR).name == "theirs"
    driver.operators.reset()
    assert driver.descriptor_of(Role.OPERATOR).name == "mine"
    assert driver.failures() == ()


def test_an_implementation_without_an_operator_cannot_be_taken_over(create_descriptor: CreateDescriptor) -> None:
    with pytest.raises(UsageError, match="theirs starts no operator"):
        succession.take_over(create_descriptor("mine", "operator"), create_descriptor("theirs", "gang-scheduler"))


def test_a_second_operator_that_ends_by_itself_is_a_failure(create_descriptor: CreateDescriptor, create_driver) -> None:
    driver = create_driver(create_descriptor("mine", "operator", "gang-scheduler", replace=LEADER_ELECTION))
    driver.start()
    driver.operators.enable_leader_election("test")
    driver.operators.add_second()
    [second_process] = driver.operators.second.processes
    os.kill(second_process.group.pid, signal.SIGKILL)
    second_process.group.wait()
    assert [failure.role for failure in driver.failures()] == [Role.OPERATOR]


def test_all_processes_stop_with_the_driver(create_descriptor: CreateDescriptor, create_driver) -> None:
    driver = create_driver(create_descriptor("mine", "operator", "gang-scheduler", replace=LEADER_ELECTION))
    driver.start()
    driver.operators.enable_leader_election("test")
    driver.operators.add_second()
    second_group = driver.operators.second.processes[0].group
    driver.stop()
    assert second_group.end is not None and not driver.is_alive(Role.OPERATOR)


def test_an_unreachable_api_server_is_reported_in_one_line(
    create_descriptor: CreateDescriptor, create_driver, tmp_path: Path, facts: ClusterFacts
) -> None:
    facts.kubeconfig.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\nusers: [{name: u, user: {}}]\n"
    )
    driver = create_driver(loading.load("blank"))
    with pytest.raises(HarnessError, match="the API server failed while CRDs and webhooks were installed: Client"):
        driver.install()


def test_a_webhook_with_a_service_is_refused(
    create_descriptor: CreateDescriptor, create_driver, tmp_path: Path
) -> None:
    (tmp_path / "hooks.yaml").write_text(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: v}\n"
        "webhooks: [{name: v.example, clientConfig: {service: {name: s, namespace: n}}}]\n"
    )
    driver = create_driver(
        create_descriptor(
            "mine",
            "operator",
            "gang-scheduler",
            replace=("processes:", "install: {webhooks: [hooks.yaml]}\nprocesses:"),
        )
    )
    with pytest.raises(UsageError, match=r"hooks\.yaml: the webhook v\.example of v is not on loopback — "):
        driver.install()
