"""Waiting for conditions, so that no cluster test sleeps for a fixed time."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import TypeVar

from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

T = TypeVar("T")
Spawn = Callable[..., subprocess.Popen[str]]
"""Type of the fixture `spawn`."""


def wait_for(condition: Callable[[], T], *, timeout: float = 120.0) -> T:
    """Return the first true value of `condition`, or raise tenacity.RetryError after `timeout` seconds.

    The timeout is long because a busy machine may need a minute to start a control plane; only failures take that long.
    """
    return Retrying(
        retry=retry_if_result(lambda value: not value), wait=wait_fixed(0.005), stop=stop_after_delay(timeout)
    )(condition)
