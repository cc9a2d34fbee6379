"""Detect that installed webhook configurations have been removed, which is then the common cause of all failures."""

from __future__ import annotations

import contextlib
from collections.abc import Collection

from conformance.cluster import users
from conformance.cluster.audit import AuditLog
from conformance.errors import HarnessError
from conformance.implementation.installation import WEBHOOKS
from conformance.suite.scenes.api import Api, NotServed
from conformance.suite.scenes.premises import DELETE_VERBS
from kube.errors import ApiError


def removed(api: Api, installed: Collection[tuple[str, str]], audit: AuditLog | None) -> str:
    """Return a description of the configurations (kind and name) that are gone, and of the users who removed them;
    empty if none is gone."""
    result: list[str] = []
    with contextlib.suppress(ApiError, NotServed, HarnessError):
        for kind in sorted({kind for kind, _ in installed}):
            plural = WEBHOOKS[kind].plural
            present_names = api.names(plural)
            for name in sorted(name for other, name in installed if other == kind and name not in present_names):
                writers = audit.writers(plural, [name], DELETE_VERBS, 0) if audit is not None else []
                removers = [other.user for other in writers if other.user != users.SUITE]
                result.append(f"the {kind} {name} was removed" + (f" by the user {removers[-1]}" if removers else ""))
    return "; ".join(result)
