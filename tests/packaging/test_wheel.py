"""Tests that the wheel is sufficient to judge an implementation. The wheel is installed into a separate environment,
next to a PyPI package that has the same name as the suite's data folder, `fixtures`, and is called from a folder that
is not a checkout."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml

from conformance.data import PROJECT
from tests.packaging.installed import create_foreign_packages, run_command

pytestmark = pytest.mark.cluster


def test_the_wheel_contains_its_data(program: Path, tmp_path: Path) -> None:
    expected = run_command([sys.executable, "-m", "conformance", "validate"], PROJECT)
    assert run_command([program, "validate"], tmp_path) == expected


def test_the_wheel_explains_from_its_own_specification(program: Path, tmp_path: Path) -> None:
    text = run_command([program, "explain", "GANG-007"], tmp_path)
    assert "docs/spec/objects.md#obj-321" in text and "mutants:" not in text


def test_the_wheel_contains_the_guide_that_a_new_descriptor_names(program: Path, tmp_path: Path) -> None:
    answers = ["--name", "mine", "--role", "operator", "--scheduler-name", "mine", "--command", "/bin/true"]
    run_command([program, "implementation", "new", "mine.yaml", *answers, "--ready", "ready"], tmp_path)
    assert "`grove-conformance implementation guide`" in (tmp_path / "mine.yaml").read_text()
    guide = (PROJECT / "docs" / "writing-an-implementation.md").read_text()
    assert run_command([program, "implementation", "guide"], tmp_path) == guide


def test_the_wheel_contains_the_example(program: Path, tmp_path: Path) -> None:
    run_command([program, "implementation", "new", "--example", "toy"], tmp_path)
    folder = PROJECT / "docs/examples/toy-operator"
    assert {path.name: path.read_bytes() for path in (tmp_path / "toy").iterdir()} == {
        name: (folder / name).read_bytes() for name in ("go.mod", "main.go", "toy.yaml")
    }
    output = run_command(
        [program, "implementation", "validate", "toy.yaml", "--set", f"binary={sys.executable}"], tmp_path / "toy"
    )
    assert "toy.yaml is valid" in output


def test_the_wheel_judges_next_to_packages_of_the_same_names(program: Path, tmp_path: Path) -> None:
    create_foreign_packages(tmp_path, "conformance", "kube")
    variables = {"GROVE_CONFORMANCE_STATE": str(tmp_path / "state"), "PYTHONPATH": str(tmp_path)}
    run_command([program, "run", "--id", "CORE-002", "--workers", "1"], tmp_path, **variables)
    (report,) = tmp_path.glob("reports/*/report.yaml")
    requirements = yaml.safe_load(report.read_text())["verdict"]["requirements"]
    assert {entry["id"]: entry["outcome"] for entry in requirements}["CORE-002"] == "passed"


def test_the_page_of_requirements_belongs_to_a_checkout(program: Path, tmp_path: Path) -> None:
    assert "give --to FILE" in run_command([program, "docs"], tmp_path, codes=(4,))
    run_command([program, "docs", "--to", "requirements.md"], tmp_path)
    assert (tmp_path / "requirements.md").is_file()
