"""Tests of `grove-conformance implementation …`: its output, and the line that reports a mistake."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance import cli, data
from conformance.cluster import gobuild
from conformance.commands.implementation import EXAMPLE_FILES
from conformance.data import PROJECT
from conformance.errors import Exit
from conformance.implementation import loading

TOY_DESCRIPTOR = PROJECT / "docs/examples/toy-operator/toy.yaml"
NEW_ARGUMENTS = ("new", "mine.yaml", "--name=mine", "--role=operator", "--scheduler-name=mine", "--ready=started")
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Call:
    """A function that calls a command in an empty folder and returns the exit code, the output and the error output."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["grove-conformance", "implementation", *arguments])
        with pytest.raises(SystemExit) as exit_error:
            cli.main()
        output, error_output = capsys.readouterr()
        return int(exit_error.value.code or 0), output, error_output

    return call


def test_a_new_descriptor_is_written_and_valid(call: Call, tmp_path: Path) -> None:
    exit_code, output, _ = call(*NEW_ARGUMENTS, f"--command={sys.executable} --kubeconfig=${{kubeconfig}}")
    assert exit_code == 0 and output == "wrote mine.yaml; next: grove-conformance implementation try mine.yaml\n"
    exit_code, output, _ = call("validate", "mine.yaml")
    assert exit_code == 0 and output.startswith("mine.yaml is valid\n")
    for expected_text in (
        "plays      operator, as mine 0.1.0; reference 0.1.0 supplies: gang-scheduler",
        "line names",
        "claims     no optional feature",
        "operator: ",
    ):
        assert expected_text in output


def test_the_requested_features_are_claimed(call: Call) -> None:
    command_option = f"--command={sys.executable}"
    assert call(*NEW_ARGUMENTS, command_option, "--feature=topology", "--feature=mnnvl")[0] == 0
    assert "claims     mnnvl, topology\n" in call("validate", "mine.yaml")[1]
    assert call("new", "maps.yaml", *NEW_ARGUMENTS[2:], command_option, "--contract=maps")[0] == 0
    output = call("validate", "maps.yaml")[1]
    assert "line maps" in output and "claims     coherent\n" in output


@pytest.mark.parametrize(
    ("arguments", "expected_text"),
    [
        (("--command=op 'x",), "--command: cannot be split into words"),
        (
            ("--command=op ${kubeconfg}",),
            "mine.yaml:23: processes.operator.argv[1]: ${kubeconfg} is not known — did you",
        ),
        (("--running", "--command=op"), "--running: starts nothing — leave out --command"),
        ((), "--command: is required without a terminal — for example: --command 'bin/mine"),
        (("--command=op", "--name=Mine!"), "mine.yaml:5: name:"),
        (("--command=op", "--feature=topolgy"), "--feature: unknown feature 'topolgy' — did you mean \"topology\"?"),
        (
            ("--command=op", "--role=operatr"),
            "grove-conformance: Invalid value for '--role': 'operatr' is not one of 'operator', 'gang-scheduler'"
            " — see --help\n",
        ),
        (
            ("--command=op", "--crds=crds", "--contract=maps"),
            "--crds: these CRDs decide the line, so --contract cannot be given — leave out --contract",
        ),
        (("--command=op", "--contract=map"), "--contract: unknown line 'map' — did you mean \"maps\"?"),
    ],
)
def test_an_invalid_answer_is_reported_in_one_line_and_no_file_is_written(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: tuple[str, ...], expected_text: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    exit_code, output, error_output = call(*NEW_ARGUMENTS, *arguments)
    assert exit_code == Exit.USAGE and output == "" and len(error_output.splitlines()) == 1
    assert expected_text in error_output
    assert not (tmp_path / "mine.yaml").exists()


def test_no_file_is_overwritten(call: Call, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("kept")
    exit_code, _, error_output = call(*NEW_ARGUMENTS, "--running")
    assert exit_code == Exit.USAGE and "mine.yaml: exists already" in error_output
    assert (tmp_path / "mine.yaml").read_text() == "kept"


def test_the_example_is_written_and_can_be_built_and_checked_at_once(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    exit_code, output, _ = call("new", "--example")
    header, *steps, expectation = output.splitlines()
    assert exit_code == 0 and header == "wrote toy-operator: go.mod, main.go, toy.yaml; next:"
    assert "`try` finds no Service, and `run` is not conformant" in expectation
    change, build, attempt, judge = map(str.strip, steps)
    monkeypatch.chdir(tmp_path / change.removeprefix("cd "))
    assert build == "go build ."
    go, _ = gobuild.find_go(TOY_DESCRIPTOR.parent, data.cache(), lambda *_: None)
    variables = os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    subprocess.run([go, "build", "."], env=variables, check=True)
    program, group, verb, *arguments = shlex.split(attempt)
    assert (program, group, verb) == ("grove-conformance", "implementation", "try")
    exit_code, output, _ = call("validate", *arguments)
    assert exit_code == 0 and output.startswith("toy.yaml is valid\n")
    assert {*arguments} < {*shlex.split(judge)} and "--profile core" in judge


def test_the_example_can_be_written_to_another_folder_and_overwrites_nothing(call: Call, tmp_path: Path) -> None:
    assert call("new", "mine dir", "--example")[1].splitlines()[1] == "  cd 'mine dir'"
    assert sorted(path.name for path in (tmp_path / "mine dir").iterdir()) == sorted(EXAMPLE_FILES)
    exit_code, _, error_output = call("new", "mine dir", "--example")
    assert exit_code == Exit.USAGE and "mine dir: exists already" in error_output
    exit_code, _, error_output = call("new", "no/such", "--example")
    assert exit_code == Exit.USAGE and "no/such: cannot be written" in error_output


def test_options_that_the_example_decides_are_refused(call: Call, tmp_path: Path) -> None:
    exit_code, _, error_output = call("new", "--example", "--name=mine")
    assert (
        exit_code == Exit.USAGE
        and "--example: writes a descriptor that is complete, so --name cannot be given" in error_output
    )
    assert list(tmp_path.iterdir()) == []


def test_missing_answers_are_requested_on_a_terminal(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answers = iter(["mine", "both", "mine-scheduler", "op --kubeconfig=${kubeconfig}", "started"])
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr("typer.prompt", lambda *_, **__: next(answers))
    assert call("new")[0] == 0
    text = (tmp_path / "conformance.yaml").read_text()
    assert "roles: [gang-scheduler, operator]" in text and '- "--kubeconfig=${kubeconfig}"' in text
    assert next(answers, None) is None


def test_the_required_parameters_of_a_descriptor_are_reported(call: Call, tmp_path: Path) -> None:
    exit_code, output, _ = call("validate", str(TOY_DESCRIPTOR))
    assert exit_code == 0 and output.endswith("to check the programs and files that it names, give --set binary=PATH\n")
    assert str(TOY_DESCRIPTOR) in output
    exit_code, output, error_output = call("validate", str(TOY_DESCRIPTOR), "--set=binry=toy-operator")
    assert (exit_code, output) == (Exit.USAGE, "")
    assert error_output == 'grove-conformance: --set binry: unknown parameter "binry" — did you mean "binary"?\n'
    exit_code, output, _ = call("validate", str(TOY_DESCRIPTOR), f"--set=binary={sys.executable}")
    assert exit_code == 0 and f"{TOY_DESCRIPTOR} is valid" in output
    exit_code, _, error_output = call("validate", str(TOY_DESCRIPTOR), "--set=binary=nowhere")
    assert exit_code == Exit.USAGE and "nowhere does not exist" in error_output


@pytest.mark.parametrize(
    ("old", "new", "expected_text"),
    [
        ("roles:", "role:", "did you mean"),
        ("features: []", "features: [topolgy]", "features[0]: unknown feature 'topolgy' — did you mean"),
        ("# expectedFailures:\n#   - {id: CORE-001,", "expectedFailures:\n  - {id: CORE-999,", "CORE-999"),
        ("reference_impl/crds/podclique*", "reference_impl/admission/webhook*", "holds an object of kind"),
    ],
)
def test_a_mistake_in_a_descriptor_is_reported_without_a_cluster(
    call: Call, tmp_path: Path, old: str, new: str, expected_text: str
) -> None:
    call(*NEW_ARGUMENTS, f"--command={sys.executable}")
    text = (tmp_path / "mine.yaml").read_text()
    assert old in text
    (tmp_path / "mine.yaml").write_text(text.replace(old, new))
    exit_code, output, error_output = call("validate", "mine.yaml")
    assert exit_code == Exit.USAGE and output == "" and len(error_output.splitlines()) == 1
    assert expected_text in error_output and error_output.startswith("grove-conformance: ")


def test_every_bundled_descriptor_is_valid(call: Call) -> None:
    for name in loading.names():
        assert call("validate", name)[0] == 0, name


# -- on a cluster ----------------------------------------------------------------------------------------------------


def run_try(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "conformance", "implementation", "try", *arguments]
    environment = os.environ | {"GROVE_CONFORMANCE_STATE": str(tmp_path / "state")}
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert list((tmp_path / "state/clusters").iterdir()) == []
    return result


@pytest.mark.cluster
def test_an_implementation_that_creates_everything_is_confirmed(tmp_path: Path) -> None:
    result = run_try(tmp_path, "reference", "--within=60")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "everything is there; next: grove-conformance run --implementation reference" in result.stdout
    assert "MISSING" not in result.stdout


@pytest.mark.cluster
def test_objects_that_an_idle_implementation_lacks_are_reported(tmp_path: Path) -> None:
    result = run_try(tmp_path, "blank", "--within=1")
    assert result.returncode == 1, result.stdout + result.stderr
    lines = [line.split("  ")[0] for line in result.stdout.splitlines()[1:]]
    assert lines == ["ok", *["MISSING"] * 8]
    assert "frontend-0-web missing; there: none" in result.stdout


@pytest.mark.cluster
def test_a_process_that_ends_at_its_start_is_reported_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "{apiVersion: conformance.grove.io/v1alpha1, kind: Implementation, name: mine, version: '1', roles: [operator],"
        "schedulerName: mine, processes: {operator: {argv: ['${python}', '-c', 'raise SystemExit(\"no luck\")'],"
        " ready: {log: x}}}, install: {crds: ['${project}/reference_impl/crds']}}"
    )
    result = run_try(tmp_path, "mine.yaml")
    assert result.returncode == 1, result.stdout + result.stderr
    assert "MISSING" in result.stdout and "no luck" in result.stdout
