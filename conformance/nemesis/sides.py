"""Two runs of a scenario side by side: what happened without the fault, and with it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from conformance.history.query import History
from conformance.history.summary import state
from conformance.nemesis import names
from conformance.nemesis.normal_form import IGNORED

MOST = 40
"""Maximum number of rows before and after the first deviation."""
_NODE = re.compile(r" on \S+$")


@dataclass(frozen=True)
class Change:
    """One change of an object, `at` seconds after the run began."""

    at: float
    text: str


@dataclass(frozen=True)
class Row:
    """A change that both runs have, or that one of them has. `first`: whether it is the first that only one has."""

    without: Change | None
    with_fault: Change | None
    first: bool = False


def changes(history: History) -> list[Change]:
    """Return the changes of a run that show, with the names that every run has. Equal ones in a row are one."""
    records = [record for record in history.records() if record.resource not in IGNORED and record.namespace]
    begin = records[0].at if records else 0.0
    found: list[Change] = []
    latest: dict[tuple[str, str], str] = {}
    for record in records:
        words = _NODE.sub(" on a node", state(record))
        if latest.get((record.resource, record.name)) != words:
            latest[record.resource, record.name] = words
            name = names.stable(record.name, history.namespace)
            found.append(Change(record.at - begin, f"{record.resource}/{name}: {words}"))
    return found


def side_by_side(without: Sequence[Change], with_fault: Sequence[Change]) -> list[Row]:
    """Return both runs aligned, from some rows before the first deviation on."""
    matcher = SequenceMatcher(None, [each.text for each in without], [each.text for each in with_fault], autojunk=False)
    rows: list[Row] = []
    first = -1
    for what, begin, end, other, other_end in matcher.get_opcodes():
        if what == "equal":
            pairs = zip(without[begin:end], with_fault[other:other_end], strict=True)
            rows += [Row(one, another) for one, another in pairs]
            continue
        only = [Row(one, None) for one in without[begin:end]] + [Row(None, one) for one in with_fault[other:other_end]]
        if first < 0:
            first = len(rows)
            only[0] = Row(only[0].without, only[0].with_fault, first=True)
        rows += only
    at = max(first, 0)
    return rows[max(0, at - MOST) : at + MOST]
