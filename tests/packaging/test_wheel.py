"""The wheel alone judges an implementation: installed into an environment of its own, beside a package of PyPI that is
called `fixtures` as our data folder is, and called from a folder that is no checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from conformance.data import PROJECT

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module", params=["linked", pytest.param("installed", marks=pytest.mark.thorough)])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`grove-conformance` of a virtual environment that holds the wheel, what it says that it depends on, and
    `fixtures`. That pip can install the former is shown by every fresh checkout; linking it is ten times as fast."""
    folder = tmp_path_factory.mktemp("installed")
    call([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], PROJECT)
    (wheel,) = folder.glob("*.whl")
    call([sys.executable, "-m", "venv", "--without-pip", "environment"], folder)
    programs = folder / "environment" / "bin"
    pip = [sys.executable, "-m", "pip", "--python", programs / "python", "--disable-pip-version-check"]
    pip += ["install", "-q", "--no-compile"]
    if request.param == "linked":
        call([*pip, "--no-deps", wheel, "fixtures==4.3.2"], folder)
        (packages,) = folder.glob("environment/lib/python*/site-packages")
        link(needed("grove-conformance"), packages)
    else:
        # The lock file names the development tools, too; as constraints its versions hold for what the wheel asks for.
        versions = folder / "constraints.txt"
        versions.write_text(re.sub(r" \\\n +--hash=\S+", "", (PROJECT / "requirements.lock").read_text()))
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
    call([program, "run", "--id", "CORE-002", "--workers", "1"], tmp_path)
    (report,) = tmp_path.glob("reports/*/report.yaml")
    judged = yaml.safe_load(report.read_text())["verdict"]["requirements"]
    assert {entry["id"]: entry["outcome"] for entry in judged}["CORE-002"] == "passed"


def test_the_page_of_requirements_belongs_to_a_checkout(program: Path, tmp_path: Path) -> None:
    assert "give --to FILE" in call([program, "docs"], tmp_path, codes=(4,))
    call([program, "docs", "--to", "requirements.md"], tmp_path)
    assert (tmp_path / "requirements.md").is_file()


def needed(name: str, extra: str = "") -> set[str]:
    """The distributions of this environment that the one called `name` depends on, directly or not."""
    found, todo = set(), {(name, extra)}
    while todo:
        of, extra = todo.pop()
        wanted = [Requirement(text) for text in metadata.requires(of) or ()]
        wanted = [one for one in wanted if one.marker is None or one.marker.evaluate({"extra": extra})]
        new = {(canonicalize_name(one.name), extra) for one in wanted for extra in ("", *one.extras)} - found
        found |= new
        todo |= new
    return {name for name, _ in found}


def link(distributions: set[str], packages: Path) -> None:
    """Link what belongs to distributions of this environment into the folder `packages` of another."""
    for name in distributions:
        distribution = metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")}:
            (packages / top).symlink_to(Path(str(distribution.locate_file(top))))


def call(command: list[str | Path], folder: Path, codes: tuple[int, ...] = (0,)) -> str:
    """What the command says. It sees nothing of this checkout but what is on its command line."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode in codes, done.stdout
    return done.stdout
