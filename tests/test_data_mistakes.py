"""Tests that a mistake in a data file never causes a traceback. The file is either accepted or rejected with one
line."""

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

WRONG_VALUES = ("absent", None, True, 1, -1, 1.5, "", "x", "1.5", [], {}, {"a": "b"}, ["a"])
"""Values that replace a valid value."""
SAMPLE_SIZE = 60
"""The number of changes that are tried for each kind of file."""
MAX_FILE_BYTES = 6_000
"""The maximum size of a tested file. Larger files are the project's own and take a second to read; files that users
write are smaller."""


def value_paths(value: Any, value_path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value below the root."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*value_path, key)
        yield from value_paths(item, (*value_path, key))


def with_change(value: Any, value_path: tuple[Any, ...], new_value: Any) -> Any:
    """Return a copy of a value in which `new_value` replaces the value at a path, or the path is absent."""
    root = copy.deepcopy(value)
    parent = root
    for step in value_path[:-1]:
        parent = parent[step]
    if new_value == "absent":
        del parent[value_path[-1]]
    else:
        parent[value_path[-1]] = new_value
    return root


def smallest_files() -> Iterator[tuple[Path, Callable[[Path], object]]]:
    """Yield the smallest file of each kind, and the function that reads it."""
    for place, pattern, load in VALIDATORS:
        source = min(folder(place).glob(pattern), key=lambda path: path.stat().st_size)
        if source.stat().st_size < MAX_FILE_BYTES:
            yield source, load


@pytest.mark.parametrize(
    ("source", "load"),
    list(smallest_files()),
    ids=lambda parameter: parameter.stem if isinstance(parameter, Path) else "",
)
def test_a_changed_file_is_accepted_or_rejected_in_one_line(
    tmp_path: Path, source: Path, load: Callable[[Path], object]
) -> None:
    documents = list(yaml.load_all(source.read_text("utf-8"), Loader=yaml.CSafeLoader))
    changes = [
        (value_path, new_value)
        for value_path in value_paths(documents)
        if len(value_path) > 1
        for new_value in WRONG_VALUES
    ]
    for value_path, new_value in random.Random(7).sample(changes, min(SAMPLE_SIZE, len(changes))):
        path = tmp_path / source.name
        path.write_text(yaml.dump_all(with_change(documents, value_path, new_value), Dumper=yaml.CSafeDumper), "utf-8")
        try:
            load(path)
        except UsageError as error:
            assert "\n" not in str(error), (value_path, new_value)
        except Exception as error:
            pytest.fail(f"{value_path} = {new_value!r}: {error!r}")
