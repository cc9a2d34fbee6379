"""Tests that the suite passes all variants armed together, using the first requirement of each variant. `make variants`
uses all requirements.

The test keeps two cores busy for minutes, so only `make test THOROUGH=1` runs it.
"""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.cluster
@pytest.mark.thorough
@pytest.mark.timeout(2400)
def test_the_suite_passes_all_variants_at_once() -> None:
    """The first requirement of each variant passes, and each variant has changed something."""
    done = subprocess.run([sys.executable, "-m", "mutants.permit", "--quick"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
