"""Remove credentials from text: JSON web tokens and private keys, as PEM and in base64, as kubeconfigs have them.

The time is proportional to the length of the text, whatever it says: every repetition that may be tried again from
another place is bounded, or begins where no other one of its kind can.
"""

from __future__ import annotations

import re
from typing import NamedTuple

HIDDEN = "REDACTED"

_LABEL = r"[A-Z0-9 ]{0,40}PRIVATE KEY-----"
_BODY = r"(?:[A-Za-z0-9+/=\s|]|\\+[nrt]){0,16384}"
"""The lines of a key, also with escaped ends, and joined ones. No other escape is taken apart: JSON stays JSON."""
_HEADERS = r"(?:[\s\\nr|]{0,8}(?:Proc-Type|DEK-Info):[A-Za-z0-9, -]{0,99}){0,4}"
_RUN = r"[A-Za-z0-9+/_-]"
_KEY = "UFJJVkFURSBLRVkt", "BSSVZBVEUgS0VZLS", "QUklWQVRFIEtFWS0t"
"""`PRIVATE KEY-` in base64, as it looks at each of the three places where it may begin."""
_FIELD = "Y2xpZW50LWtleS1kYXRh", "NsaWVudC1rZXktZGF0Y", "jbGllbnQta2V5LWRhdG"
"""`client-key-data` likewise: of a whole kubeconfig in base64."""


class _Kind(NamedTuple):
    """A kind of credential. Text without all of the `signs` has none of it, and need not be searched."""

    signs: tuple[str, ...]
    pattern: str
    instead: str = HIDDEN


_KINDS = (
    # Header and claims of a token begin with `{"`, which is `eyJ` in base64.
    _Kind(("eyJ",), r"(?:(?<![\w-])|(?<=\\[nrt]))eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}"),
    # The end of a key may be missing, or its beginning.
    _Kind(("PRIVATE KEY-----",), rf"-----BEGIN {_LABEL}{_HEADERS}{_BODY}(?:-----END {_LABEL})?"),
    _Kind(("PRIVATE KEY-----",), rf"\A{_BODY}-----END {_LABEL}"),
    _Kind(
        (*_KEY, *_FIELD),
        rf"(?<!{_RUN})(?={_RUN}*(?:{'|'.join((*_KEY, *_FIELD))})){_RUN}+={{0,2}}"
        r"(?:[\s\\nr|]{1,8}[A-Za-z0-9+/]{32,}={0,2}){0,999}",
    ),
    _Kind(("client-key-data",), r"(client-key-data[\\\"'\s:=]{1,12})[A-Za-z0-9+/=]{8,}", rf"\1{HIDDEN}"),
)
_OF_TEXT = [(kind.signs, re.compile(kind.pattern, re.ASCII), kind.instead) for kind in _KINDS]
_OF_BYTES = [
    ([sign.encode() for sign in kind.signs], re.compile(kind.pattern.encode(), re.ASCII), kind.instead.encode())
    for kind in _KINDS
]


def text(said: str) -> str:
    """Return a text without credentials."""
    for signs, pattern, instead in _OF_TEXT:
        if any(sign in said for sign in signs):
            said = pattern.sub(instead, said)
    return said


def words(said: bytes) -> bytes:
    """Return the output of a program without credentials."""
    for signs, pattern, instead in _OF_BYTES:
        if any(sign in said for sign in signs):
            said = pattern.sub(instead, said)
    return said
