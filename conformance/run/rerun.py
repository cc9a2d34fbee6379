"""A rerun of the tests that did not pass in an earlier run, according to that run's ledger, which even a killed run
leaves behind."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from conformance import bounded
from conformance.errors import UsageError
from conformance.suggestions import find_nearest
from conformance.suite.outcomes import ledger, ledger_file
from conformance.suite.settings import RunSettings, decoded

OPTION = "--rerun-failed"


def settings_of(run: str, report_dir: Path) -> RunSettings:
    """Return the settings of an earlier run, given by its folder or its id, reduced to the tests that did not pass.
    Raises UsageError if there is no such run, or if all its tests have passed."""
    folder = next(
        (directory for directory in (Path(run), report_dir / run) if (directory / "run.json").is_file()), None
    )
    if folder is None:
        suggestion = find_nearest(run, [directory.parent.name for directory in report_dir.glob("*/run.json")])
        hint = (
            f'did you mean "{suggestion}"?'
            if suggestion
            else f"give the folder of a run, or the id of one in {report_dir}"
        )
        raise UsageError(f"{run}: no such run", where=OPTION, hint=hint)
    path, hint = folder / "run.json", "give a run of this version of the suite"
    problem = f"{path} cannot be read"
    settings = bounded.decode_line(
        decoded, bounded.content(path, bounded.MAX_BYTES, str(path)), OPTION, problem=problem, hint=hint
    )
    tests = find_unpassed_tests(ledger_file.read(folder / "ledger"), frozenset(settings.expected))
    if not tests:
        raise UsageError(
            f"nothing is left to run: every test of {folder} has passed", where=OPTION, hint="leave it out"
        )
    return msgspec.structs.replace(settings, only=tests, shard="", part=(), pytest_options=())


def find_unpassed_tests(events: Iterable[ledger.AnyEvent], expected: frozenset[str]) -> tuple[str, ...]:
    """Return the planned tests that failed, were blocked by the implementation, or have no outcome. Tests that failed
    only as expected are not included. Pure function."""
    planned_tests: set[str] = set()
    failed_ids: dict[str, set[str]] = {}
    passed_tests: set[str] = set()
    for event in events:
        match event:
            case ledger.RunStarted():
                planned_tests |= {test.test for test in event.plan}
            case ledger.Check() if event.outcome == "failed":
                failed_ids.setdefault(event.test, set()).add(event.id)
            case ledger.TestFinished():
                as_expected = event.outcome == "failed" and failed_ids.get(event.test, set()) <= expected
                is_circumstantial = event.outcome == "blocked" and event.cause == "circumstances"
                if event.outcome in ("passed", "known-limit") or as_expected or is_circumstantial:
                    passed_tests.add(event.test)
            case _:
                pass
    return tuple(sorted(planned_tests - passed_tests))
