"""Tests that the suite's packages and another project's packages `conformance`, `kube` or `reference_impl` do not hide
each other."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from grove_conformance.precedence import PACKAGES
from tests.packaging.installed import call, packages_of_theirs

FOUND = "CORE-001 (MUST, profile core)"


@pytest.fixture
def python(program: Path) -> Path:
    """The interpreter of the environment in which the wheel is installed."""
    return program.with_name("python")


@pytest.mark.parametrize("path", ["", "."], ids=["in their folder", "with PYTHONPATH"])
@pytest.mark.parametrize("way", [["grove-conformance"], ["python", "-m", "grove_conformance"]], ids=" ".join)
def test_the_suite_runs_next_to_packages_of_the_same_names(
    program: Path, tmp_path: Path, way: list[str], path: str
) -> None:
    packages_of_theirs(tmp_path, *PACKAGES)
    command: list[str | Path] = [program.with_name(way[0]), *way[1:], "explain", "CORE-001"]
    assert FOUND in call(command, tmp_path, PYTHONPATH=path)


def test_the_reference_runs_next_to_packages_of_the_same_names(program: Path, tmp_path: Path) -> None:
    packages_of_theirs(tmp_path, *PACKAGES)
    assert "scheduler" in call([program.with_name("grove-reference"), "--help"], tmp_path, PYTHONPATH=".")


@pytest.mark.parametrize("module", ["conformance", "reference_impl"])
def test_a_module_uses_our_packages(python: Path, tmp_path: Path, module: str) -> None:
    """Python itself resolves the module of `python -m`, but that module imports the suite's packages."""
    packages_of_theirs(tmp_path, *(name for name in PACKAGES if name != module))
    assert "Usage" in call([python, "-m", module, "--help"], tmp_path, PYTHONPATH=".")


def test_processes_of_a_cluster_use_our_packages(python: Path, tmp_path: Path) -> None:
    packages_of_theirs(tmp_path, *PACKAGES)
    code = "from grove_conformance import start; print(*start.command('conformance.cluster.owner_watch'), sep='\\n')"
    command = call([python, "-P", "-c", code], tmp_path).splitlines()
    call([*command, str(tmp_path / "state"), "no-such-cluster", "uid"], tmp_path, PYTHONPATH=".")


@pytest.mark.parametrize("mode", ["prepend", "importlib"])
@pytest.mark.parametrize("rootdir", [True, False], ids=["with a rootdir", "without"])
def test_their_own_tests_find_their_own_packages(python: Path, tmp_path: Path, mode: str, rootdir: bool) -> None:
    for name in PACKAGES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("THEIRS = True")
    (tmp_path / "conformance" / "test_theirs.py").write_text(
        "import conformance, kube, reference_impl\n\n"
        "def test_theirs(): assert conformance.THEIRS and kube.THEIRS and reference_impl.THEIRS\n"
    )
    if rootdir:
        (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    command: list[str | Path] = [python, "-m", "pytest", "-q", "--import-mode", mode, "conformance"]
    assert "1 passed" in call(command, tmp_path)


def test_a_process_that_has_imported_theirs_gets_one_line(python: Path, tmp_path: Path) -> None:
    (tmp_path / "kube").mkdir()
    (tmp_path / "kube" / "__init__.py").touch()
    code = "import kube; from grove_conformance.start import suite; suite()"
    output = call([python, "-c", code], tmp_path, codes=(4,))
    assert output == (
        f"grove-conformance: {tmp_path / 'kube'} was imported as kube and hides the package kube of grove-conformance: "
        "rename the folder, or start grove-conformance in a process of its own\n"
    )


def test_the_wheel_has_no_other_top_level_names(program: Path) -> None:
    (wheel,) = program.parents[2].glob("*.whl")
    tops = {Path(name).parts[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top.partition("-")[0] for top in tops} == {"grove_conformance", "grove_conformance.pth"}
