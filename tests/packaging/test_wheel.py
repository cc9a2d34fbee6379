"""The wheel alone judges an implementation: installed into an environment of its own, beside a package of PyPI that is
called `fixtures` as our data folder is, and called from a folder that is no checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from conformance.data import PROJECT

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`grove-conformance` of a virtual environment that holds the wheel, what it depends on, and `fixtures`."""
    folder = tmp_path_factory.mktemp("installed")
    call([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], PROJECT)
    (wheel,) = folder.glob("*.whl")
    # The lock file names the development tools, too; as constraints its versions hold for what the wheel asks for.
    versions = folder / "constraints.txt"
    versions.write_text(re.sub(r" \\\n +--hash=\S+", "", (PROJECT / "requirements.lock").read_text()))
    call([sys.executable, "-m", "venv", "environment"], folder)
    programs = folder / "environment" / "bin"
    pip = [programs / "python", "-m", "pip", "--disable-pip-version-check", "install", "-q", "--no-compile"]
    call([*pip, "-c", versions, wheel, "fixtures==4.3.2"], folder)
    return programs / "grove-conformance"


def test_the_wheel_has_its_data(program: Path, tmp_path: Path) -> None:
    here = call([sys.executable, "-m", "conformance", "validate"], PROJECT)
    assert call([program, "validate"], tmp_path) == here


def test_the_wheel_explains_from_its_own_specification(program: Path, tmp_path: Path) -> None:
    text = call([program, "explain", "GANG-007"], tmp_path)
    assert "docs/spec/objects.md#obj-321" in text and "mutants:" not in text


def test_the_wheel_judges(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROVE_CONFORMANCE_STATE", str(tmp_path / "state"))
    call([program, "run", "--id", "CORE-001", "--workers", "1"], tmp_path)
    (report,) = tmp_path.glob("reports/*/report.yaml")
    judged = yaml.safe_load(report.read_text())["verdict"]["requirements"]
    assert {entry["id"]: entry["outcome"] for entry in judged}["CORE-001"] == "passed"


def test_the_page_of_requirements_belongs_to_a_checkout(program: Path, tmp_path: Path) -> None:
    assert "give --to FILE" in call([program, "docs"], tmp_path, codes=(4,))
    call([program, "docs", "--to", "requirements.md"], tmp_path)
    assert (tmp_path / "requirements.md").is_file()


def call(command: list[str | Path], folder: Path, codes: tuple[int, ...] = (0,)) -> str:
    """What the command says. It sees nothing of this checkout but what is on its command line."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode in codes, done.stdout
    return done.stdout
