"""The collected tests of a worker, for a controlling process that does not collect tests itself."""

from __future__ import annotations

import msgspec

MARK = "collected "


class Collected(msgspec.Struct, frozen=True):
    """The tests of a run. `plan`: test → the ids that it declares; `groups`: pytest's node id → the scene of the test;
    `alone`: the scenes that are played alone; `elsewhere`: see `RunStarted`; `refused`: the reason why nothing is run,
    if any."""

    plan: dict[str, tuple[str, ...]]
    groups: dict[str, str]
    alone: tuple[str, ...]
    elsewhere: dict[str, int]
    refused: str = ""


def encoded(collection: Collected) -> str:
    """Return a collection as a message to the controlling process, distinguishable from events."""
    return MARK + msgspec.json.encode(collection).decode()


def decoded(message: str) -> Collected:
    """Decode a collection from a message that `encoded` returned."""
    return msgspec.json.decode(message.removeprefix(MARK), type=Collected)
