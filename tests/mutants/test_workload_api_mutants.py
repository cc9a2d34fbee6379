"""Tests that a test without a cluster detects each difference of the Workload API back-end."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from conformance import data
from mutants.registry import MUTANTS, VARIANTS
from mutants.workload_api import CAUGHT_BY, PASSES, PERMITTED, WRONG
from tests.mutants.each_difference import FAILED, PASSED

UNDETECTED = {
    "wl-other-names",
    "wl-other-template-names",
    "wl-leaves-first",
    "wl-workload-named-apart",
    "wl-objects-late",
}
"""Variants that their tests do not detect. The tests pass as for the unmodified reference, because they do not check
what the variant changes."""


@pytest.fixture(scope="module", autouse=True)
def registered() -> None:
    """Load all modules of mutants and variants, which registers all differences."""
    MUTANTS.all()
    VARIANTS.all()


@pytest.fixture(scope="module")
def outcomes() -> dict[str, int]:
    """Return difference → outcome of its tests. Fail if any test has an error."""
    command = [sys.executable, "-m", "tests.mutants.each_difference"]
    done = subprocess.run(command, cwd=data.PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    assert set(result.values()) <= {PASSED, FAILED}, (result, done.stderr)
    return result


def test_each_mutant_is_detected(outcomes: dict[str, int]) -> None:
    assert len(WRONG.all) >= 25
    assert [name for name in WRONG.all if outcomes[name] != FAILED] == []


def test_each_variant_makes_a_difference(outcomes: dict[str, int]) -> None:
    assert len(PERMITTED.all) >= 8
    assert {name for name in PERMITTED.all if outcomes[name] == PASSED} == UNDETECTED


def test_judged_differences_are_registered() -> None:
    assert {*CAUGHT_BY} <= {*WRONG.all} & {*MUTANTS.all()}
    assert {*PASSES} <= {*PERMITTED.all} & {*VARIANTS.all()}
