"""Two runs of a scenario side by side: one without the fault, and one with it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from conformance.history.query import History
from conformance.history.summary import state
from conformance.nemesis import names
from conformance.nemesis.normal_form import IGNORED

MAX_ROWS = 40
"""Maximum number of rows before, and from, the first deviation."""
_NODE = re.compile(r" on \S+$")


@dataclass(frozen=True)
class ObjectChange:
    """One change of an object, `at` seconds after the start of the run."""

    at: float
    text: str


@dataclass(frozen=True)
class ChangeRow:
    """A change that occurs at this place in both runs, or in only one. `deviates`: the change occurs more often in this
    run than in the other. `first`: this is the first row that deviates."""

    without: ObjectChange | None
    with_fault: ObjectChange | None
    deviates: bool = False
    first: bool = False


def changes(history: History) -> list[ObjectChange]:
    """Return the visible changes of a run, with names that do not depend on the run. Equal consecutive states of an
    object count as one change."""
    records = [record for record in history.records() if record.resource not in IGNORED and record.namespace]
    start = records[0].at if records else 0.0
    visible_changes: list[ObjectChange] = []
    latest_states: dict[tuple[str, str], str] = {}
    for record in records:
        state_text = _NODE.sub(" on a node", state(record))
        if latest_states.get((record.resource, record.name)) != state_text:
            latest_states[record.resource, record.name] = state_text
            name = names.stable_name(record.name, history.namespace)
            visible_changes.append(ObjectChange(record.at - start, f"{record.resource}/{name}: {state_text}"))
    return visible_changes


def side_by_side(without: Sequence[ObjectChange], with_fault: Sequence[ObjectChange]) -> list[ChangeRow]:
    """Return both runs aligned, with the rows around the first deviation. A change that only occurs in a different
    order is not a deviation."""
    texts = [change.text for change in without], [change.text for change in with_fault]
    extra_counts = Counter(texts[0]) - Counter(texts[1]), Counter(texts[1]) - Counter(texts[0])
    rows: list[ChangeRow] = []
    for kind, begin, end, other_begin, other_end in SequenceMatcher(None, *texts, autojunk=False).get_opcodes():
        if kind == "equal":
            rows += [
                ChangeRow(*pair) for pair in zip(without[begin:end], with_fault[other_begin:other_end], strict=True)
            ]
        else:
            rows += [ChangeRow(change, None, extra_counts[0][change.text] > 0) for change in without[begin:end]]
            rows += [
                ChangeRow(None, change, extra_counts[1][change.text] > 0)
                for change in with_fault[other_begin:other_end]
            ]
    first_deviation = next((index for index, row in enumerate(rows) if row.deviates), None)
    if first_deviation is None:
        return rows[:MAX_ROWS]
    rows[first_deviation] = replace(rows[first_deviation], first=True)
    return rows[max(0, first_deviation - MAX_ROWS) : first_deviation + MAX_ROWS]
