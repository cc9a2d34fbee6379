"""Tests that the implementation is not blamed for a process that another program has killed, alone or with the suite's
supervisor."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from conformance.errors import HarnessError, SupervisorLost
from conformance.implementation.descriptor import Role
from conformance.implementation.process import ProcessExit
from conformance.implementation.role_process import ProcessFailure, require_not_killed
from conformance.suite.scenes.machine import Machine
from conformance.suite.scenes.roles import Roles


@pytest.mark.parametrize("unsupervised", [True, False])
def test_an_operator_that_ended_with_its_supervisor_is_not_blamed(unsupervised: bool) -> None:
    deaths: list[ProcessFailure] = []
    anything: Any = None
    driver: Any = SimpleNamespace(failures=lambda: deaths, failures_at_start=0, logs=dict)
    roles = Roles(driver, "n", anything, anything, lambda: None, Machine())
    deaths.append(
        ProcessFailure(Role.OPERATOR, "", "mine", ProcessExit(-9, 0.0, unsupervised), "its log ends with: nothing")
    )
    if not unsupervised:
        assert roles.exited_processes() == "mine: the operator was ended by SIGKILL; its log ends with: nothing"
        return
    with pytest.raises(SupervisorLost, match="mine: the operator was ended because the suite's own process that"):
        roles.exited_processes()


def killed_operator(at: float, code: int = -9) -> ProcessFailure:
    return ProcessFailure(Role.OPERATOR, "", "mine", ProcessExit(code, at), "its log ends with: nothing")


def test_the_first_process_that_is_killed_takes_the_verdict_of_its_scene() -> None:
    with pytest.raises(HarnessError, match=r"the operator was ended by SIGKILL; .* has the machine run out of memory"):
        require_not_killed([killed_operator(4.0, code=2), killed_operator(5.0)], 3.0)
    require_not_killed([killed_operator(5.0)], 6.0)


@pytest.mark.parametrize(
    "failures", [[], [killed_operator(5.0, code=-11)], [killed_operator(1.0), killed_operator(5.0)]]
)
def test_other_deaths_and_the_next_one_are_the_implementations(failures: list[ProcessFailure]) -> None:
    require_not_killed(failures, 3.0)
