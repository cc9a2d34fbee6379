"""Each difference of the back-end for gangs on kube-scheduler is seen by a test that has no cluster."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from conformance import data
from mutants.registry import MUTANTS, VARIANTS
from mutants.workload_api import CAUGHT_BY, PASSES, PERMITTED, WRONG

SAME = {"wl-other-names", "wl-other-template-names", "wl-leaves-first", "wl-workload-named-apart", "wl-objects-late"}
"""Variants with which the tests pass as well: they do not look at what differs."""

EACH = """
import asyncio, inspect, importlib, json, os, sys, traceback
from mutants.registry import MUTANTS, VARIANTS
from mutants.workload_api import PERMITTED, WRONG
from tests.reference.workload_api import test_operator

MUTANTS.all(), VARIANTS.all()
same, found = set(sys.argv[1].split(",")), {}

def play(seen):
    module, _, rest = seen.partition(":")
    name, _, row = rest.partition("#")
    folder = "tests.reference" if module == "test_features" else "tests.reference.workload_api"
    test = getattr(importlib.import_module(f"{folder}.{module}"), name)
    arguments = ()
    if row:
        _, rows = next(mark.args for mark in test.pytestmark if mark.name == "parametrize")
        arguments = rows[int(row)]
        several = isinstance(arguments, tuple) and len(inspect.signature(test).parameters) > 1
        arguments = arguments if several else (arguments,)
    outcome = test(*arguments)
    if inspect.iscoroutine(outcome):
        asyncio.run(outcome)

for name, each in {**WRONG.all, **PERMITTED.all}.items():
    if not (child := os.fork()):  # each on the code as it is: it cannot be undone
        test_operator.PATIENCE = 120.0 if name in same else 6.0
        each.apply()
        code = 0
        for seen in each.seen_by:
            try:
                play(seen)
            except Exception as error:
                code = 1 if isinstance(error, (AssertionError, ValueError)) else 2
                if code == 2:
                    traceback.print_exc()
        os._exit(code)
    found[name] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(json.dumps(found))
"""


@pytest.fixture(scope="module", autouse=True)
def registered() -> None:
    """All differences are known: each registers itself when its module is loaded."""
    MUTANTS.all()
    VARIANTS.all()


@pytest.fixture(scope="module")
def outcomes() -> dict[str, int]:
    """Name of a difference → 1 if the tests that it names have failed, 0 if they have passed."""
    command = [sys.executable, "-c", EACH, ",".join(SAME)]
    done = subprocess.run(command, cwd=data.PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    assert set(found.values()) <= {0, 1}, done.stderr
    return found


def test_each_mutant_is_seen(outcomes: dict[str, int]) -> None:
    assert len(WRONG.all) >= 25
    assert [name for name in WRONG.all if outcomes[name] != 1] == []


def test_each_variant_differs_where_it_says(outcomes: dict[str, int]) -> None:
    assert len(PERMITTED.all) >= 8
    assert {name for name in PERMITTED.all if outcomes[name] == 0} == SAME


def test_what_is_judged_is_registered() -> None:
    assert {*CAUGHT_BY} <= {*WRONG.all} & {*MUTANTS.all()}
    assert {*PASSES} <= {*PERMITTED.all} & {*VARIANTS.all()}
