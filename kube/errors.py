"""Errors of requests to the API server."""

from __future__ import annotations

from typing import Any

import orjson


class ApiError(Exception):
    """A response with a status of 400 or more.

    `status` is the HTTP status code, `reason` the machine-readable reason of the Status object (`AlreadyExists`,
    `Conflict`, `Invalid`, …; empty if the body is not a Status object), and `details` the `details` of the Status
    object. `retry_after` is the number of seconds, at most 60, that the server asks the client to wait, or None.
    """

    def __init__(self, status: int, reason: str, message: str, details: dict[str, Any], retry_after: float | None):
        self.status, self.reason, self.message, self.details = status, reason, message, details
        self.retry_after = retry_after
        super().__init__(f"{status} {reason}".rstrip() + (f": {message}" if message else ""))

    @classmethod
    def of(cls, status: int, body: bytes, retry_after: str | None) -> ApiError:
        """Parse the body of an error response: a Status object, or any other text. With `status` 0 (an ERROR event of a
        watch) the code is taken from the Status object."""
        try:
            document = orjson.loads(body)
        except orjson.JSONDecodeError:
            document = None
        if not isinstance(document, dict) or document.get("kind") != "Status":
            document = {"message": body[:500].decode("utf-8", "replace").strip()}
        raw_details = document.get("details")
        details: dict[str, Any] = raw_details if isinstance(raw_details, dict) else {}
        code = document.get("code")
        return cls(
            status or (code if isinstance(code, int) else 0),
            document.get("reason") or "",
            document.get("message") or "",
            details,
            _seconds(retry_after) or _seconds(str(details.get("retryAfterSeconds", ""))),
        )

    @property
    def not_found(self) -> bool:
        """Whether the object or resource does not exist."""
        return self.status == 404

    @property
    def already_exists(self) -> bool:
        """Whether an object with this name already exists."""
        return self.status == 409 and self.reason == "AlreadyExists"

    @property
    def conflict(self) -> bool:
        """Whether the object has changed since it was read."""
        return self.status == 409 and self.reason == "Conflict"


UNANSWERED: tuple[type[Exception], ...]
"""Exceptions of a request that was not sent or got no response. If the request was a write, it may have taken
effect."""
REQUEST_FAILED: tuple[type[Exception], ...]
"""Exceptions of a failed request: it was refused, not sent, or got no response."""


def __getattr__(name: str) -> tuple[type[Exception], ...]:
    """Return one of the two tuples. They need aiohttp, which is slow to import and is needed only by programs that send
    requests."""
    if name not in ("UNANSWERED", "REQUEST_FAILED"):
        raise AttributeError(name)
    import aiohttp

    unanswered = (aiohttp.ClientError, OSError, TimeoutError)
    return unanswered if name == "UNANSWERED" else (ApiError, *unanswered)


MAX_RETRY_AFTER = 60.0
"""The maximum of `retry_after`, in seconds. It prevents a wrong header from stopping a client."""


def _seconds(text: str | None) -> float | None:
    """Return a delay in whole seconds; None for 0, for a date, and for any other value that the API server never
    sends."""
    return min(float(text), MAX_RETRY_AFTER) or None if text and text.isascii() and text.isdigit() else None
