from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from faked import Faked
from real import RealRun


@pytest.fixture
def faked(tmp_path: Path) -> Faked:
    return Faked(tmp_path)


@pytest.fixture
def real_run(faked: Faked) -> Iterator[RealRun]:
    """A run on a real cluster. What the run leaves is removed at the end of the test."""
    run = RealRun(faked)
    yield run
    if run.process is not None and run.process.poll() is None:
        run.process.kill()
        run.process.communicate()
    subprocess.run(
        [sys.executable, "-m", "conformance.cli", "cluster", "prune"], env=faked.environment(), capture_output=True
    )
