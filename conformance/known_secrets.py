"""The secrets that this process has given to programs, and functions that find them in a text.

A secret is the part that only its owner knows: for a private key, the numbers that are not in a certificate; for a
token, its signature. A secret is recognized as bytes, as hexadecimal digits, and in up to three layers of base64, at
any offset in the encoded data. 16 consecutive characters of base64 or 32 hexadecimal digits are enough.

The time is linear in the length of the text and independent of the number of secrets: windows of the text are looked up
in a set of all windows of all forms. Looking up every fifth position is enough, since each stretch of 16 characters
contains such a window.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import yaml

from conformance import bounded, regular
from conformance.errors import UsageError

MIN_LENGTH = 16
"""Minimum length of a secret in bytes: shorter byte strings occur by chance."""
MAX_BASE64_LAYERS = 3
"""The maximum number of base64 layers: a kubeconfig in base64 contains a key in base64, which is PEM, which is
base64."""
_BASE64_WINDOW, _HEX_WINDOW = (12, 5), (24, 9)
"""Length of a window, and the distance between two windows that are looked up."""
_BASE64_CHARACTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-"
_STANDARD_ALPHABET = bytes.maketrans(b"-_", b"+/")
"""Translates the URL-safe base64 alphabet to the standard one."""
_NON_BASE64 = re.compile(rb"[^A-Za-z0-9+/=_-]")
_ALL_BYTES = bytes(range(256))
_NON_BASE64_BYTES = _ALL_BYTES.translate(None, _BASE64_CHARACTERS.replace(b"=", b""))
_NON_HEX_BYTES = _ALL_BYTES.translate(None, b"0123456789abcdefABCDEF")
_BREAK = re.compile(rb"\\+[nrtx]|0x")
"""An escaped line break, or a prefix of hexadecimal digits."""
_LAST_WORD = re.compile(rb"(?<![A-Za-z0-9+/=:_-])[A-Za-z0-9+/=:_-]++(?=[^A-Za-z0-9+/=:_\n-]*(?:\n|\Z))")
"""The last word of a line; the text before it may be a log prefix."""
_BYTES = re.compile(rb"\d{1,3}(?:[\s,]{1,9}\d{1,3}){15,}")
"""Bytes as a list of numbers."""
_ESCAPED = re.compile(rb"\\+x([0-9a-fA-F]{2})")
_PIECE_BYTES = 1 << 20

_secrets = set[bytes]()
_windows: dict[tuple[int, int], set[bytes]] = {_BASE64_WINDOW: set(), _HEX_WINDOW: set()}


def learn_kubeconfig(path: Path) -> None:
    """Remember the keys and tokens of a kubeconfig. Programs can write to the file: if it is no longer a valid
    kubeconfig, it is ignored."""
    with suppress(OSError, UsageError, yaml.YAMLError, AttributeError, TypeError, ValueError):
        content = _content(path)
        bounded.check_depth(content, str(path))
        for entry in yaml.safe_load(content)["users"]:
            user = entry["user"]
            learn_key(base64.b64decode(user.get("client-key-data", "")))
            if "client-key" in user:
                learn_key(_content(path.parent / user["client-key"]).encode())
            token = _content(path.parent / user["tokenFile"]) if "tokenFile" in user else user.get("token", "")
            learn(token.strip().rpartition(".")[2].encode())  # for a JSON web token, the signature
            learn(user.get("password", "").encode())


def _content(path: Path) -> str:
    return regular.OpenFile(path).at(0, bounded.MAX_BYTES).decode()


def learn_key(pem: bytes) -> None:
    """Remember a private key, if it is one."""
    if b"PRIVATE KEY" not in pem:  # importing cryptography takes longer than everything else
        return
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    with suppress(ValueError, TypeError):  # the key is damaged or encrypted
        key = load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=True)
        if isinstance(key, ec.EllipticCurvePrivateKey):
            learn(key.private_numbers().private_value.to_bytes((key.key_size + 7) // 8, "big"))
        elif isinstance(key, rsa.RSAPrivateKey):
            numbers = key.private_numbers()
            for number in (numbers.d, numbers.p, numbers.q, numbers.dmp1, numbers.dmq1, numbers.iqmp):
                learn(number.to_bytes((number.bit_length() + 7) // 8, "big"))


def learn(secret: bytes) -> None:
    """Remember a secret, unless it is too short."""
    if len(secret) < MIN_LENGTH or secret in _secrets:
        return
    _secrets.add(secret)
    forms, layer = [secret], [secret]
    for _ in range(MAX_BASE64_LAYERS):
        layer = [form for layer_form in layer for form in _base64_forms(layer_form)]
        forms += layer
    hex_forms = [digits for form in forms[:4] for digits in (form.hex().encode(), form.hex().upper().encode())]
    for window_size, encodings in ((_BASE64_WINDOW, forms), (_HEX_WINDOW, hex_forms)):
        for form in encodings:
            plain, length = form.translate(_STANDARD_ALPHABET), window_size[0]
            _windows[window_size].update(plain[offset : offset + length] for offset in range(len(plain) - length + 1))


def redact(content: bytes, replacement: bytes) -> bytes:
    """Return a text in which each word that contains part of a secret is replaced with `replacement`. JSON stays
    valid JSON."""
    if not _secrets:
        return content
    parts, copied_to = list[bytes](), 0
    plain = content.translate(_STANDARD_ALPHABET)
    for offset, length in sorted(window for window_size in _windows for window in _secret_windows(plain, window_size)):
        if offset < copied_to:
            continue
        word_start = copied_to + len(content[copied_to:offset].rstrip(_BASE64_CHARACTERS))
        if content[word_start - 1 : word_start] == b"\\":  # an escape, such as \n or \u003e
            word_start += 5 if content[word_start : word_start + 1] == b"u" else 1
        next_break = _NON_BASE64.search(content, offset + length)
        word_end = next_break.start() if next_break else len(content)
        if content[word_start:word_end].strip(b"0123456789eE+-"):  # not a number
            parts += content[copied_to:word_start], replacement
            copied_to = word_end
    return b"".join((*parts, content[copied_to:])) if parts else content


def has_scattered_secret(log: bytes) -> bool:
    """Return whether a log contains a secret in pieces: with other characters between the pieces, spread over the ends
    of lines, or as a list of byte values."""
    if not _secrets:
        return False
    all_words, last_words = bytearray(), bytearray()
    for piece in _pieces(log):
        broken = _BREAK.sub(b"\n", piece)
        all_words += broken.translate(_STANDARD_ALPHABET, _NON_BASE64_BYTES)
        last_words += b"".join(_LAST_WORD.findall(broken))
        lists = (_bytes_of_numbers(match[0]) for match in _BYTES.finditer(piece))
        escaped = [_ESCAPED.sub(_unescaped_byte, piece)] if b"\\x" in piece else []
        if any(
            _has_secret_window(content.translate(_STANDARD_ALPHABET), _BASE64_WINDOW) for content in (*escaped, *lists)
        ):
            return True
    return _has_secret(all_words) or _has_secret(last_words)


def _base64_forms(content: bytes) -> Iterator[bytes]:
    """Yield the base64 characters that `content` determines inside a longer encoded text, for each of the three
    possible offsets."""
    for offset in range(3):
        text = base64.b64encode(bytes(offset) + content)
        yield text[(offset * 8 + 5) // 6 : (offset + len(content)) * 8 // 6]


def _secret_windows(plain: bytes, window_size: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Yield the offset and length of each window that belongs to a secret."""
    windows, (length, step) = _windows[window_size], window_size
    if windows:
        yield from (
            (offset, length) for offset in range(0, len(plain), step) if plain[offset : offset + length] in windows
        )


def _has_secret_window(plain: bytes, window_size: tuple[int, int]) -> bool:
    return next(_secret_windows(plain, window_size), None) is not None


def _has_secret(words: bytearray) -> bool:
    """Return whether a secret occurs in joined words, whatever separates its parts."""
    return _has_secret_window(
        bytes(words.translate(_STANDARD_ALPHABET, _NON_BASE64_BYTES)), _BASE64_WINDOW
    ) or _has_secret_window(bytes(words.translate(None, _NON_HEX_BYTES)), _HEX_WINDOW)


def _pieces(content: bytes) -> Iterator[bytes]:
    """Yield a text in pieces, of whole lines if possible: processing all words of a long text at once takes too much
    memory."""
    start = 0
    while start < len(content):
        end = content.find(b"\n", start + _PIECE_BYTES, start + 2 * _PIECE_BYTES) + 1 or start + 2 * _PIECE_BYTES
        yield content[start:end]
        start = end


def _unescaped_byte(escape: re.Match[bytes]) -> bytes:
    return bytes([int(escape[1], 16)])


def _bytes_of_numbers(text: bytes) -> bytes:
    """Return the bytes of a textual list of decimal numbers."""
    return bytes(number for match in re.finditer(rb"\d+", text) if (number := int(match[0])) < 256)
