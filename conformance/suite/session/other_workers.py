"""Wait for the other workers of a run: a scene that is played alone waits until they have ended. The controlling
process knows when they end."""

from __future__ import annotations

from typing import Protocol

LAST_WORKER = "alone"
"""The message with which a worker asks to be notified when it is the last one, and the reply to it."""


class ControllerChannel(Protocol):
    """A channel to the process that controls the run: a channel of execnet."""

    def send(self, item: object) -> None:
        """Send an event or a question. Raises OSError if the channel is closed."""

    def receive(self) -> object:
        """Block until a reply arrives. Raises EOFError if the channel is closed."""


def wait_until_ended(channel: ControllerChannel | None) -> None:
    """Block until this is the last worker of the run. Without a channel to the controlling process there are no other
    workers, so return at once."""
    if channel is not None:
        channel.send(LAST_WORKER)
        channel.receive()
