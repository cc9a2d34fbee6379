"""Logging as the configuration wants it: lines for people, or JSON objects for machines."""

from __future__ import annotations

import logging

import orjson

from reference_impl.configuration import LogFormat, LogLevel

TEXT = "%(asctime)s %(levelname)s %(name)s %(message)s"


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "ts": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        if record.exc_info:
            entry["stacktrace"] = self.formatException(record.exc_info)
        return orjson.dumps(entry).decode()


def configure(level: LogLevel, shape: LogFormat) -> None:
    """Sets up the root logger of this process."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if shape is LogFormat.JSON else logging.Formatter(TEXT))
    logging.basicConfig(level=logging.getLevelNamesMapping()[level.upper()], handlers=[handler], force=True)
