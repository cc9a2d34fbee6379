from __future__ import annotations

from pathlib import Path

import pytest
from faked import Faked


@pytest.fixture
def faked(tmp_path: Path) -> Faked:
    return Faked(tmp_path)
