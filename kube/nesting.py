"""A bound for the depth of JSON, since anybody may store an object that no decoder here can read.

The API server accepts 10,000 levels. Our decoders end at about 1,000, encoders at 254, and walks of Python somewhere
between. `metadata.managedFields[].fieldsV1` of any object may be as deep as its writer likes.
"""

from __future__ import annotations

import functools
import logging
import re
from array import array
from itertools import accumulate

DEPTH = 64
"""Maximum depth of the JSON that is read. The deepest Kubernetes object, a CRD with a pod spec, has 30."""
log = logging.getLogger(__name__)

_ESCAPED = re.compile(rb"\\.", re.S)
_OTHERS = bytes(set(range(256)) - set(b'{}[]"'))
_STEPS = bytes.maketrans(b"{[}]", b"\1\1\xff\xff")
"""From each bracket to 1 or, as a signed byte, to -1."""
_STRING = re.compile(rb'"[^"]*"?')
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[{}\[\]]', re.S)
_REMOVED = b"null"


def bounded(raw: bytes, source: str) -> bytes:
    """Return JSON with null for each value below the deepest level that is kept, so that the rest can be read:
    nesting an object must not hide it. Text without such values is returned as it is. `source` is for the log."""
    if not deep(raw, DEPTH):
        return raw
    _complain(source)
    return _flat(raw)


def deep(raw: bytes, limit: int) -> bool:
    """Return whether JSON has more levels; of text that is no JSON, this may be a mistake. All loops are in C."""
    if raw.count(b"{") + raw.count(b"[") <= limit:
        return False
    text = _ESCAPED.sub(b"", raw) if b"\\" in raw else raw
    # Without two quotes that are neighbours, the others still enclose the same brackets.
    text = text.translate(None, _OTHERS).replace(b'""', b"")
    text = _STRING.sub(b"", text) if b'"' in text else text
    return max(accumulate(array("b", text.translate(_STEPS))), default=0) > limit


def _flat(raw: bytes) -> bytes:
    parts: list[bytes] = []
    depth = begin = 0
    for token in _TOKEN.finditer(raw):
        match token[0]:
            case b"{" | b"[":
                depth += 1
                if depth == DEPTH + 1:
                    parts += raw[begin : token.start()], _REMOVED
            case b"}" | b"]":
                depth -= 1
                if depth == DEPTH:
                    begin = token.end()
    return b"".join(parts) + (raw[begin:] if depth <= DEPTH else b"")


@functools.lru_cache(maxsize=1000)
def _complain(source: str) -> None:
    """Log once for each source: a client that writes such an object may write it many times."""
    log.warning("%s: an object is more than %d levels deep; what is deeper is left out", source, DEPTH)
