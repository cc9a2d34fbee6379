"""Errors of a reconcile that are reported in `status.lastErrors` (spec OBJ-236, OBJ-703)."""

from __future__ import annotations

from reference_impl.api.models import LastError


class ReconcileError(Exception):
    """A reconcile that cannot continue, for a reason that the user can fix."""

    def __init__(self, code: str, description: str) -> None:
        self.code, self.description = code, description
        super().__init__(f"{code}: {description}")


_CODES = {"Secret": "ERR_SECRET_CONFLICT", "PodGang": "ERR_CREATE_OR_PATCH_PODGANG"}


def conflict(kind: str, namespace: str, name: str) -> ReconcileError:
    """An object of somebody else has a name that is needed."""
    code = _CODES.get(kind, f"ERR_{kind.upper()}_CONFLICT")
    return ReconcileError(code, f"{kind} {namespace}/{name} already exists but is not controlled by its owner")


def last_errors(old: list[LastError] | None, problem: ReconcileError | None, now: str) -> list[LastError] | None:
    """`status.lastErrors` for an error; the old list if it says the same, None without an error."""
    if problem is None:
        return None
    if old and [(e.code, e.description) for e in old] == [(problem.code, problem.description)]:
        return old
    return [LastError(code=problem.code, description=problem.description, observed_at=now)]
