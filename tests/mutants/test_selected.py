"""Tests of the mutants that are proved in every test run. `make mutants` proves all mutants."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.cluster
@pytest.mark.timeout(1200)
def test_the_suite_catches_the_mutants_of_the_selection() -> None:
    """Each mutant is killed by the requirements that it names."""
    command = [sys.executable, "-m", "mutants.prove", "--selection", "--parallel", "2"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
