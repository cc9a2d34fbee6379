"""Tests that the implementation is not blamed for a process that ends because the suite's supervisor was killed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from conformance.errors import SupervisorLost
from conformance.implementation.descriptor import Role
from conformance.implementation.process import Ended
from conformance.implementation.role_process import ProcessFailure
from conformance.suite.scenes.machine import Machine
from conformance.suite.scenes.roles import Roles


@pytest.mark.parametrize("unsupervised", [True, False])
def test_an_operator_that_ended_with_its_supervisor_is_not_blamed(unsupervised: bool) -> None:
    deaths: list[ProcessFailure] = []
    anything: Any = None
    driver: Any = SimpleNamespace(failures=lambda: deaths, failures_at_start=0, logs=dict)
    roles = Roles(driver, "n", anything, anything, lambda: None, Machine())
    deaths.append(ProcessFailure(Role.OPERATOR, "", "mine", Ended(-9, 0.0, unsupervised), "its log ends with: nothing"))
    if not unsupervised:
        assert roles.exited_processes() == "mine: the operator was ended by SIGKILL; its log ends with: nothing"
        return
    with pytest.raises(SupervisorLost, match="mine: the operator was ended because the suite's own process that"):
        roles.exited_processes()
