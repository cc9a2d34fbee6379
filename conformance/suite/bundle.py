"""The failure bundle: everything about a failed test that is worth keeping, in one folder.

checks.yaml      what was judged            history.jsonl  every watch event, byte for byte
timeline.txt     the same for people        objects.yaml   what existed at the end
manifests/       what the test wrote        logs/          the implementation's words during the test
reproduce.txt    the command that runs it again
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from conformance.history import timeline
from conformance.history.query import History
from conformance.suite.ledger import Check

MOST_LOG = 2_000_000
"""Bytes of a log that are kept: its end."""


def write(
    folder: Path,
    *,
    checks: Sequence[Check],
    history: History,
    made: Sequence[tuple[str, Mapping[str, Any]]],
    logs: Mapping[str, tuple[Path, int]],
    reproduce: Iterable[str],
) -> None:
    """Writes a bundle. `logs`: name → file and the offset at which the test began."""
    folder.mkdir(parents=True, exist_ok=True)
    history.save(folder / "history.jsonl")
    marks = [(c.at, f"{c.id} {c.outcome}: {c.what}") for c in checks if c.outcome != "passed" and c.at is not None]
    (folder / "timeline.txt").write_text(timeline.render(history, marks) + "\n", encoding="utf-8")
    view = history.view()
    objects = [obj for resource in view.resources() if resource != "events" for obj in view.list(resource)]
    _dump(folder / "objects.yaml", objects, many=True)
    _dump(folder / "checks.yaml", [msgspec.to_builtins(check) for check in checks])
    for number, (word, body) in enumerate(made, 1):
        words = f"{word} {body.get('kind', '')} {body.get('metadata', {}).get('name', '')}"
        name = re.sub(r"[^A-Za-z0-9]+", "-", words).strip("-").lower()[:80]
        _dump(folder / "manifests" / f"{number:02d}-{name}.yaml", body)
    for name, (log, offset) in logs.items():
        with contextlib.suppress(FileNotFoundError):
            copy_log(log, offset, folder / "logs" / f"{name}.log")
    (folder / "reproduce.txt").write_text("\n".join(reproduce) + "\n", encoding="utf-8")


def _dump(path: Path, value: Any, *, many: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        if many:
            yaml.dump_all(value, file, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
        else:
            yaml.dump(value, file, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)


def copy_log(log: Path, offset: int, to: Path) -> None:
    """Copies what stands behind `offset`, at most the last `MOST_LOG` bytes. Raises FileNotFoundError."""
    with log.open("rb") as file:
        end = file.seek(0, 2)
        file.seek(max(offset if offset <= end else 0, end - MOST_LOG))
        window = file.read()
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_bytes(window)
