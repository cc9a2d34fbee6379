"""Field errors and their messages (spec ADM-05)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec
import orjson

from reference_impl.api.models import to_json


class ErrorType(StrEnum):
    """The types of field errors, with the texts that Kubernetes uses."""

    REQUIRED = "Required value"
    INVALID = "Invalid value"
    DUPLICATE = "Duplicate value"
    NOT_FOUND = "Not found"
    NOT_SUPPORTED = "Unsupported value"
    FORBIDDEN = "Forbidden"
    TOO_LONG = "Too long"


_WITHOUT_VALUE = {ErrorType.REQUIRED, ErrorType.FORBIDDEN, ErrorType.TOO_LONG}


@dataclass(frozen=True)
class FieldError:
    """An error of one field: path, type, value and reason."""

    path: str
    type: ErrorType
    value: Any = None
    detail: str = ""

    def __str__(self) -> str:
        text = f"{self.path}: {self.type}"
        if self.type not in _WITHOUT_VALUE:
            text += f": {_as_json(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text


def required(path: str, detail: str) -> FieldError:
    """Return the error for a missing field."""
    return FieldError(path, ErrorType.REQUIRED, detail=detail)


def invalid(path: str, value: Any, detail: str) -> FieldError:
    """Return the error for an invalid value; `detail` is the reason."""
    return FieldError(path, ErrorType.INVALID, value, detail)


def duplicate(path: str, value: Any) -> FieldError:
    """Return the error for a value that occurs more than once in a list."""
    return FieldError(path, ErrorType.DUPLICATE, value)


def not_found(path: str, value: Any) -> FieldError:
    """Return the error for a value that names something that does not exist."""
    return FieldError(path, ErrorType.NOT_FOUND, value)


def forbidden(path: str, detail: str) -> FieldError:
    """Return the error for a field that must not be set; `detail` is the reason."""
    return FieldError(path, ErrorType.FORBIDDEN, detail=detail)


def immutable(path: str, value: Any) -> FieldError:
    """Return the error for a changed field that is immutable after creation."""
    return invalid(path, value, "field is immutable")


def aggregate(errors: Iterable[FieldError]) -> str:
    """Return all errors as one text, without duplicates."""
    texts = list(dict.fromkeys(map(str, errors)))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


_MESSAGE = re.compile(r"(?P<what>.*?)(?: - at `\$(?P<path>.*)`)?", re.DOTALL)


def decode_error(error: msgspec.ValidationError) -> FieldError:
    """Return the error for an object that does not have the shape of its kind."""
    match = _MESSAGE.fullmatch(str(error))
    assert match is not None
    path = (match["path"] or "").lstrip(".").replace("[...]", "[]")
    return FieldError(path or "<root>", ErrorType.INVALID, None, match["what"])


def _as_json(value: Any) -> str:
    """Return a value as JSON, truncated to a length that fits into a message."""
    try:
        text = orjson.dumps(to_json(value)).decode()
    except TypeError:
        text = repr(value)
    return text if len(text) <= 1000 else f"{text[:1000]}…"
