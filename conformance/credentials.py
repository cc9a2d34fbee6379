"""Remove credentials from text: JSON web tokens and private keys, as PEM and in base64, as kubeconfigs have them, and
whatever this process has handed out (`known_secrets`).

The time is proportional to the length of the text, whatever it says: every repetition that may be tried again from
another place is bounded, or begins where no other one of its kind can.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from conformance import known_secrets

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
_PATTERNS = [
    ([sign.encode() for sign in kind.signs], re.compile(kind.pattern.encode(), re.ASCII), kind.instead.encode())
    for kind in _KINDS
]
_BEGIN = re.compile(rf"-----BEGIN {_LABEL}".encode())
_END = re.compile(rf"-----END {_LABEL}".encode())
_LINE = re.compile(rb"[^\n]{0,200}\n[^\n]{0,200}?[^\nA-Za-z0-9+/][A-Za-z0-9+/]{40,100}={0,2}\W{0,20}(?=\n|\Z)")
"""The end of a line, and one that ends like a line of a key, after a prefix."""
LONGEST = 1 << 15
"""Bytes from the beginning to the end of a key, with all that a logger writes between its lines."""


def text(content: str) -> str:
    """Return a text without credentials."""
    return words(content.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def words(output: bytes) -> bytes:
    """Return the output of a program without credentials. JSON stays JSON."""
    for signs, pattern, instead in _PATTERNS:
        if any(sign in output for sign in signs):
            output = pattern.sub(instead, output)
    return known_secrets.cut(output, HIDDEN.encode())


def log(content: bytes, name: str) -> bytes:
    """Return a log without credentials: a line that says so if it contains one in pieces, which cannot be cut out."""
    clean = words(_without_blocks(content))
    if known_secrets.scattered(clean):
        return f"({name} is withheld: it contains a private key or a token in pieces)\n".encode()
    return clean


def _without_blocks(content: bytes) -> bytes:
    """Return a log without private keys in PEM, whatever precedes their lines."""
    parts, done, end = list[bytes](), 0, 0
    for begin in _BEGIN.finditer(content):
        if begin.start() < done:
            continue
        if end < begin.end():
            match = _END.search(content, begin.end())
            end = match.end() if match else len(content) + LONGEST
        after = end if end - begin.start() <= LONGEST else _lines(content, begin.end())
        if after > begin.end():
            parts += content[done : begin.start()], HIDDEN.encode()
            done = after
    return b"".join((*parts, content[done:]))


def _lines(content: bytes, begin: int) -> int:
    """Return where the lines of a key end that have a prefix each, and of which the last one is not there."""
    end = begin
    while end - begin < LONGEST and (line := _LINE.match(content, end)):
        end = line.end()
    return end
