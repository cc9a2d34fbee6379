"""Combine runs into one: the shards of a run, or runs with different selections, of one implementation by one suite.
Pure.

The events of all runs are judged as if they belonged to one run, so the verdict is that of a run with all their tests.
No failure is forgiven: if two runs have the same test, the worse outcome counts.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from conformance.errors import UsageError
from conformance.suite.outcomes.ledger import (
    AnyEvent,
    HarnessFault,
    PlannedTest,
    RunFinished,
    RunStarted,
    TestFinished,
)

PART_FIELDS = frozenset(
    {"wall", "run", "plan", "workers", "profiles", "ids", "only", "shard", "elsewhere", "reproduce", "environment"}
)
"""Fields of `RunStarted` that may differ between runs that are combined."""
HOST_KEYS = frozenset({"cpus", "python", "platform"})
"""Keys of the environment that may differ between these runs."""
_SELECTION_OPTIONS = ("--profile", "--id")
_OUTCOMES_WORST_FIRST = ("failed", "blocked", "harness-error", "interrupted", "known-limit", "passed")


@dataclass(frozen=True)
class PartialRun:
    """One of the runs to combine: the path that error messages show for it, its RunStarted event, and all its
    events."""

    place: str
    started: RunStarted
    events: Sequence[AnyEvent]

    @property
    def folder(self) -> str:
        """Return the folder of its bundles in the combined run."""
        return f"bundles/{self.started.run}"


def partial_run(place: str, events: Sequence[AnyEvent]) -> PartialRun:
    """Return a run with its RunStarted event. Raises UsageError if the ledger has none."""
    started = next((event for event in events if isinstance(event, RunStarted)), None)
    if started is None:
        raise UsageError("its ledger does not have the beginning of a run", where=place, hint="leave it out")
    return PartialRun(place, started, events)


def combine(parts: Sequence[PartialRun]) -> list[AnyEvent]:
    """Return the events of the combined run. Raises UsageError if the runs do not belong together."""
    first = parts[0]
    for other in parts[1:]:
        _check(first, other)
    _check_selections(parts)
    _check_shards(parts)
    start_event = _combined_start([run.started for run in parts])
    events: list[AnyEvent] = [start_event]
    for number, run in enumerate(parts, 1):
        events += (_renamed(event, number, run) for event in run.events if not isinstance(event, _RUN_EVENTS))
    events += (HarnessFault(wall=start_event.wall, worker="run", what=problem) for problem in _missing_shards(parts))
    if (end := _combined_end(parts)) is not None:
        events.append(end)
    return sorted(_without_duplicates(events), key=lambda event: event.wall)


_RUN_EVENTS = (RunStarted, RunFinished)


def _check(first: PartialRun, other: PartialRun) -> None:
    """Raise UsageError unless two runs judge the same implementation with the same suite and settings."""
    for field in RunStarted.__struct_fields__:
        if field in PART_FIELDS:
            continue
        first_value, other_value = getattr(first.started, field), getattr(other.started, field)
        if first_value == other_value:
            continue
        if field == "implementation":
            name = next(f for f in first_value.__struct_fields__ if getattr(first_value, f) != getattr(other_value, f))
            field_name = f"{_in_words(name)} of the implementation"
            first_value, other_value = getattr(first_value, name), getattr(other_value, name)
        else:
            field_name = _in_words(field)
        raise _mismatch(first, other, field_name, first_value, other_value)
    first_value, other_value = (
        {k: v for k, v in p.started.environment.items() if k not in HOST_KEYS} for p in (first, other)
    )
    for name in sorted(first_value.keys() | other_value.keys()):
        if first_value.get(name) != other_value.get(name):
            raise _mismatch(first, other, name, first_value.get(name, "none"), other_value.get(name, "none"))
    first_value, other_value = (_options(run.started.reproduce) for run in (first, other))
    if first_value != other_value:
        missing = (
            [word for word in first_value if word not in other_value],
            [word for word in other_value if word not in first_value],
        )
        raise _mismatch(first, other, "option", *(shlex.join(words) or "none" for words in missing))
    if first.started.run == other.started.run:
        raise UsageError("was given twice", where=other.place, hint="leave one of them out")


def _mismatch(
    first: PartialRun, other: PartialRun, field_name: str, first_value: object, other_value: object
) -> UsageError:
    message = (
        f"does not belong to {first.place}: the {field_name} is {_brief(other_value)}, and there {_brief(first_value)}"
    )
    hint = "give all runs the same --seed" if field_name == "seed" else "combine runs of one implementation and suite"
    return UsageError(message, where=other.place, hint=hint)


def _in_words(field: str) -> str:
    return field.replace("_", " ")


def _brief(value: object) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= 40 else text[:39] + "…"


def _check_selections(parts: Sequence[PartialRun]) -> None:
    """Raise UsageError if some runs select requirements by id and other runs select whole profiles, because no single
    run could select both."""
    first = parts[0]
    for other in parts[1:]:
        if bool(other.started.ids) != bool(first.started.ids):
            problem = f"does not belong to {first.place}: only one of them selects requirements by their ids"
            raise UsageError(problem, where=other.place, hint="combine runs of profiles, or runs of ids")
        if other.started.ids and bool(other.started.profiles) != bool(first.started.profiles):
            problem = f"does not belong to {first.place}: only one of them selects profiles beside ids"
            raise UsageError(problem, where=other.place, hint="give both the same options")


# -- shards ----------------------------------------------------------------------------------------------------------


def _check_shards(parts: Sequence[PartialRun]) -> None:
    """Raise UsageError unless all shards belong to the same run and each is given once."""
    by_shard: dict[str, PartialRun] = {}
    shards = [run for run in parts if run.started.shard]
    for run in shards:
        shard, count = run.started.shard, run.started.shard.partition("/")[2]
        if count != shards[0].started.shard.partition("/")[2] or len(shards) != len(parts):
            problem = f"is shard {shard}, and others are no shards, or shards of another number"
            raise UsageError(problem, where=run.place, hint="combine the shards of one run alone")
        if shard in by_shard:
            problem = f"is shard {shard}, as is {by_shard[shard].place}"
            raise UsageError(problem, where=run.place, hint="leave one of them out")
        if _selection(run.started) != _selection(shards[0].started):
            problem = f"selects other requirements than {shards[0].place}"
            raise UsageError(problem, where=run.place, hint="combine the shards of one run alone")
        by_shard[shard] = run


def _missing_shards(parts: Sequence[PartialRun]) -> Iterator[str]:
    """Yield one line for each shard that was not given."""
    given_shards = {run.started.shard for run in parts}
    for count in {shard.partition("/")[2] for shard in given_shards if shard}:
        for number in range(1, int(count) + 1):
            if f"{number}/{count}" not in given_shards:
                yield f"shard {number}/{count} is missing"


# -- events ----------------------------------------------------------------------------------------------------------


def _selection(started: RunStarted) -> tuple[tuple[str, ...], ...]:
    return started.profiles, started.ids, started.only


def _combined_start(starts: Sequence[RunStarted]) -> RunStarted:
    """Return the RunStarted event of the combined run, whose selection is the union of the runs' selections."""
    first_start = starts[0]
    selects_everything = not all(start.profiles or start.ids for start in starts)
    profiles = () if selects_everything else _union(start.profiles for start in starts)
    ids = _union(start.ids for start in starts)
    only = _union(start.only for start in starts) if all(start.only for start in starts) else ()
    plan: dict[str, set[str]] = {}
    for start in starts:
        for test in start.plan:
            plan.setdefault(test.test, set()).update(test.ids)
    names = {name for start in starts for name in start.environment}
    return msgspec.structs.replace(
        first_start,
        wall=min(start.wall for start in starts),
        run="+".join(start.run for start in starts),
        profiles=profiles,
        ids=ids,
        only=only,
        shard="",
        elsewhere=_tests_elsewhere(starts, plan),
        plan=tuple(PlannedTest(test, tuple(sorted(ids))) for test, ids in sorted(plan.items())),
        workers=sum(start.workers for start in starts),
        reproduce=_with_selection(first_start.reproduce, profiles, ids),
        environment={n: ", ".join(_union((e.environment[n],) for e in starts if n in e.environment)) for n in names},
    )


def _tests_elsewhere(starts: Sequence[RunStarted], plan: Mapping[str, Collection[str]]) -> dict[str, int]:
    """Return how many tests outside the combined plan would judge each invariant. The shards of a run all leave out the
    same tests. Other runs may have run tests that one of them left out."""
    first = starts[0]
    if first.shard:
        return first.elsewhere
    planned_here = Counter(id for ids in plan.values() for id in ids)
    totals: Counter[str] = Counter()
    for start in starts:
        planned = Counter(id for test in start.plan for id in test.ids)
        for id, additional in start.elsewhere.items():
            totals[id] = max(totals[id], planned[id] + additional)
    return {id: totals[id] - planned_here[id] for id in sorted(totals) if totals[id] > planned_here[id]}


def _with_selection(command: str, profiles: Iterable[str], ids: Iterable[str]) -> str:
    """Return a command line with its selection replaced."""
    words = shlex.split(command)
    remaining = [
        word
        for previous_word, word in zip(["", *words], words, strict=False)
        if word not in _SELECTION_OPTIONS and previous_word not in _SELECTION_OPTIONS
    ]
    for option, names in zip(_SELECTION_OPTIONS, (profiles, ids), strict=True):
        for name in names:
            remaining += [option, name]
    return shlex.join(remaining)


def _options(command: str) -> list[str]:
    """Return a command line without its program and its selection, that is, the options that must agree."""
    return shlex.split(_with_selection(command, (), ()))[1:]


def _combined_end(parts: Sequence[PartialRun]) -> RunFinished | None:
    """Return the RunFinished event of the combined run; None if one of the runs was killed."""
    ends = [next((e for e in run.events if isinstance(e, RunFinished)), None) for run in parts]
    finished = [end for end in ends if end is not None]
    if len(finished) < len(ends):
        return None
    return RunFinished(
        wall=max(end.wall for end in finished),
        interrupted=any(end.interrupted for end in finished),
        status=max(end.status for end in finished),
    )


def _renamed(event: AnyEvent, number: int, partial_run: PartialRun) -> AnyEvent:
    """Return an event as an event of the combined run, with the names of workers and bundles made unique by run."""
    changes: dict[str, Any] = {}
    worker = getattr(event, "worker", "")
    if worker and worker != "run":
        changes["worker"] = f"{number}-{worker}"
    if isinstance(event, TestFinished) and event.bundle:
        changes["bundle"] = partial_run.folder + "/" + event.bundle.removeprefix("bundles/")
    return msgspec.structs.replace(event, **changes) if changes else event


def _without_duplicates(events: Iterable[AnyEvent]) -> Iterator[AnyEvent]:
    """Yield the events; if a test has several TestFinished events, yield only the worst."""
    ends: dict[str, TestFinished] = {}
    for event in events:
        if not isinstance(event, TestFinished):
            yield event
        elif event.test not in ends or _severity(event) < _severity(ends[event.test]):
            ends[event.test] = event
    yield from ends.values()


def _severity(end: TestFinished) -> tuple[int, bool]:
    """Return a sort key that puts the worst TestFinished event of a test first."""
    return _OUTCOMES_WORST_FIRST.index(end.outcome), end.cause != "implementation"


def _union(groups: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(sorted({item for group in groups for item in group}))
