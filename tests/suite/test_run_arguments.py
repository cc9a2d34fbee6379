"""Tests that `grove-conformance run` with wrong arguments prints one line, exits with code 4, and starts nothing."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from conformance import cli
from conformance.cluster.features import FeatureRequest
from conformance.commands import run as commands
from conformance.run import launch, preparation, reproduction
from conformance.suite.registry import requirement
from conformance.suite.registry.selection import scope
from conformance.suite.settings import RunSettings, decoded


def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    monkeypatch.setattr(sys, "argv", ["grove-conformance", *arguments])
    with pytest.raises(SystemExit) as end:
        cli.main()
    out, err = capsys.readouterr()
    assert end.value.code == 4, err
    assert out == "" and len(err.splitlines()) == 1, err
    return err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("--profile", "cor"),
            ("unknown profile 'cor'", 'did you mean "core"?', "core, devices, gang, gang-maps, hashes"),
        ),
        (("--profile", "gang, cor"), ("unknown profile 'cor'",)),
        (("--id", "CORE-999"), ("unknown requirement 'CORE-999'", "did you mean")),
        (("--id", "CORE-001,CORE-999"), ("unknown requirement 'CORE-999'",)),
        (("--profile", "gang", "--id", "CORE-001"), ("CORE-001 is of profile core", "--profile core")),
        (
            ("--test", "core/test_x.py::test_y"),
            ("unknown test 'core/test_x.py::test_y'", "explain ID has the tests"),
        ),
        (("--test", "nope.py"), ("--test: unknown test 'nope.py'", "grove-conformance explain ID has the tests")),
        (("--workers", "many"), ("--workers: 'many' is not a valid number of workers", "auto")),
        (("--workers", "-1"), ("--workers", "0 to 64")),
        (("--time-scale", "fast"), ("--time-scale: 'fast' is not a valid time scale", "0.1 to 100")),
        (("--time-scale", "0"), ("--time-scale",)),
        (("--time-scale", "nan"), ("--time-scale",)),
        (("--seed", "x"), ("--seed",)),
        (("--set", "mutant"), ("--set: 'mutant' is not NAME=VALUE",)),
        (("--set", "mutan=x"), ('unknown parameter "mutan"', 'did you mean "mutant"?')),
        (("--implementation", "refrence"), ('unknown implementation "refrence"', 'did you mean "reference"?')),
        (("--implementation", "no/such.yaml"), ("--implementation no/such.yaml: no such folder: no",)),
        (("--implementation", "./min.yaml"), ("no such file", 'did you mean "mine.yml"?')),
        (("--implementation", "mine.yaml"), ("mine.yaml: no such file", 'did you mean "mine.yml"?')),
        (("--implementation", "mine"), ('unknown implementation "mine"', 'did you mean "mine.yml"?')),
        (("--id", "CORE-01"), ("unknown requirement 'CORE-01'", 'did you mean "CORE-001"?')),
        (("--test", "gang/test_base_gang.py"), ('did you mean "gang/test_base_gang_first.py"?',)),
        (("--cluster", "exsting"), ("unknown kind of cluster", 'did you mean "existing"?')),
        (("--cluster", "existing"), ("none: no such file", "give --kubeconfig FILE, or set KUBECONFIG")),
        (("--context", "x"), ("--context: needs --cluster existing",)),
        (("--kubeconfig", "x"), ("needs --cluster existing",)),
        (("--cluster", "existing", "--kubeconfig", "no-such"), ("--kubeconfig no-such: no such file",)),
        (("--report-dir", "/proc/nowhere"), ("--report-dir /proc/nowhere: cannot be written",)),
        (("--from", "refrence"), ('--from: unknown implementation "refrence"', 'did you mean "reference"?')),
        (("--from", "reference", "--from-set", "hashs=x"), ("--from-set hashs:", 'did you mean "hashes"?')),
        (("--from", "reference", "--from-set", "hashes"), ("--from-set: 'hashes' is not NAME=VALUE",)),
        (("--from-set", "hashes=canonical"), ("--from-set: needs --from NAME",)),
        (("--kubernetes", "1.35"), ("--kubernetes: Kubernetes '1.35' is not pinned", "1.36.3 (default), 1.37.2")),
        (("--features", "workload-ap"), ("--features: unknown features 'workload-ap'", 'did you mean "workload-api"?')),
        (("--feature-gates", "GenericWorkload"), ("--feature-gates: 'GenericWorkload' is not a switch",)),
        (("--no-such-option",), ("--no-such-option",)),
        (("--shard", "3/2"), ("--shard: '3/2' is not a shard", "for example 2/5")),
        (("--shard", "1/9", "--id", "CORE-001"), ("--shard 1/9: only 1 scenes are selected", "give at most 1")),
        (("--quick", "--profile", "core"), ("--quick: selects its tests itself, so --profile cannot be given",)),
        (
            ("--quick", "--test", "core"),
            ("--quick: selects its tests itself, so --test", "leave out --test, or leave out --quick"),
        ),
        (("--skip", "CORE-999"), ("unknown requirement 'CORE-999'", "did you mean")),
        (("--rerun-failed", "nowhere"), ("--rerun-failed: nowhere: no such run", "in reports")),
        (
            ("--rerun-failed", "r1", "--profile", "core"),
            ("--rerun-failed: repeats tests with the settings of their run, so --profile", "leave out --profile"),
        ),
        (("gang",), ("unexpected argument 'gang'", "run -- -k gang")),
        (("--", "-n", "3"), ("-n is not for pytest here", "use --workers")),
        (("--", "-n3"), ("-n is not for pytest here",)),
        (("--", "--dist=load"), ("--dist is not for pytest here",)),
        (("--", "--no-such-option"), ("pytest's options", "unrecognized arguments: --no-such-option")),
    ],
)
def test_a_wrong_argument_gets_one_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    arguments: tuple[str, ...],
    words: tuple[str, ...],
) -> None:
    (tmp_path / "mine.yml").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", "none")
    message = refused(monkeypatch, capsys, "run", *arguments)
    assert len(message) < 800
    for word in words:
        assert word in message
    assert [path.name for path in tmp_path.iterdir()] == ["mine.yml"]  # no report folder was created


POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"
REMOTE_WEBHOOK = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: a}
webhooks: [{name: a.example, clientConfig: {url: "https://elsewhere:${port.webhook}/", caBundle: "${ca}"}}]
"""


@pytest.mark.parametrize(
    ("part", "text", "words"),
    [
        ("crds", POD, "file.yaml: holds an object of kind 'Pod' — only CustomResourceDefinition"),
        ("crds", "a: [", "file.yaml:2: is not YAML"),
        ("webhooks", POD, "file.yaml: holds an object of kind 'Pod' — only MutatingWebhookConfiguration"),
        ("webhooks", REMOTE_WEBHOOK, "file.yaml: the webhook a.example of a is not on loopback"),
        ("webhooks", "x: ${prt.webhook}", "file.yaml: ${prt.webhook} is not kn"),
        ("objects", REMOTE_WEBHOOK, "file.yaml: the ValidatingWebhookConfiguration a is not for install.objects"),
    ],
)
def test_a_file_that_cannot_be_installed_is_a_mistake_of_the_user(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    part: str,
    text: str,
    words: str,
) -> None:
    """The mistake is found before a cluster is started, and does not count as a failure of the implementation."""
    (tmp_path / "file.yaml").write_text(text)
    head = "apiVersion: conformance.grove.io/v1alpha1\nkind: Implementation\nname: mine\nversion: '0'\n"
    rest = f"roles: [operator]\nschedulerName: s\nstart: running\ninstall: {{{part}: ['${{here}}/file.yaml']}}\n"
    (tmp_path / "mine.yaml").write_text(head + rest)
    assert words in refused(monkeypatch, capsys, "run", "--implementation", str(tmp_path / "mine.yaml"))


@pytest.mark.parametrize("command", [("run", "--implementation"), ("implementation", "try")])
@pytest.mark.parametrize(
    ("crds", "words"),
    [
        ("", "mine.yaml:1: install.crds: an operator needs the CRDs of Grove on a fake cluster: podcliquesets"),
        (
            "install: {crds: ['${project}/reference_impl/crds/podclique*']}\n",
            "mine.yaml:8: install.crds: an operator needs the CRDs of Grove on a fake cluster: "
            "podgangs.scheduler.grove.io not in 3 files — name your files, or ours: ${project}/reference_impl/crds",
        ),
    ],
)
def test_an_operator_without_crds_is_a_mistake_of_the_user(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    command: tuple[str, str],
    crds: str,
    words: str,
) -> None:
    head = "apiVersion: conformance.grove.io/v1alpha1\nkind: Implementation\nname: mine\nversion: '0'\n"
    rest = "roles: [operator]\nschedulerName: s\nprocesses: {operator: {argv: [sh], ready: {log: ready}}}\n"
    (tmp_path / "mine.yaml").write_text(head + rest + crds)
    assert words in refused(monkeypatch, capsys, *command, str(tmp_path / "mine.yaml"))


def test_the_command_that_reproduces_states_the_source_of_its_settings() -> None:
    settings = RunSettings(
        run="r1",
        directory="",
        implementation="mine.yaml",
        parameters={"binary": "a b"},
        earlier="old one.yaml",
        earlier_parameters={"hashes": "canonical"},
        seed=7,
    )
    command = reproduction.command(settings)
    arguments = shlex.split(command)
    assert arguments[arguments.index("--from") :][:4] == ["--from", "old one.yaml", "--from-set", "hashes=canonical"]
    assert arguments[arguments.index("--set") + 1] == "binary=a b"
    assert "--from" not in reproduction.command(msgspec.structs.replace(settings, earlier="", earlier_parameters={}))


def test_the_command_that_reproduces_has_the_arguments_of_the_run() -> None:
    settings = RunSettings(run="r1", directory="", implementation="x", profiles=("core",), ids=("CORE-001",), repeat=3)
    assert "--profile core --id CORE-001 --repeat 3 " in reproduction.command(settings)
    assert "--repeat" not in reproduction.command(msgspec.structs.replace(settings, repeat=1))


def test_the_command_that_reproduces_names_another_version_and_features() -> None:
    features = FeatureRequest(("workload-api",), ("kube-scheduler:A=true",))
    settings = RunSettings(run="r", directory="", implementation="mine", kubernetes="1.37.2", cluster_features=features)
    command = reproduction.command(settings)
    assert "--features workload-api --feature-gates kube-scheduler:A=true --kubernetes 1.37.2 " in command
    settings = msgspec.structs.replace(settings, kubernetes="1.36.3", cluster_features=FeatureRequest())
    assert "--kubernetes" not in reproduction.command(settings), "it is the default version"


def test_settings_with_features_reach_the_workers(tmp_path: Path) -> None:
    features = FeatureRequest(("workload-api",), ("A=true",), ("a/v1=true",))
    settings = RunSettings(run="r", directory=str(tmp_path), implementation="x", cluster_features=features)
    assert decoded(settings.save().read_bytes()) == settings


def test_the_report_names_version_and_features() -> None:
    settings = RunSettings(
        run="r",
        directory="",
        implementation="x",
        kubernetes="1.37.2",
        cluster_features=FeatureRequest(("workload-api",)),
    )
    environment = preparation.environment(settings)
    assert environment["kubernetes"] == "1.37.2" and environment["features"] == "--features workload-api"
    assert "features" not in preparation.environment(
        msgspec.structs.replace(settings, cluster_features=FeatureRequest())
    )


def test_the_command_that_reproduces_can_be_called(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = RunSettings(run="r1", directory="", implementation="x")
    program = tmp_path / "bin" / "grove-conformance"
    program.parent.mkdir()
    program.touch(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["bin/grove-conformance", "run"])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert reproduction.command(settings).startswith("bin/grove-conformance run --implementation x")
    monkeypatch.setenv("PATH", str(program.parent))
    assert reproduction.command(settings).startswith("grove-conformance run --implementation x")


def test_a_named_test_is_judged_by_its_selected_requirements() -> None:
    registry = requirement.load()
    plan = launch.LaunchPlan({"t": ("CORE-001", "GANG-001"), "u": ()}, {"t": ("CORE-001", "GANG-001")})
    settings = RunSettings(run="r1", directory="", implementation="x", only=("t",))
    for profiles, ids in ((["core"], ("CORE-001",)), ([], ("CORE-001", "GANG-001"))):
        chosen = scope(registry, profiles, (), settings.roles, ())
        assert commands._judged_ids(settings, plan, chosen) == ids


DESCRIPTOR = """\
apiVersion: conformance.grove.io/v1alpha1
kind: Implementation
name: mine
version: "1"
roles: [operator, gang-scheduler]
schedulerName: mine
start: running
"""


@pytest.mark.parametrize(
    ("addition", "words"),
    [
        ("expectedFailures:\n- {id: CORE-999, reason: known}\n", ("mine.yaml:9: expectedFailures[0].id", "CORE-999")),
        ("features: [flying]\n", ("mine.yaml:8: features[0]", "flying")),
        ("colour: red\n", ("mine.yaml:8: colour", "unknown field")),
    ],
)
def test_a_wrong_descriptor_names_file_line_and_field(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    addition: str,
    words: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(DESCRIPTOR + addition)
    message = refused(monkeypatch, capsys, "run", "--implementation", "mine.yaml")
    for word in words:
        assert word in message


def test_list_and_explain_reject_unknown_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "unknown level 'MUSST'" in refused(monkeypatch, capsys, "list", "--level", "MUSST")
    assert "unknown profile" in refused(monkeypatch, capsys, "list", "--profile", "x")
    assert 'did you mean "CORE-001"?' in refused(monkeypatch, capsys, "explain", "core-0001")


def test_a_stale_page_of_requirements_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    message = refused(monkeypatch, capsys, "docs", "--check", "--to", str(tmp_path / "old.md"))
    assert "is not up to date" in message and "grove-conformance docs" in message


def test_a_full_disk_is_reported_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=3 << 20))
    message = refused(monkeypatch, capsys, "run", "--report-dir", str(tmp_path))
    assert "no space: 3 MiB are free, 64 MiB are needed" in message


@pytest.mark.parametrize(
    ("cores", "gigabytes", "tests", "expected"), [(2, 24, 99, 5), (4, 16, 99, 5), (1, 64, 99, 2), (2, 24, 2, 2)]
)
def test_there_are_five_workers_for_two_cores_as_far_as_the_memory_reaches(
    cores: int, gigabytes: int, tests: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(total=gigabytes * 2**30))
    assert commands._worker_count(None, tests) == expected
