"""What a controller has done but its watch cache does not show yet, so that it isn't done twice."""

from __future__ import annotations

import time
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Expectations(Generic[K]):
    """Per key, the uids of objects that were created or deleted and have not been seen so yet.

    The watch may be faster than the answer to the write: what was seen stays remembered for `patience` seconds, so that
    an expectation which comes after its event is met from the start. One that isn't met within `patience` seconds is
    dropped: the event was lost, the cache is trusted again.
    """

    def __init__(self, patience: float = 60.0) -> None:
        self._patience = patience
        self._creations = _Pending[K](patience)
        self._deletions = _Pending[K](patience)

    def created(self, key: K, uid: str) -> None:
        self._creations.expect(key, uid)

    def deleted(self, key: K, uid: str) -> None:
        self._deletions.expect(key, uid)

    def saw_creation(self, key: K, uid: str) -> None:
        self._creations.saw(key, uid)

    def saw_deletion(self, key: K, uid: str) -> None:
        """A deletion seen is a creation seen: the cache will never show that object again."""
        self._deletions.saw(key, uid)
        self._creations.saw(key, uid)

    def met(self, key: K) -> bool:
        """Whether the cache shows everything that this process did for the key."""
        return self._creations.met(key) and self._deletions.met(key)

    def forget(self, key: K) -> None:
        """Drops all expectations of a key."""
        self._creations.forget(key)
        self._deletions.forget(key)


class _Pending(Generic[K]):
    """One sort of expectation. All times are seconds of the monotonic clock."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._expected: dict[K, dict[str, float]] = {}
        self._seen: dict[tuple[K, str], float] = {}  # oldest first

    def expect(self, key: K, uid: str) -> None:
        if (key, uid) not in self._seen:
            self._expected.setdefault(key, {})[uid] = time.monotonic()

    def saw(self, key: K, uid: str) -> None:
        now = time.monotonic()
        while self._seen and next(iter(self._seen.values())) < now - self._patience:
            del self._seen[next(iter(self._seen))]
        self._seen.pop((key, uid), None)
        self._seen[key, uid] = now
        expected = self._expected.get(key)
        if expected is not None:
            expected.pop(uid, None)
            if not expected:
                del self._expected[key]

    def met(self, key: K) -> bool:
        horizon = time.monotonic() - self._patience
        waiting = {uid: since for uid, since in self._expected.get(key, {}).items() if since >= horizon}
        if waiting:
            self._expected[key] = waiting
        else:
            self._expected.pop(key, None)
        return not waiting

    def forget(self, key: K) -> None:
        self._expected.pop(key, None)
