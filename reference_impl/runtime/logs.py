"""Logging in the configured format: lines of text or JSON objects."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextvars import ContextVar

import orjson

from reference_impl.runtime.configuration import LogFormat, LogLevel

TEXT = "%(asctime)s %(levelname)s %(name)s %(message)s"
Subject = tuple[str, str, str]
"""A controller, and the namespace and name of the object that it works on."""

_subject: ContextVar[Subject | None] = ContextVar("subject", default=None)


def set_subject(controller: str, namespace: str, name: str) -> None:
    """Set the subject of all log lines of this task and of the tasks that it starts."""
    _subject.set((controller, namespace, name))


def with_subject(
    controller: str, reconcile: Callable[[tuple[str, str]], Awaitable[float | None]]
) -> Callable[[tuple[str, str]], Awaitable[float | None]]:
    """Wrap a reconcile function so that its log lines, and the log line about its failure, name the controller and the
    object."""

    async def reported(key: tuple[str, str]) -> float | None:
        _subject.set((controller, *key))
        return await reconcile(key)

    return reported


class JsonFormatter(logging.Formatter):
    """Formats each record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        entry = {
            "ts": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        if (subject := _subject.get()) is not None:
            entry |= dict(zip(("controller", "namespace", "name"), subject, strict=True))
        if record.exc_info:
            entry["stacktrace"] = self.formatException(record.exc_info)
        return orjson.dumps(entry).decode()


def configure(level: LogLevel, log_format: LogFormat) -> None:
    """Configure the root logger of this process."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if log_format is LogFormat.JSON else logging.Formatter(TEXT))
    logging.basicConfig(level=logging.getLevelNamesMapping()[level.upper()], handlers=[handler], force=True)
