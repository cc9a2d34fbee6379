"""Values in annotations of nodes. Any client of the cluster can write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from conformance import bounded
from conformance.errors import UsageError

T = TypeVar("T")


def decoded(annotations: Mapping[str, str] | None, key: str, form: type[T]) -> T | None:
    """Return the JSON value of an annotation as `form`. Return None if the annotation is missing. Raises ValueError if
    it is malformed."""
    text = (annotations or {}).get(key)
    if text is None:
        return None
    try:
        return bounded.decode_line(msgspec.json.Decoder(form).decode, text.encode(errors="replace"), key)
    except UsageError as error:
        raise ValueError(str(error)) from None
