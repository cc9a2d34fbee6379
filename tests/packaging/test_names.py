"""Tests that the suite's packages and packages of another project named `conformance`, `kube` or `reference_impl` do
not hide each other."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from grove_conformance.precedence import PACKAGES
from tests.packaging.installed import create_foreign_packages, run_command

EXPLAINED_REQUIREMENT = "CORE-001 (MUST, profile core)"


@pytest.fixture
def python(program: Path) -> Path:
    """The interpreter of the environment in which the wheel is installed."""
    return program.with_name("python")


@pytest.mark.parametrize("path", ["", "."], ids=["in their folder", "with PYTHONPATH"])
@pytest.mark.parametrize(
    "program_arguments", [["grove-conformance"], ["python", "-m", "grove_conformance"]], ids=" ".join
)
def test_the_suite_runs_next_to_packages_of_the_same_names(
    program: Path, tmp_path: Path, program_arguments: list[str], path: str
) -> None:
    create_foreign_packages(tmp_path, *PACKAGES)
    command: list[str | Path] = [program.with_name(program_arguments[0]), *program_arguments[1:], "explain", "CORE-001"]
    assert EXPLAINED_REQUIREMENT in run_command(command, tmp_path, PYTHONPATH=path)


def test_the_reference_runs_next_to_packages_of_the_same_names(program: Path, tmp_path: Path) -> None:
    create_foreign_packages(tmp_path, *PACKAGES)
    assert "scheduler" in run_command([program.with_name("grove-reference"), "--help"], tmp_path, PYTHONPATH=".")


@pytest.mark.parametrize("module", ["conformance", "reference_impl"])
def test_a_module_uses_the_suites_packages(python: Path, tmp_path: Path, module: str) -> None:
    """Python itself resolves the module in `python -m`, but that module imports the suite's packages."""
    create_foreign_packages(tmp_path, *(name for name in PACKAGES if name != module))
    assert "Usage" in run_command([python, "-m", module, "--help"], tmp_path, PYTHONPATH=".")


def test_processes_of_a_cluster_use_the_suites_packages(python: Path, tmp_path: Path) -> None:
    create_foreign_packages(tmp_path, *PACKAGES)
    code = "from grove_conformance import start; print(*start.command('conformance.cluster.owner_watch'), sep='\\n')"
    command = run_command([python, "-P", "-c", code], tmp_path).splitlines()
    run_command([*command, str(tmp_path / "state"), "no-such-cluster", "uid"], tmp_path, PYTHONPATH=".")


@pytest.mark.parametrize("mode", ["prepend", "importlib"])
@pytest.mark.parametrize("has_rootdir", [True, False], ids=["with a rootdir", "without"])
def test_tests_of_another_project_find_its_own_packages(
    python: Path, tmp_path: Path, mode: str, has_rootdir: bool
) -> None:
    for name in PACKAGES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("THEIRS = True")
    (tmp_path / "conformance" / "test_theirs.py").write_text(
        "import conformance, kube, reference_impl\n\n"
        "def test_theirs(): assert conformance.THEIRS and kube.THEIRS and reference_impl.THEIRS\n"
    )
    if has_rootdir:
        (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    command: list[str | Path] = [python, "-m", "pytest", "-q", "--import-mode", mode, "conformance"]
    assert "1 passed" in run_command(command, tmp_path)


def test_a_process_that_has_imported_a_foreign_package_ends_with_one_line(python: Path, tmp_path: Path) -> None:
    (tmp_path / "kube").mkdir()
    (tmp_path / "kube" / "__init__.py").touch()
    code = "import kube; from grove_conformance.start import suite; suite()"
    output = run_command([python, "-c", code], tmp_path, codes=(4,))
    assert output == (
        f"grove-conformance: {tmp_path / 'kube'} was imported as kube and hides the package kube of grove-conformance: "
        "rename the folder, or start grove-conformance in a process of its own\n"
    )


def test_the_wheel_has_no_other_top_level_names(program: Path) -> None:
    (wheel,) = program.parents[2].glob("*.whl")
    top_level_names = {Path(name).parts[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {name.partition("-")[0] for name in top_level_names} == {"grove_conformance", "grove_conformance.pth"}
