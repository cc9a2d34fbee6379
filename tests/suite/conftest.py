from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from faked import Faked


@pytest.fixture
def faked(tmp_path: Path) -> Faked:
    return Faked(tmp_path)
