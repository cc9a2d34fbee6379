"""Names without their generated parts, so that the objects of two runs can be compared."""

from __future__ import annotations

import re

_EPOCH = re.compile(r"(?<![0-9])[0-9]{10,}(?![0-9])")
"""A time in a name or value, such as the epoch of a gang (GM-33)."""
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SUFFIX = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}(?=-|$)|-[0-9a-f]{8,10}$")
"""Suffixes from generateName, even if a part follows because a name was derived from such a name, and suffixes from
operators that generate names themselves."""


def without_times(text: str) -> str:
    """Return a text with each time in it replaced by `*`."""
    return _EPOCH.sub("*", text)


def without_namespace(text: str, namespace: str) -> str:
    """Replace the name of a namespace in a text by `{namespace}`, but only where the name is not part of a longer
    word."""
    return re.sub(rf"(?<![a-zA-Z0-9]){re.escape(namespace)}(?![a-zA-Z0-9])", "{namespace}", text)


def stable_name(name: str, namespace: str = "") -> str:
    """Return a name with each generated part, which would be different in another run, replaced by `*`."""
    name = _SUFFIX.sub("-*", without_times(_UID.sub("*", name)))
    return without_namespace(name, namespace) if namespace else name
