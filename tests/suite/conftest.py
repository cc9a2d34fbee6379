from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from faked import Faked
from real import Real


@pytest.fixture
def faked(tmp_path: Path) -> Faked:
    return Faked(tmp_path)


@pytest.fixture
def real(faked: Faked) -> Iterator[Real]:
    """A run on a real cluster. Whatever it leaves is removed at the end."""
    made = Real(faked)
    yield made
    if made.process is not None and made.process.poll() is None:
        made.process.kill()
        made.process.communicate()
    subprocess.run(
        [sys.executable, "-m", "conformance.cli", "cluster", "prune"], env=faked.environment(), capture_output=True
    )
