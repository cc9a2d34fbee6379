"""Namespaces that are being deleted: nothing can be created in them any more, whatever is missing.

Such a namespace never comes back, so an owner in it needs no further attempt: without this, each deleted pod of a
namespace would lead to a refused request for each missing one.
"""

from __future__ import annotations

from typing import Any

from kube.errors import ApiError

CAUSE = "NamespaceTerminating"
AT_MOST = 1000


class Terminating:
    """Owners whose namespace is being deleted, known from refusals of the API server; the newest 1,000 of them."""

    def __init__(self) -> None:
        self._owners: dict[str, None] = {}

    def learn(self, manifest: dict[str, Any], error: ApiError) -> bool:
        """Whether the creation of an object was refused because its namespace is being deleted; remembers its owner."""
        if not any(cause.get("reason") == CAUSE for cause in error.details.get("causes") or ()):
            return False
        if owner := _owner(manifest):
            self._owners[owner] = None
        if len(self._owners) > AT_MOST:
            del self._owners[next(iter(self._owners))]
        return True

    def holds(self, manifest: dict[str, Any]) -> bool:
        """Whether the owner of an object is in such a namespace."""
        return _owner(manifest) in self._owners


def _owner(manifest: dict[str, Any]) -> str | None:
    references = manifest["metadata"].get("ownerReferences") or ()
    return next((reference["uid"] for reference in references if reference.get("controller")), None)
