"""A client whose process dies in the middle of its work."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from kube.client import Client


class Mortal(Client):
    """A client whose process dies with its `k`-th write (from 1); 0 lives for ever."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.writes, self.k = 0, 0
        self.dead = asyncio.Event()

    async def request(self, method: str, path: str, **options: Any) -> bytes:
        answer = await super().request(method, path, **options)
        if method != "GET":
            self.writes += 1
            if self.k and self.writes >= self.k:
                self.dead.set()
                await asyncio.Event().wait()
        return answer


async def death(task: asyncio.Task[None]) -> None:
    """What was under way is cut off, and nothing that it knew survives."""
    task.cancel()
    with suppress(asyncio.CancelledError, BaseExceptionGroup):
        await task
