"""Faults are found by name, armed by role, and each can be applied to the code as it is."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from conformance.suite import requirement
from reference_impl import cli, faults


def test_an_unknown_fault_is_refused_with_a_suggestion():
    with pytest.raises(faults.UnknownFaultError, match="did you mean 'partial-bind'"):
        faults.arm(["partial-bnd"], "gang-scheduler")


def test_a_fault_of_the_other_role_is_left_alone():
    from reference_impl.plan import gates

    right = gates.removable
    faults.arm(["gate-never-waits"], "gang-scheduler")
    assert gates.removable is right


def test_each_fault_can_be_applied():
    """In a process of its own: a fault stays."""
    code = "from reference_impl import faults\nfor fault in faults.registry().values(): fault.apply()"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_each_fault_names_requirements_that_there_are():
    known = set(requirement.load().requirements)
    for fault in faults.registry().values():
        assert fault.caught_by and set(fault.caught_by) <= known, fault.name


def test_a_replacement_for_nothing_is_an_error():
    from reference_impl.plan import gates

    with pytest.raises(AttributeError):
        faults.replace(gates, "no_such_function", None)


def test_the_command_line_lists_the_faults():
    result = CliRunner().invoke(cli.app, ["faults"])
    assert result.exit_code == 0 and "partial-bind" in result.stdout
