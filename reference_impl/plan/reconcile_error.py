"""Errors of a reconcile that are reported in `status.lastErrors` (spec OBJ-236, OBJ-703)."""

from __future__ import annotations

from collections.abc import Sequence

from reference_impl.api.models import LastError


class ReconcileError(Exception):
    """A reconcile cannot continue, for a reason that the user can fix."""

    def __init__(self, code: str, description: str) -> None:
        self.code, self.description = code, description
        super().__init__(f"{code}: {description}")


_CODES = {"Secret": "ERR_SECRET_CONFLICT", "PodGang": "ERR_CREATE_OR_PATCH_PODGANG"}


def conflict(kind: str, namespace: str, name: str) -> ReconcileError:
    """Return the error for an existing object that has a required name and another controller."""
    code = _CODES.get(kind, f"ERR_{kind.upper()}_CONFLICT")
    return ReconcileError(code, f"{kind} {namespace}/{name} already exists but is not controlled by its owner")


def last_errors(old: list[LastError] | None, problems: Sequence[ReconcileError], now: str) -> list[LastError] | None:
    """Return `status.lastErrors` for these errors, or None if there are none. Errors that are already in the old list
    keep their time."""
    old_errors = {(error.code, error.description): error for error in old or ()}
    return [
        old_errors.get((problem.code, problem.description)) or LastError(problem.code, problem.description, now)
        for problem in problems
    ] or None
