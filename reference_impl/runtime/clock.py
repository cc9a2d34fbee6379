"""The current time, in the formats of Kubernetes."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> str:
    """Return the current time in whole seconds, the format of conditions and statuses."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def now_with_microseconds() -> str:
    """Return the current time with microseconds, the format of events."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
