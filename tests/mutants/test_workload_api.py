"""Each difference of the back-end for gangs on kube-scheduler is seen by a test that has no cluster."""

from __future__ import annotations

import subprocess
import sys

import pytest

from conformance import data
from mutants.registry import MUTANTS, VARIANTS
from mutants.workload_api import CAUGHT_BY, PASSES, PERMITTED, WRONG, Difference

MUTANTS.all()
VARIANTS.all()
SAME = ("wl-other-names", "wl-other-template-names", "wl-leaves-first", "wl-workload-named-apart", "wl-objects-late")
"""Variants with which the tests pass as well: they do not look at what differs."""
ARM = """
import sys, pytest
from mutants.registry import MUTANTS, VARIANTS
from mutants.workload_api import PERMITTED, WRONG
MUTANTS.all(), VARIANTS.all()
({**WRONG.all, **PERMITTED.all})[sys.argv[1]].apply()
sys.exit(pytest.main(["-q", "-n", "0", "-p", "no:cacheprovider", "-x", *sys.argv[2:]]))
"""


def outcome(each: Difference) -> int:
    """The exit code of pytest: 1 if a test has failed."""
    tests = []
    for seen in each.seen_by:
        module, _, test = seen.partition(":")
        folder = "tests/reference" if module == "test_features" else "tests/reference/workload_api"
        tests.append(f"{folder}/{module}.py::{test}")
    done = subprocess.run(
        [sys.executable, "-c", ARM, each.name, *tests], cwd=data.PROJECT, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.returncode


@pytest.mark.parametrize("name", sorted(WRONG.all))
def test_each_mutant_is_seen(name: str) -> None:
    assert outcome(WRONG.all[name]) == 1


@pytest.mark.parametrize("name", sorted(PERMITTED.all))
def test_each_variant_differs_where_it_says(name: str) -> None:
    assert outcome(PERMITTED.all[name]) == (0 if name in SAME else 1)


def test_what_is_judged_is_registered() -> None:
    assert {*CAUGHT_BY} <= {*WRONG.all} & {*MUTANTS.all()}
    assert {*PASSES} <= {*PERMITTED.all} & {*VARIANTS.all()}
