"""Tests of the mutants that are proved in every test run, or with THOROUGH=1. `make mutants` proves all mutants."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import THOROUGH

SHARD = "1/1" if THOROUGH else "1/3"
"""The part of the selection that is proved. The whole selection takes more than four minutes beside other tests."""


@pytest.mark.cluster
@pytest.mark.timeout(1200)
def test_the_suite_catches_the_mutants_of_the_selection() -> None:
    """Each mutant is killed by the requirements that it names."""
    command = [sys.executable, "-m", "mutants.prove", "--selection", "--shard", SHARD, "--parallel", "2"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
