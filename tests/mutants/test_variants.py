"""Variants are found by name, armed by role, and each can be applied to the code as it is."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from conformance.suite import requirement
from reference_impl import cli, faults, variants
from reference_impl.faults.prove import Trial

EACH = """
import os, sys
from reference_impl import variants

bad = []
for variant in variants.registry().values():
    if not (child := os.fork()):  # each on the code as it is: a variant stays
        variant.apply()
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        bad.append(variant.name)
sys.exit(" ".join(bad) or 0)
"""


def test_each_variant_can_be_applied():
    done = subprocess.run([sys.executable, "-c", EACH], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_each_variant_names_requirements_that_exist():
    known = set(requirement.load().requirements)
    for variant in variants.registry().values():
        assert variant.passes and set(variant.passes) <= known, variant.name


def test_an_unknown_variant_is_refused_with_a_suggestion():
    with pytest.raises(faults.UnknownNameError, match="no variant 'another-colum'; did you mean 'another-column'"):
        variants.arm(["another-colum"], "operator")


def test_a_variant_of_the_other_role_is_left_alone():
    from reference_impl.control.operator import Operator

    right = Operator.run
    variants.arm(["another-column"], "gang-scheduler")
    assert Operator.run is right


def test_a_variant_must_pass_and_a_fault_must_fail():
    variant = Trial.of_variant(variants.registry()["another-column"])
    assert (variant.kind, variant.right("CRD-002"), variant.ids) == ("variant", "passed", ("CRD-002",))
    assert Trial.of_fault(faults.registry()["column-missing"]).right("CRD-002") == "failed"


def test_the_command_line_lists_the_variants():
    result = CliRunner().invoke(cli.app, ["variants"])
    assert result.exit_code == 0 and "another-column" in result.stdout
