"""Faults are found by name, armed by role, and each can be applied to the code as it is."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from conformance.suite import requirement
from reference_impl import cli, faults
from reference_impl.faults import prove


def test_an_unknown_fault_is_refused_with_a_suggestion():
    with pytest.raises(faults.UnknownNameError, match="did you mean 'partial-bind'"):
        faults.arm(["partial-bnd"], "gang-scheduler")


def test_a_fault_of_the_other_role_is_left_alone():
    from reference_impl.plan import gates

    right = gates.removable
    faults.arm(["gate-never-waits"], "gang-scheduler")
    assert gates.removable is right


EACH = """
import os, sys
from reference_impl import faults

bad = []
for fault in faults.registry().values():
    if not (child := os.fork()):  # each on the code as it is: a fault stays
        fault.apply()
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        bad.append(fault.name)
sys.exit(" ".join(bad) or 0)
"""


def test_each_fault_can_be_applied():
    done = subprocess.run([sys.executable, "-c", EACH], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_each_fault_names_requirements_that_there_are():
    known = set(requirement.load().requirements)
    for fault in faults.registry().values():
        assert fault.caught_by and set(fault.caught_by) <= known, fault.name


def test_the_selection_covers_each_profile_both_roles_and_the_invariants():
    registry, known = requirement.load(), faults.registry()
    chosen = [known[name] for name in prove.selection()]
    claimed = {identity for fault in chosen for identity in fault.caught_by}
    profiles = {entry.profile for entry in registry.requirements.values()}
    assert {registry.requirements[identity].profile for identity in claimed} == profiles
    assert {fault.role for fault in chosen} == {"operator", "gang-scheduler"}
    assert any(identity.startswith(prove.INVARIANT) for identity in claimed)
    assert len(chosen) <= 14, "make test is to stay short; make mutants proves all of them"


def test_a_replacement_for_nothing_is_an_error():
    from reference_impl.plan import gates

    with pytest.raises(AttributeError):
        faults.replace(gates, "no_such_function", None)


def test_a_replacement_that_cannot_be_called_alike_is_an_error():
    from reference_impl.plan import gates

    with pytest.raises(TypeError):
        faults.replace(gates, "removable", lambda clique: [])


def test_the_command_line_lists_the_faults():
    result = CliRunner().invoke(cli.app, ["faults"])
    assert result.exit_code == 0 and "partial-bind" in result.stdout
