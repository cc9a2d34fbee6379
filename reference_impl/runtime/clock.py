"""The present time, as Kubernetes writes it."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> str:
    """The present time in whole seconds, as conditions and statuses have it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def precise_now() -> str:
    """The present time with microseconds, as events have it."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
