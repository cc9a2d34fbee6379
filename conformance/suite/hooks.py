"""The one hook that our pytest plugin adds."""

from __future__ import annotations

import pytest

from conformance.suite.environment import MakeEnvironment


@pytest.hookspec(firstresult=True)
def pytest_conformance_bench(config: pytest.Config) -> MakeEnvironment | None:
    """What makes the bench of a worker. Without an answer it is a cluster of its own (`session.open_bench`)."""
    raise NotImplementedError
