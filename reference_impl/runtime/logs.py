"""Logging as the configuration wants it: lines for people, or JSON objects for machines."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextvars import ContextVar

import orjson

from reference_impl.runtime.configuration import LogFormat, LogLevel

TEXT = "%(asctime)s %(levelname)s %(name)s %(message)s"
Subject = tuple[str, str, str]
"""A controller, and namespace and name of what it works on."""

_subject: ContextVar[Subject | None] = ContextVar("subject", default=None)


def concern(controller: str, namespace: str, name: str) -> None:
    """What the log lines of this task, and of those that it starts, are about from now on."""
    _subject.set((controller, namespace, name))


def about(
    controller: str, reconcile: Callable[[tuple[str, str]], Awaitable[float | None]]
) -> Callable[[tuple[str, str]], Awaitable[float | None]]:
    """A reconcile whose log lines, also the one that says that it failed, name the controller and the object."""

    async def told(key: tuple[str, str]) -> float | None:
        _subject.set((controller, *key))
        return await reconcile(key)

    return told


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
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


def configure(level: LogLevel, shape: LogFormat) -> None:
    """Sets up the root logger of this process."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if shape is LogFormat.JSON else logging.Formatter(TEXT))
    logging.basicConfig(level=logging.getLevelNamesMapping()[level.upper()], handlers=[handler], force=True)
