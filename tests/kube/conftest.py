"""Every test here must leave the event loop as it found it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest


@pytest.fixture(autouse=True)
async def no_task_left_behind() -> AsyncIterator[None]:
    yield
    # Let tasks that were cancelled a moment ago have the turns that they need to end.
    for _ in range(20):
        remaining_tasks = asyncio.all_tasks() - {asyncio.current_task()}
        if not remaining_tasks:
            return
        await asyncio.sleep(0)
    raise AssertionError(f"tasks left behind: {remaining_tasks}")
