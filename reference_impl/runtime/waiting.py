"""Repetition of a request that a process needs at startup, until the API server responds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from kube.errors import REQUEST_FAILED, ApiError
from kube.reflector import Backoff

T = TypeVar("T")
log = logging.getLogger(__name__)

_TEMPORARY_CODES = frozenset({408, 429, 500, 502, 503, 504})
"""Status codes of temporary errors. While the storage of a CRD is being initialized, requests get 429."""


def is_temporary(error: BaseException) -> bool:
    """Return whether the same request may succeed later."""
    return not isinstance(error, ApiError) or error.status in _TEMPORARY_CODES


async def retry_until_answered(
    send: Callable[[], Awaitable[T]],
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> T:
    """Return the result of `send`. Call it again with back-off while the API server is unreachable or returns a
    temporary error; log only the first failure. Any permanent error propagates."""
    backoff, has_logged = Backoff(first=0.2, cap=5.0), False
    while True:
        try:
            return await send()
        except REQUEST_FAILED as error:
            if not is_temporary(error):
                raise
            if not has_logged:
                log.warning("the API server does not answer yet, retrying: %s", error or repr(error))
                has_logged = True
            wait = error.retry_after if isinstance(error, ApiError) else None
            await sleep(wait or backoff.next())
