"""A fixture that checks that every test leaves the event loop without tasks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest


@pytest.fixture(autouse=True)
async def no_task_left_behind() -> AsyncIterator[None]:
    yield
    # Give tasks that have just been cancelled the loop iterations that they need to end.
    for _ in range(20):
        remaining_tasks = asyncio.all_tasks() - {asyncio.current_task()}
        if not remaining_tasks:
            return
        await asyncio.sleep(0)
    raise AssertionError(f"tasks left behind: {remaining_tasks}")
