"""Tests that the Makefile rejects a checkout whose path pip cannot handle."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["it's", "a$HOME", "back`tick", 'quo"te', "a:b", "back\\slash"])
def test_a_path_that_pip_cannot_handle_is_reported_before_a_file_is_created(tmp_path: Path, name: str) -> None:
    checkout = tmp_path / name
    checkout.mkdir()
    for file in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / file, checkout)
    result = subprocess.run(["make", "conformance"], cwd=checkout, capture_output=True, text=True, check=False)
    assert result.returncode
    assert result.stderr.startswith(f"the path of this checkout, {checkout}, contains ")
    assert "move it to another path" in result.stderr
    assert not (checkout / ".venv").exists()
