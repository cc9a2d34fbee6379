"""Errors of requests to the API server."""

from __future__ import annotations

from typing import Any

import orjson


class ApiError(Exception):
    """A response with a status of 400 or more.

    `status` is the HTTP code, `reason` the machine-readable reason of the Status object (`AlreadyExists`, `Conflict`,
    `Invalid`, …; empty if the body is no Status), `details` its `details` object, `retry_after` the seconds that the
    server asks to wait, if any, at most a minute.
    """

    def __init__(self, status: int, reason: str, message: str, details: dict[str, Any], retry_after: float | None):
        self.status, self.reason, self.message, self.details = status, reason, message, details
        self.retry_after = retry_after
        super().__init__(f"{status} {reason}".rstrip() + (f": {message}" if message else ""))

    @classmethod
    def of(cls, status: int, body: bytes, retry_after: str | None) -> ApiError:
        """Parse a refusal: a Status object, or any other body. With `status` 0 (an ERROR event of a watch) the code is
        that of the Status object."""
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
        """Whether there is no such object."""
        return self.status == 404

    @property
    def already_exists(self) -> bool:
        """Whether an object of the name exists already."""
        return self.status == 409 and self.reason == "AlreadyExists"

    @property
    def conflict(self) -> bool:
        """Whether the object has changed since it was read."""
        return self.status == 409 and self.reason == "Conflict"


UNANSWERED: tuple[type[Exception], ...]
"""Exceptions of a request that was not sent or got no answer: a write may have been done."""
REQUEST_FAILED: tuple[type[Exception], ...]
"""Exceptions of a failed request: refused, not sent, or without an answer."""


def __getattr__(name: str) -> tuple[type[Exception], ...]:
    """Return one of these tuples. They need aiohttp, which is slow to import and which only a request needs."""
    if name not in ("UNANSWERED", "REQUEST_FAILED"):
        raise AttributeError(name)
    import aiohttp

    unanswered = (aiohttp.ClientError, OSError, TimeoutError)
    return unanswered if name == "UNANSWERED" else (ApiError, *unanswered)


LONGEST = 60.0
"""Seconds. A server that asks for more is asked again after a minute: a wrong header must not stop a client."""


def _seconds(text: str | None) -> float | None:
    """A delay in whole seconds; None for 0, a date, and anything else that the API server does not send."""
    return min(float(text), LONGEST) or None if text and text.isascii() and text.isdigit() else None
