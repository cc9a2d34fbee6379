from __future__ import annotations

import pytest

from tests.history.story import Story


@pytest.fixture
def story() -> Story:
    return Story()
