"""Names without their generated parts, so that the objects of two runs can be compared."""

from __future__ import annotations

import re

_EPOCH = re.compile(r"(?<![0-9])[0-9]{10,}(?![0-9])")
"""A time in a name or value, such as the epoch of a gang (GM-33)."""
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SUFFIX = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}(?=-|$)|-[0-9a-f]{8,10}$")
"""Suffixes of generateName, also where a part follows that was derived from such a name, and suffixes of operators that
generate names themselves."""


def without_times(text: str) -> str:
    """Return a text with `*` for each time in it."""
    return _EPOCH.sub("*", text)


def without_namespace(text: str, namespace: str) -> str:
    """Return a text without the name of a namespace, where it is a word of its own."""
    return re.sub(rf"(?<![a-zA-Z0-9]){re.escape(namespace)}(?![a-zA-Z0-9])", "{namespace}", text)


def stable(name: str, namespace: str = "") -> str:
    """Return a name with `*` for each part that another run would generate anew."""
    name = _SUFFIX.sub("-*", without_times(_UID.sub("*", name)))
    return without_namespace(name, namespace) if namespace else name
