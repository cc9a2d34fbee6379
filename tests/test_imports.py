"""Tests that a small command does not import modules that take long to import, because they would slow down every
call."""

from __future__ import annotations

import subprocess
import sys

import pytest

SLOW_MODULES = ("aiohttp", "allure_commons", "cryptography", "hypothesis", "kubernetes", "pytest", "prometheus_client")
JUDGING_MODULES = ("conformance.invariants", "conformance.history", "conformance.suite.plugin")
CALL_SOURCE = """
import sys
from conformance import cli
try:
    cli.app({arguments!r}, standalone_mode=False)
except BaseException as error:
    print(f"ended by {{error!r}}", file=sys.stderr)
print("imported:", *sys.modules)
"""


@pytest.mark.parametrize(
    "arguments", [["list", "--level", "MAY"], ["cluster", "list"], ["cluster", "nodes", "profiles"]]
)
def test_a_small_command_imports_no_slow_module(arguments: list[str]) -> None:
    result = subprocess.run(
        [sys.executable, "-c", CALL_SOURCE.format(arguments=arguments)], capture_output=True, text=True
    )
    imported_modules = set(result.stdout.rpartition("imported:")[2].split())
    assert "typer" in imported_modules and not result.stderr, result.stderr
    assert not imported_modules.intersection((*SLOW_MODULES, *JUDGING_MODULES))


def test_the_conformance_tests_are_collected_without_hypothesis() -> None:
    code = "import sys, conformance.tests.scheduler.test_scenarios; sys.exit('hypothesis' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
