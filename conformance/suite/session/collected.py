"""The collected tests of a worker, for a controlling process that does not collect tests itself."""

from __future__ import annotations

import msgspec

MARK = "collected "


class Collected(msgspec.Struct, frozen=True):
    """The tests of a run. `plan` has the ids that each declares; `groups` the scene of each, by pytest's node id;
    `alone` the scenes that are played alone; `elsewhere` see `RunStarted`. `refused`: why nothing is run."""

    plan: dict[str, tuple[str, ...]]
    groups: dict[str, str]
    alone: tuple[str, ...]
    elsewhere: dict[str, int]
    refused: str = ""


def encoded(collection: Collected) -> str:
    """Return it as a message that is no event."""
    return MARK + msgspec.json.encode(collection).decode()


def decoded(message: str) -> Collected:
    """Return it from such a message."""
    return msgspec.json.decode(message.removeprefix(MARK), type=Collected)
