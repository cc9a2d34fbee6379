"""Compare Roles by the requests that they allow, independent of the form of their rules."""

from __future__ import annotations

from itertools import product

from conformance.grove.fields import Document, items, texts


def permissions_of(role: Document | None) -> list[str]:
    """Return the permissions of a Role as sorted texts, such as `get pods`, `list deployments.apps` or
    `get pods "web-0"`."""
    permissions: set[tuple[str, str, str, str]] = set()
    for rule in items(role, "rules"):
        verbs, resources, groups = (texts(rule, part) for part in ("verbs", "resources", "apiGroups"))
        permissions.update(product(verbs, resources, groups, texts(rule, "resourceNames") or [""]))
    # A permission for all objects includes the permissions for single objects.
    distinct = {(*scope, name) for *scope, name in permissions if not name or (*scope, "") not in permissions}
    return sorted(_text(*permission) for permission in distinct)


def _text(verb: str, resource: str, group: str, name: str) -> str:
    return f"{verb} {resource}" + (f".{group}" if group else "") + (f' "{name}"' if name else "")
