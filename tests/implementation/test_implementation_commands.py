"""Tests of `grove-conformance implementation …`: its output, and the one line for a mistake."""

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
from conformance.data import PROJECT
from conformance.errors import Exit
from conformance.implementation import example, loading

TOY = PROJECT / "docs/examples/toy-operator/toy.yaml"
NEW = ("new", "mine.yaml", "--name=mine", "--role=operator", "--scheduler-name=mine", "--ready=started")
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Call:
    """Return a function that calls a command in an empty folder and returns the exit code, the output and the error
    output."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["grove-conformance", "implementation", *arguments])
        with pytest.raises(SystemExit) as end:
            cli.main()
        output, err = capsys.readouterr()
        return int(end.value.code or 0), output, err

    return call


def test_a_new_descriptor_is_written_and_valid(call: Call, tmp_path: Path) -> None:
    code, output, _ = call(*NEW, f"--command={sys.executable} --kubeconfig=${{kubeconfig}}")
    assert code == 0 and output == "wrote mine.yaml; next: grove-conformance implementation try mine.yaml\n"
    code, output, _ = call("validate", "mine.yaml")
    assert code == 0 and output.startswith("mine.yaml is valid\n")
    for words in (
        "plays      operator, as mine 0.1.0; reference 0.1.0 supplies: gang-scheduler",
        "line names",
        "claims     no optional feature",
        "operator: ",
    ):
        assert words in output


def test_the_requested_features_are_claimed(call: Call) -> None:
    start = f"--command={sys.executable}"
    assert call(*NEW, start, "--feature=topology", "--feature=mnnvl")[0] == 0
    assert "claims     mnnvl, topology\n" in call("validate", "mine.yaml")[1]
    assert call("new", "maps.yaml", *NEW[2:], start, "--contract=maps")[0] == 0
    output = call("validate", "maps.yaml")[1]
    assert "line maps" in output and "claims     coherent\n" in output


@pytest.mark.parametrize(
    ("arguments", "words"),
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
def test_a_wrong_answer_gets_one_line_and_no_file(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    code, output, err = call(*NEW, *arguments)
    assert code == Exit.USAGE and output == "" and len(err.splitlines()) == 1
    assert words in err
    assert not (tmp_path / "mine.yaml").exists()


def test_no_file_is_overwritten(call: Call, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("kept")
    code, _, err = call(*NEW, "--running")
    assert code == Exit.USAGE and "mine.yaml: exists already" in err
    assert (tmp_path / "mine.yaml").read_text() == "kept"


def test_the_example_is_written_and_can_be_built_and_checked_at_once(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code, output, _ = call("new", "--example")
    head, *steps, expectation = output.splitlines()
    assert code == 0 and head == "wrote toy-operator: go.mod, main.go, toy.yaml; next:"
    assert "`try` finds no Service, and `run` is not conformant" in expectation
    change, build, attempt, judge = map(str.strip, steps)
    monkeypatch.chdir(tmp_path / change.removeprefix("cd "))
    assert build == "go build ."
    go, _ = gobuild.find_go(TOY.parent, data.cache(), lambda *_: None)
    variables = os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    subprocess.run([go, "build", "."], env=variables, check=True)
    program, group, verb, *arguments = shlex.split(attempt)
    assert (program, group, verb) == ("grove-conformance", "implementation", "try")
    code, output, _ = call("validate", *arguments)
    assert code == 0 and output.startswith("toy.yaml is valid\n")
    assert {*arguments} < {*shlex.split(judge)} and "--profile core" in judge


def test_the_example_takes_another_folder_and_overwrites_none(call: Call, tmp_path: Path) -> None:
    assert call("new", "mine dir", "--example")[1].splitlines()[1] == "  cd 'mine dir'"
    assert sorted(path.name for path in (tmp_path / "mine dir").iterdir()) == sorted(example.FILES)
    code, _, err = call("new", "mine dir", "--example")
    assert code == Exit.USAGE and "mine dir: exists already" in err
    code, _, err = call("new", "no/such", "--example")
    assert code == Exit.USAGE and "no/such: cannot be written" in err


def test_the_example_has_its_answers(call: Call, tmp_path: Path) -> None:
    code, _, err = call("new", "--example", "--name=mine")
    assert code == Exit.USAGE and "--example: writes a descriptor that is complete, so --name cannot be given" in err
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_is_asked_for_what_is_missing(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    answers = iter(["mine", "both", "mine-scheduler", "op --kubeconfig=${kubeconfig}", "started"])
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr("typer.prompt", lambda *_, **__: next(answers))
    assert call("new")[0] == 0
    text = (tmp_path / "conformance.yaml").read_text()
    assert "roles: [gang-scheduler, operator]" in text and '- "--kubeconfig=${kubeconfig}"' in text
    assert next(answers, None) is None


def test_a_descriptor_with_required_parameters_says_what_it_needs(call: Call, tmp_path: Path) -> None:
    code, output, _ = call("validate", str(TOY))
    assert code == 0 and output.endswith("to check the programs and files that it names, give --set binary=PATH\n")
    assert str(TOY) in output
    code, output, err = call("validate", str(TOY), "--set=binry=toy-operator")
    assert (code, output) == (Exit.USAGE, "")
    assert err == 'grove-conformance: --set binry: unknown parameter "binry" — did you mean "binary"?\n'
    code, output, _ = call("validate", str(TOY), f"--set=binary={sys.executable}")
    assert code == 0 and f"{TOY} is valid" in output
    code, _, err = call("validate", str(TOY), "--set=binary=nowhere")
    assert code == Exit.USAGE and "nowhere does not exist" in err


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("roles:", "role:", "did you mean"),
        ("features: []", "features: [topolgy]", "features[0]: unknown feature 'topolgy' — did you mean"),
        ("# expectedFailures:\n#   - {id: CORE-001,", "expectedFailures:\n  - {id: CORE-999,", "CORE-999"),
        ("reference_impl/crds/podclique*", "reference_impl/admission/webhook*", "holds an object of kind"),
    ],
)
def test_a_mistake_of_a_descriptor_is_found_without_a_cluster(
    call: Call, tmp_path: Path, old: str, new: str, words: str
) -> None:
    call(*NEW, f"--command={sys.executable}")
    text = (tmp_path / "mine.yaml").read_text()
    assert old in text
    (tmp_path / "mine.yaml").write_text(text.replace(old, new))
    code, output, err = call("validate", "mine.yaml")
    assert code == Exit.USAGE and output == "" and len(err.splitlines()) == 1
    assert words in err and err.startswith("grove-conformance: ")


def test_every_bundled_descriptor_is_valid(call: Call) -> None:
    for name in loading.names():
        assert call("validate", name)[0] == 0, name


# -- on a cluster ----------------------------------------------------------------------------------------------------


def run_try(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "conformance", "implementation", "try", *arguments]
    environment = os.environ | {"GROVE_CONFORMANCE_STATE": str(tmp_path / "state")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert list((tmp_path / "state/clusters").iterdir()) == []
    return done


@pytest.mark.cluster
def test_an_implementation_that_creates_everything_is_confirmed(tmp_path: Path) -> None:
    done = run_try(tmp_path, "reference", "--within=60")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "everything is there; next: grove-conformance run --implementation reference" in done.stdout
    assert "MISSING" not in done.stdout


@pytest.mark.cluster
def test_objects_that_an_idle_implementation_lacks_are_reported(tmp_path: Path) -> None:
    done = run_try(tmp_path, "blank", "--within=1")
    assert done.returncode == 1, done.stdout + done.stderr
    lines = [line.split("  ")[0] for line in done.stdout.splitlines()[1:]]
    assert lines == ["ok", *["MISSING"] * 8]
    assert "frontend-0-web missing; there: none" in done.stdout


@pytest.mark.cluster
def test_a_process_that_ends_at_its_start_is_reported_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "{apiVersion: conformance.grove.io/v1alpha1, kind: Implementation, name: mine, version: '1', roles: [operator],"
        "schedulerName: mine, processes: {operator: {argv: ['${python}', '-c', 'raise SystemExit(\"no luck\")'],"
        " ready: {log: x}}}, install: {crds: ['${project}/reference_impl/crds']}}"
    )
    done = run_try(tmp_path, "mine.yaml")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "MISSING" in done.stdout and "no luck" in done.stdout
