"""Namespaces that are being deleted, in which objects can no longer be created.

Such a namespace never becomes usable again, so no more objects are created for an owner in it. Without this, each
deleted pod of the namespace would cause a refused request for each missing pod.
"""

from __future__ import annotations

from typing import Any

from kube.errors import ApiError

CAUSE = "NamespaceTerminating"
MAX_OWNERS = 1000


class TerminatingOwners:
    """Owners whose namespace is being deleted according to errors of the API server. Only the newest 1,000 owners are
    kept."""

    def __init__(self) -> None:
        self._owners: dict[str, None] = {}

    def remember_refusal(self, manifest: dict[str, Any], error: ApiError) -> bool:
        """Remember the owner of an object whose creation was refused because its namespace is being deleted. Return
        False if it was refused for another reason."""
        if not any(cause.get("reason") == CAUSE for cause in error.details.get("causes") or ()):
            return False
        if owner := _owner(manifest):
            self._owners[owner] = None
        if len(self._owners) > MAX_OWNERS:
            del self._owners[next(iter(self._owners))]
        return True

    def holds(self, manifest: dict[str, Any]) -> bool:
        """Return whether the owner of an object is in such a namespace."""
        return _owner(manifest) in self._owners


def _owner(manifest: dict[str, Any]) -> str | None:
    references = manifest["metadata"].get("ownerReferences") or ()
    return next((reference["uid"] for reference in references if reference.get("controller")), None)
