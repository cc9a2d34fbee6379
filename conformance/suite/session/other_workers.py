"""The other workers of a run: a scene that is played alone waits until they have ended. The controlling process
knows."""

from __future__ import annotations

from typing import Protocol

LAST_WORKER = "alone"
"""The message with which a worker asks to be the only one, and the answer to it."""


class ControllerChannel(Protocol):
    """A line to the process that controls the run: a channel of execnet."""

    def send(self, item: object) -> None:
        """Send an event, or a question. Raises OSError if the line is closed."""

    def receive(self) -> object:
        """Block until an answer comes. Raises EOFError if the line is closed."""


def wait_until_ended(line: ControllerChannel | None) -> None:
    """Return once no worker of the run but this one is left. Without a line there are no workers."""
    if line is not None:
        line.send(LAST_WORKER)
        line.receive()
