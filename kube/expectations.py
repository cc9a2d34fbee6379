"""What a controller has done but its watch cache does not show yet, so that it isn't done twice."""

from __future__ import annotations

import time
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Expectations(Generic[K]):
    """Per key, the uids of objects that were created or deleted and have not been seen so yet.

    An expectation that isn't met within `patience` seconds is dropped: the event was lost, the cache is trusted again.
    """

    def __init__(self, patience: float = 60.0) -> None:
        self._patience = patience
        self._creations: dict[K, dict[str, float]] = {}
        self._deletions: dict[K, dict[str, float]] = {}

    def created(self, key: K, uid: str) -> None:
        self._creations.setdefault(key, {})[uid] = time.monotonic()

    def deleted(self, key: K, uid: str) -> None:
        self._deletions.setdefault(key, {})[uid] = time.monotonic()

    def saw_creation(self, key: K, uid: str) -> None:
        self._creations.get(key, {}).pop(uid, None)

    def saw_deletion(self, key: K, uid: str) -> None:
        self._deletions.get(key, {}).pop(uid, None)
        self.saw_creation(key, uid)

    def met(self, key: K) -> bool:
        """Whether the cache shows everything that this process did for the key."""
        horizon = time.monotonic() - self._patience
        for table in (self._creations, self._deletions):
            pending = table.get(key)
            if not pending:
                table.pop(key, None)
                continue
            for uid in [uid for uid, since in pending.items() if since < horizon]:
                del pending[uid]
            if pending:
                return False
        return True

    def forget(self, key: K) -> None:
        self._creations.pop(key, None)
        self._deletions.pop(key, None)
