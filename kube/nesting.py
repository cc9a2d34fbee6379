"""A limit on the depth of JSON, because any client may store an object that no decoder in this package can read.

The API server accepts 10,000 levels. Our decoders fail at about 1,000 levels, encoders at 254, and recursive Python
functions somewhere in between. `metadata.managedFields[].fieldsV1` of any object may be as deep as its writer likes.
"""

from __future__ import annotations

import functools
import logging
import re
from array import array
from itertools import accumulate

MAX_DEPTH = 64
"""Maximum depth of JSON that is read. The deepest Kubernetes object, a CRD with a pod spec, has 30 levels."""
log = logging.getLogger(__name__)

_ESCAPED = re.compile(rb"\\.", re.S)
_OTHER_BYTES = bytes(set(range(256)) - set(b'{}[]"'))
_STEPS = bytes.maketrans(b"{[}]", b"\1\1\xff\xff")
"""A translation table: 1 for each opening bracket and, as a signed byte, -1 for each closing one."""
_STRING = re.compile(rb'"[^"]*"?')
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[{}\[\]]', re.S)
_REPLACEMENT = b"null"


def limit_depth(raw: bytes, source: str) -> bytes:
    """Return JSON in which each value below the maximum depth is replaced by null, so that the rest can be read,
    because deep nesting must not hide an object. Text without such values is returned unchanged. `source` is for the
    log."""
    if not exceeds_depth(raw, MAX_DEPTH):
        return raw
    _warn_once(source)
    return _cut_off(raw)


def exceeds_depth(raw: bytes, limit: int) -> bool:
    """Return whether JSON has more than `limit` levels. The result may be wrong for text that is not JSON. All loops
    run in C."""
    if raw.count(b"{") + raw.count(b"[") <= limit:
        return False
    text = _ESCAPED.sub(b"", raw) if b"\\" in raw else raw
    # Removing pairs of adjacent quotes does not change which brackets the remaining quotes enclose.
    text = text.translate(None, _OTHER_BYTES).replace(b'""', b"")
    text = _STRING.sub(b"", text) if b'"' in text else text
    return max(accumulate(array("b", text.translate(_STEPS))), default=0) > limit


def _cut_off(raw: bytes) -> bytes:
    parts: list[bytes] = []
    depth = start = 0
    for token in _TOKEN.finditer(raw):
        match token[0]:
            case b"{" | b"[":
                depth += 1
                if depth == MAX_DEPTH + 1:
                    parts += raw[start : token.start()], _REPLACEMENT
            case b"}" | b"]":
                depth -= 1
                if depth == MAX_DEPTH:
                    start = token.end()
    return b"".join(parts) + (raw[start:] if depth <= MAX_DEPTH else b"")


@functools.lru_cache(maxsize=1000)
def _warn_once(source: str) -> None:
    """Log once per source, since a client that writes such an object may write it many times."""
    log.warning("%s: an object is more than %d levels deep; what is deeper is left out", source, MAX_DEPTH)
