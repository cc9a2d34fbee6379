"""Pauses of the garbage collector: kube-controller-manager, which contains the garbage collector, is suspended for a
while."""

from __future__ import annotations

import threading
import time

import psutil

from conformance.cluster.controlplane import Cluster

COMPONENT = "kube-controller-manager"
PAUSE_SECONDS, MIN_RUN_SECONDS = 15.0, 4.0
"""The time for which the process is suspended, and the minimum time for which it runs afterwards. The process also
prepares new namespaces and deletes old ones."""


class GarbageCollector:
    """The garbage collector of a cluster. Any thread may use it."""

    def __init__(self, cluster: Cluster) -> None:
        process = cluster.monitor.process(COMPONENT)
        assert process is not None
        self._process: psutil.Process = process
        self._lock, self._next_pause, self._timer = threading.Lock(), 0.0, threading.Timer(0, lambda: None)
        self.pauses = 0

    def pause(self) -> None:
        """Suspend the garbage collector for `PAUSE_SECONDS`, unless it is suspended or was resumed less than
        `MIN_RUN_SECONDS` ago."""
        with self._lock:
            if time.monotonic() < self._next_pause:
                return
            self._next_pause = time.monotonic() + PAUSE_SECONDS + MIN_RUN_SECONDS
            self._process.suspend()
            self.pauses += 1
            self._timer = threading.Timer(PAUSE_SECONDS, self._process.resume)
            self._timer.daemon = True
            self._timer.start()

    def close(self) -> None:
        """Resume the garbage collector permanently."""
        with self._lock:
            self._timer.cancel()
            self._process.resume()
