"""Tests that commands end soon, in one line and with little memory on a report of a stranger, and that `report verify`
finds a change of any file of a run.

`make attacks` runs this file and `make test` does not: `tests/test_readers.py` and `tests/report/test_verification.py`
test the functions behind these commands.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.errors import Exit
from tests.attacks.environments import start_run
from tests.attacks.whole_runs import MAX_MEMORY
from tests.test_readers import HOSTILE_CONTENTS

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

MANY_REQUIREMENTS = b"verdict:\n  requirements:\n" + b"  - {id: CORE-001, tests: [a, b]}\n" * 100_000
COMMANDS: dict[str, Callable[[Path], list[str]]] = {
    "verify": lambda path: [str(path)],
    "compare": lambda path: [str(path), str(path)],
    "combine": lambda path: [str(path.parent), "--to", str(path.parent / "combined")],
    "baseline": lambda path: [str(path.parent)],
    "recover": lambda path: [str(path.parent)],
    "annotations": lambda path: [str(path)],
    "matrix": lambda path: [str(path.parent)],
}
NASTY = ("an alias bomb", "1,200 levels")
"""The contents that each command gets; `report verify` gets all."""


def run_command(arguments: list[str]) -> tuple[int, str, float]:
    """Run a command of the suite, and return its exit code, its output and its peak memory in MiB."""
    process = subprocess.Popen(
        [sys.executable, "-m", "conformance", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.stdout.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, output, usage.ru_maxrss / 1024


@pytest.mark.parametrize(
    ("command", "content"),
    [
        *(("verify", content) for content in HOSTILE_CONTENTS),
        *((command, content) for command in COMMANDS if command != "verify" for content in NASTY),
    ],
)
def test_a_report_of_a_stranger_is_one_line(command: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / "report.yaml"
    path.write_bytes(b"kind: ConformanceReport\nextra:\n  " + HOSTILE_CONTENTS[content].replace(b"\n", b"\n  "))
    code, output, memory = run_command(["report", command, *COMMANDS[command](path)])
    assert code == Exit.USAGE and output.count("\n") == 1, output
    assert memory < MAX_MEMORY


def test_a_report_with_100_000_requirements_is_too_large(tmp_path: Path) -> None:
    (tmp_path / "report.yaml").write_bytes(b"kind: ConformanceReport\n" + MANY_REQUIREMENTS)
    code, output, memory = run_command(["report", "verify", str(tmp_path / "report.yaml")])
    assert code == Exit.USAGE and "make it smaller" in output
    assert memory < MAX_MEMORY


def test_a_change_of_any_file_of_a_run_is_found(tmp_path: Path) -> None:
    run = start_run(tmp_path, {})
    assert run.wait() == 0
    [folder] = (tmp_path / "reports").iterdir()
    assert run_command(["report", "verify", str(folder)])[0] == 0
    paths = {path.suffix + path.parent.name: path for path in sorted(folder.rglob("*")) if path.is_file()}
    undetected = []
    for path in paths.values():
        shutil.copytree(folder, copy := tmp_path / "copy")
        with (copy / path.relative_to(folder)).open("ab") as file:
            file.write(b"\n<!-- conformant -->\n")
        if run_command(["report", "verify", str(copy)])[0] == 0:
            undetected.append(path.relative_to(folder))
        shutil.rmtree(copy)
    assert len(paths) > 6 and undetected == []
