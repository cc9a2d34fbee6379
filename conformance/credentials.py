"""Removes credentials from text: JSON web tokens, private keys (as PEM, and in base64 as in kubeconfigs), and all
secrets that this process has given to programs (`known_secrets`).

The time is linear in the length of the text, whatever the text contains: every repetition in a pattern is bounded, or
can start only at a position where no other match of its kind can start.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from conformance import known_secrets

REPLACEMENT = "REDACTED"

_LABEL = r"[A-Z0-9 ]{0,40}PRIVATE KEY-----"
_BODY = r"(?:[A-Za-z0-9+/=\s|]|\\+[nrt]){0,16384}"
"""The lines of a key, with real or escaped line ends or joined into one. No other escape sequence is split, so JSON
stays valid JSON."""
_HEADERS = r"(?:[\s\\nr|]{0,8}(?:Proc-Type|DEK-Info):[A-Za-z0-9, -]{0,99}){0,4}"
_RUN = r"[A-Za-z0-9+/_-]"
_KEY = "UFJJVkFURSBLRVkt", "BSSVZBVEUgS0VZLS", "QUklWQVRFIEtFWS0t"
"""`PRIVATE KEY-` in base64, at each of the three possible byte offsets."""
_FIELD = "Y2xpZW50LWtleS1kYXRh", "NsaWVudC1rZXktZGF0Y", "jbGllbnQta2V5LWRhdG"
"""`client-key-data` in base64, at the same three offsets: it marks a whole kubeconfig in base64."""


class _Kind(NamedTuple):
    """A kind of credential. A string that contains none of the `signs` contains no such credential and need not be
    searched."""

    signs: tuple[str, ...]
    pattern: str
    replacement: str = REPLACEMENT


_KINDS = (
    # Header and claims of a token begin with `{"`, which is `eyJ` in base64.
    _Kind(("eyJ",), r"(?:(?<![\w-])|(?<=\\[nrt]))eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}"),
    # The BEGIN line or the END line of a key may be missing.
    _Kind(("PRIVATE KEY-----",), rf"-----BEGIN {_LABEL}{_HEADERS}{_BODY}(?:-----END {_LABEL})?"),
    _Kind(("PRIVATE KEY-----",), rf"\A{_BODY}-----END {_LABEL}"),
    _Kind(
        (*_KEY, *_FIELD),
        rf"(?<!{_RUN})(?={_RUN}*(?:{'|'.join((*_KEY, *_FIELD))})){_RUN}+={{0,2}}"
        r"(?:[\s\\nr|]{1,8}[A-Za-z0-9+/]{32,}={0,2}){0,999}",
    ),
    _Kind(("client-key-data",), r"(client-key-data[\\\"'\s:=]{1,12})[A-Za-z0-9+/=]{8,}", rf"\1{REPLACEMENT}"),
)
_PATTERNS = [
    ([sign.encode() for sign in kind.signs], re.compile(kind.pattern.encode(), re.ASCII), kind.replacement.encode())
    for kind in _KINDS
]
_BEGIN = re.compile(rf"-----BEGIN {_LABEL}".encode())
_END = re.compile(rf"-----END {_LABEL}".encode())
_LINE = re.compile(rb"[^\n]{0,200}\n[^\n]{0,200}?[^\nA-Za-z0-9+/][A-Za-z0-9+/]{40,100}={0,2}\W{0,20}(?=\n|\Z)")
"""The end of a line, followed by a line that ends like a line of a key and may have a prefix."""
MAX_KEY_BYTES = 1 << 15
"""Maximum number of bytes from the start to the end of a key, including everything that a logger writes between its
lines."""


def redact(content: str) -> str:
    """Return a text without credentials."""
    return redact_bytes(content.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def redact_bytes(output: bytes) -> bytes:
    """Return the output of a program without credentials. JSON stays valid JSON."""
    for signs, pattern, replacement in _PATTERNS:
        if any(sign in output for sign in signs):
            output = pattern.sub(replacement, output)
    return known_secrets.redact(output, REPLACEMENT.encode())


def redact_log(content: bytes, name: str) -> bytes:
    """Return a log without credentials. If the log contains a credential in pieces, which cannot be removed, return one
    line that says so instead."""
    clean = redact_bytes(_without_blocks(content))
    if known_secrets.has_scattered_secret(clean):
        return f"({name} is withheld: it contains a private key or a token in pieces)\n".encode()
    return clean


def _without_blocks(content: bytes) -> bytes:
    """Return a log without private keys in PEM, even if each of their lines has a prefix."""
    parts, copied_to, key_end = list[bytes](), 0, 0
    for begin_line in _BEGIN.finditer(content):
        if begin_line.start() < copied_to:
            continue
        if key_end < begin_line.end():
            match = _END.search(content, begin_line.end())
            key_end = match.end() if match else len(content) + MAX_KEY_BYTES
        block_end = (
            key_end
            if key_end - begin_line.start() <= MAX_KEY_BYTES
            else _end_of_prefixed_lines(content, begin_line.end())
        )
        if block_end > begin_line.end():
            parts += content[copied_to : begin_line.start()], REPLACEMENT.encode()
            copied_to = block_end
    return b"".join((*parts, content[copied_to:]))


def _end_of_prefixed_lines(content: bytes, start: int) -> int:
    """Return the offset at which a key ends whose lines each have a prefix and whose END line is missing."""
    end = start
    while end - start < MAX_KEY_BYTES and (line := _LINE.match(content, end)):
        end = line.end()
    return end
