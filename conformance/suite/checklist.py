"""The checks that each test makes of each requirement when it runs to its end (`checklist.yaml`).

A test that ends early may have made some checks of a requirement but not the decisive ones. The list tells which are
missing. It is written from runs in which the tests passed (`grove-conformance checklist RUN`), never by hand.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml

from conformance.suite.ledger import AnyEvent, Check, RunStarted, TestFinished
from conformance.suite.repeated import unmarked
from conformance.suite.selection import INVARIANT

FILE = Path(__file__).parent / "checklist.yaml"
HEAD = """\
# Which checks each test makes of each requirement when it comes to its end. Do not edit: `make checklist` writes it.
"""
UNKNOWN = "(the checks of this test are not known: run `make checklist`)"

Checklist = Mapping[str, Mapping[str, Mapping[str, int]]]
"""Test → requirement → its checks by name, each with how often it is made."""


def load(path: Path = FILE) -> Checklist:
    """Read the list."""
    found = yaml.load(path.read_text("utf-8"), yaml.CSafeLoader) or {}
    return dict(found)


def stable(what: str) -> str:
    """Return the name of a check without the parts that differ between runs: the random end of a pod's name, and
    numbers."""
    return re.sub(r"\d+(\.\d+)?", "#", re.sub(r"-[a-z0-9]{5}\b", "-*", what))


def missing(known: Mapping[str, int] | None, made: Iterable[str]) -> tuple[str, ...]:
    """Return the known checks that were not made, or `UNKNOWN` if no checks of the requirement are known."""
    if known is None:
        return (UNKNOWN,)
    tally = Counter(map(stable, made))
    return tuple(name for name, times in known.items() if tally[name] < times)


def of_run(events: Iterable[AnyEvent]) -> Checklist:
    """Return the checks of those tests of a run that passed."""
    listed = list(events)
    repeat = next((event.repeat for event in listed if isinstance(event, RunStarted)), 1)
    passed = {unmarked(e.test, repeat): e.test for e in listed if isinstance(e, TestFinished) and e.outcome == "passed"}
    names = {marked: test for test, marked in passed.items()}  # of repeated tests the last one
    found: dict[str, dict[str, dict[str, int]]] = {test: {} for test in passed}
    for event in listed:
        if isinstance(event, Check) and event.test in names and not event.id.startswith(INVARIANT):
            checks = found[names[event.test]].setdefault(event.id, {})
            checks[stable(event.what)] = checks.get(stable(event.what), 0) + 1
    return found


def merged(old: Checklist, new: Checklist, declared: Mapping[str, Iterable[str]]) -> Checklist:
    """Return `old` updated with `new`, without tests that no longer exist and requirements that they no longer declare.
    A run of selected requirements leaves the entries of all others as they are."""
    whole = {test: {**old.get(test, {}), **new.get(test, {})} for test in {*old, *new}}
    return {
        test: {id: checks for id, checks in sorted(ids.items()) if id in declared[test]}
        for test, ids in sorted(whole.items())
        if test in declared
    }


def differing(one: Checklist, other: Checklist) -> list[str]:
    """Return the tests and requirements whose checks differ."""
    return [
        f"{test}: {id}"
        for test in sorted({*one, *other})
        for id in sorted({*one.get(test, {}), *other.get(test, {})})
        if one.get(test, {}).get(id) != other.get(test, {}).get(id)
    ]


def tests_of(found: Checklist, id: str) -> list[str]:
    """Return the tests that judge a requirement."""
    return [test for test, ids in found.items() if id in ids]


def render(found: Checklist) -> str:
    """Return the checklist as YAML."""
    body = yaml.dump(dict(found), Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=1000)
    return HEAD + body
