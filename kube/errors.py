"""What the API server answers when it refuses."""

from __future__ import annotations

from typing import Any

import orjson


class ApiError(Exception):
    """A response with a status of 400 or more.

    `status` is the HTTP code, `reason` the machine-readable word of the Status object (`AlreadyExists`, `Conflict`,
    `Invalid`, …; empty when the body is no Status), `details` its `details` object.
    """

    def __init__(self, status: int, reason: str, message: str, details: dict[str, Any], retry_after: float | None):
        self.status, self.reason, self.message, self.details = status, reason, message, details
        self.retry_after = retry_after
        super().__init__(f"{status} {reason}: {message}")

    @classmethod
    def of(cls, status: int, body: bytes, retry_after: str | None) -> ApiError:
        try:
            document = orjson.loads(body)
        except orjson.JSONDecodeError:
            document = {}
        if not isinstance(document, dict) or document.get("kind") != "Status":
            document = {"message": body[:500].decode("utf-8", "replace")}
        after = float(retry_after) if retry_after and retry_after.isdigit() else None
        return cls(
            status,
            document.get("reason", ""),
            document.get("message", ""),
            document.get("details") or {},
            after,
        )

    @property
    def not_found(self) -> bool:
        return self.status == 404

    @property
    def already_exists(self) -> bool:
        return self.status == 409 and self.reason == "AlreadyExists"

    @property
    def conflict(self) -> bool:
        return self.status == 409 and self.reason == "Conflict"
