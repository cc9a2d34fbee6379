"""The hook that the pytest plugin adds."""

from __future__ import annotations

import pytest

from conformance.suite.environment import MakeEnvironment


@pytest.hookspec(firstresult=True)
def pytest_conformance_environment(config: pytest.Config) -> MakeEnvironment | None:
    """Return the function that opens the environment of a worker. Default: `session.open_environment`, a cluster."""
    raise NotImplementedError
