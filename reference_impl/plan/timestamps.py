"""Timestamps in the format of Kubernetes: whole seconds in UTC."""

from __future__ import annotations

from datetime import UTC, datetime

_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


def seconds(timestamp: str | None) -> float | None:
    """Return a timestamp as seconds since the epoch, or None if it is invalid."""
    if not timestamp:
        return None
    try:
        return datetime.fromisoformat(timestamp).astimezone(UTC).timestamp()
    except ValueError:
        return None


def format_timestamp(timestamp: float) -> str:
    """Return seconds since the epoch as a timestamp, without fractions."""
    return datetime.fromtimestamp(timestamp, UTC).strftime(_FORMAT)


def later_than(created: str | None, now: str) -> str:
    """Return `now`, or one second after `created` if that is later, because clocks differ and timestamps have whole
    seconds."""
    created_at, now_at = seconds(created), seconds(now)
    if created_at is None or now_at is None or now_at > created_at:
        return now
    return format_timestamp(created_at + 1)
