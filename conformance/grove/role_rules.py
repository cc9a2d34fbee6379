"""What a Role allows, however its rules are written: two Roles that allow the same differ in nothing that matters."""

from __future__ import annotations

from itertools import product

from conformance.grove.fields import Document, items, texts


def allowed(role: Document | None) -> list[str]:
    """Return what a Role allows, as sorted texts such as `get pods`, `list deployments.apps` or `get pods "web-0"`."""
    found: set[tuple[str, str, str, str]] = set()
    for rule in items(role, "rules"):
        verbs, resources, groups = (texts(rule, part) for part in ("verbs", "resources", "apiGroups"))
        found.update(product(verbs, resources, groups, texts(rule, "resourceNames") or [""]))
    # A permission for all objects includes those for single ones.
    least = {(*what, name) for *what, name in found if not name or (*what, "") not in found}
    return sorted(_text(*permission) for permission in least)


def _text(verb: str, resource: str, group: str, name: str) -> str:
    return f"{verb} {resource}" + (f".{group}" if group else "") + (f' "{name}"' if name else "")
