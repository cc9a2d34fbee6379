"""Tests that a mistake in a data file never causes a traceback: the file is accepted, or rejected with one line."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.data import folder
from conformance.errors import UsageError
from conformance.validate import VALIDATORS

WRONG = ("absent", None, True, 1, -1, 1.5, "", "x", "1.5", [], {}, {"a": "b"}, ["a"])
"""Values that replace a valid one."""
SAMPLE = 60
"""Number of changes that are tried for each kind of file."""
SMALL = 6_000
"""Limit in bytes. Larger files are the project's own and take a second to read; files that users write are smaller."""


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value below the root."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*at, key)
        yield from places(item, (*at, key))


def changed(value: Any, at: tuple[Any, ...], wrong: Any) -> Any:
    """Return a copy of a value with `wrong` at one place, or without that place."""
    root = copy.deepcopy(value)
    parent = root
    for step in at[:-1]:
        parent = parent[step]
    if wrong == "absent":
        del parent[at[-1]]
    else:
        parent[at[-1]] = wrong
    return root


def small() -> Iterator[tuple[Path, Callable[[Path], object]]]:
    """Yield the smallest file of each kind, and the function that reads it."""
    for place, pattern, load in VALIDATORS:
        source = min(folder(place).glob(pattern), key=lambda path: path.stat().st_size)
        if source.stat().st_size < SMALL:
            yield source, load


@pytest.mark.parametrize(("source", "load"), list(small()), ids=lambda one: one.stem if isinstance(one, Path) else "")
def test_a_changed_file_is_refused_in_one_line_or_accepted(
    tmp_path: Path, source: Path, load: Callable[[Path], object]
) -> None:
    documents = list(yaml.load_all(source.read_text("utf-8"), Loader=yaml.CSafeLoader))
    changes = [(at, wrong) for at in places(documents) if len(at) > 1 for wrong in WRONG]
    for at, wrong in random.Random(7).sample(changes, min(SAMPLE, len(changes))):
        path = tmp_path / source.name
        path.write_text(yaml.dump_all(changed(documents, at, wrong), Dumper=yaml.CSafeDumper), "utf-8")
        try:
            load(path)
        except UsageError as error:
            assert "\n" not in str(error), (at, wrong)
        except Exception as error:
            pytest.fail(f"{at} = {wrong!r}: {error!r}")
