"""What a reconcile has failed with, for `status.lastErrors`: there while it lasts, gone with the next success (OBJ-703
done right)."""

from __future__ import annotations

from kube.errors import ApiError
from kube.objects import Key
from reference_impl.api.models import LastError
from reference_impl.control.writer import now


class Troubles:
    """The errors of one kind's reconciles, by key. `code` is what `lastErrors[].code` says."""

    def __init__(self, code: str) -> None:
        self._code = code
        self._known: dict[Key, LastError] = {}

    def note(self, key: Key, error: Exception) -> bool:
        """Remembers an error that the API server has answered with; says whether it is news. A conflict is none: it
        only means that the cache was behind, and the next pass is on its way."""
        if not isinstance(error, ApiError) or error.conflict:
            return False
        old = self._known.get(key)
        if old is not None and old.description == str(error):
            return False
        self._known[key] = LastError(code=self._code, description=str(error), observed_at=now())
        return True

    def clear(self, key: Key) -> bool:
        """Forgets it; says whether there was one."""
        return self._known.pop(key, None) is not None

    def of(self, key: Key, old: list[LastError] | None) -> list[LastError] | None:
        """What the status is to say, given what it says now."""
        known = self._known.get(key)
        return [known] if known is not None else [] if old else old
