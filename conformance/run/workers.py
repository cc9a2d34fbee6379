"""The workers of a run, each with a channel to this process. What the workers send is written to the ledger.

No other program can change what is sent through a pipe, whereas it could change a file.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from conformance.suite import plugin
from conformance.suite.outcomes.ledger import WorkerEnded
from conformance.suite.outcomes.ledger_file import RunLedger
from conformance.suite.session import other_workers, shared
from conformance.suite.session.collected import MARK, Collected, decoded
from conformance.suite.settings import RunSettings


class Workers:
    """The running workers. Some of them wait until they are the last one."""

    def __init__(self, settings: RunSettings, run_ledger: RunLedger, collected: Callable[[Collected], None]) -> None:
        self._settings, self._run_ledger, self._collected = msgspec.json.encode(settings), run_ledger, collected
        self._lock = threading.Lock()
        self._channels: dict[str, other_workers.ControllerChannel] = {}
        self._waiting_workers: set[str] = set()
        self._running_message = ""
        """The programs that the first worker has started on a shared cluster, as that worker reported; empty until it
        has."""
        self._asking_workers: set[str] = set()
        """Workers that have asked which programs are running and have had no reply yet."""

    def add(self, name: str, channel: Any, worker_input: dict[str, Any]) -> None:
        """Listen to a new worker. `worker_input` is the input of the worker: its channel and the settings of the run
        are added to it."""
        worker_input[plugin.CHANNEL], worker_input[plugin.SETTINGS] = channel, self._settings
        with self._lock:
            self._channels[name] = channel
        channel.setcallback(partial(self.take, name), endmarker=None)

    def take(self, name: str, message: object) -> None:
        """Process a message from a worker; None means that its channel is closed."""
        has_ended = message is None
        if isinstance(message, bytes):
            has_ended = isinstance(self._run_ledger.append_encoded(message), WorkerEnded)
        elif isinstance(message, str) and message.startswith(MARK):
            self._collected(decoded(message))
        with self._lock:
            if message == other_workers.LAST_WORKER:
                self._waiting_workers.add(name)
            if message == shared.QUESTION:
                self._asking_workers.add(name)
            if isinstance(message, str) and message.startswith(shared.REPLY_PREFIX):
                self._running_message = message
            if has_ended:
                self._channels.pop(name, None)
                if name == shared.FIRST_WORKER:
                    self._running_message = shared.encoded(
                        shared.RunningImplementation(problem="the worker that started it has ended")
                    )
            if self._running_message:
                for worker in self._asking_workers:
                    self._send(worker, self._running_message)
                self._asking_workers.clear()
            if len(self._channels) == 1 and (last_worker := next(iter(self._channels))) in self._waiting_workers:
                self._waiting_workers.remove(last_worker)
                self._send(last_worker, other_workers.LAST_WORKER)

    def _send(self, name: str, message: str) -> None:
        with contextlib.suppress(OSError, KeyError):  # the worker has ended as well
            self._channels[name].send(message)
