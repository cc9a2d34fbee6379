"""The failure bundle: everything about a failed test that is worth keeping, in one folder with an index."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from conformance.cluster.nodes import POOL
from conformance.evidence import events, picture, timeline
from conformance.history import redaction
from conformance.history.query import History
from conformance.suite.checks import brief
from conformance.suite.ledger import Check

MOST_LOG = 2_000_000
"""Bytes of a log that are kept: its end."""
INDEX, PICTURE = "README.md", "timeline.svg"
MEANING = {
    PICTURE: "the picture: each gang and pod on one time axis, with the failed checks (any browser shows it)",
    "timeline.txt": "every object of the test with its states and their instants, and the failed checks",
    "events.txt": "the events of the namespace: what schedulers and controllers said of it",
    "objects.yaml": "what existed in the end",
    "checks.yaml": "what was judged, with expected and seen values",
    "history.jsonl": "every watch event of the test's namespace and nodes, byte for byte but for the data of Secrets",
    "reproduce.txt": "the command that runs the test again, and how to see it by hand",
    "manifests": "what the test wrote, in order",
    "logs": "what the implementation's processes said during the test",
    "logs/cluster": "what the cluster's own components said during the test",
}
"""Files and folders of a bundle, the most telling ones first."""


def write(
    folder: Path,
    *,
    test: str,
    checks: Sequence[Check],
    history: History,
    made: Sequence[tuple[str, Mapping[str, Any]]],
    logs: Mapping[str, tuple[Path, int]],
    reproduce: Iterable[str],
    steps: Sequence[tuple[float, str]] = (),
) -> None:
    """Writes a bundle; of one that is there already, what was judged is written again. `logs`: name → file and the
    offset at which the test began; `steps`: the moments of a scene's steps."""
    if not folder.exists():
        _recorded(folder, history, made, logs)
    failed = [check for check in checks if check.outcome != "passed"]
    marks = [(c.at, f"{c.id} {c.outcome}: {c.what}") for c in failed if c.at is not None]
    marks += [(at, f'step "{name}"') for at, name in steps]
    (folder / "timeline.txt").write_text(timeline.render(history, marks) + "\n", encoding="utf-8")
    drawn = picture.draw(history, [(c.at, _sentence(c)) for c in failed], test, POOL, steps)
    (folder / PICTURE).write_text(drawn, encoding="utf-8")
    _dump(folder / "checks.yaml", [msgspec.to_builtins(check) for check in checks])
    commands = list(reproduce)
    (folder / "reproduce.txt").write_text("\n".join(commands) + "\n", encoding="utf-8")
    (folder / INDEX).write_text(_index(folder, test, failed, commands), encoding="utf-8")


def _recorded(
    folder: Path,
    history: History,
    made: Sequence[tuple[str, Mapping[str, Any]]],
    logs: Mapping[str, tuple[Path, int]],
) -> None:
    """Writes what is the same whatever was judged."""
    folder.mkdir(parents=True)
    history.save(folder / "history.jsonl")
    if told := events.render(history):
        (folder / "events.txt").write_text(told, encoding="utf-8")
    view = history.view()
    objects = [obj for resource in view.resources() if resource != "events" for obj in view.list(resource)]
    _dump(folder / "objects.yaml", objects, many=True)
    for number, (word, body) in enumerate(made, 1):
        words = f"{word} {body.get('kind', '')} {body.get('metadata', {}).get('name', '')}"
        name = re.sub(r"[^A-Za-z0-9]+", "-", words).strip("-").lower()[:80]
        shown = redaction.secret(body) if " secrets/" in word else redaction.value(body)
        _dump(folder / "manifests" / f"{number:02d}-{name}.yaml", shown)
    for name, (log, offset) in logs.items():
        with contextlib.suppress(FileNotFoundError):
            copy_log(log, offset, folder / "logs" / f"{name}.log")


def _index(folder: Path, test: str, failed: Sequence[Check], commands: Sequence[str]) -> str:
    """What failed, how to see it again, and every file of the bundle."""
    lines = [f"# {test}", "", *(f"- {_plain(_sentence(check))}" for check in failed)]
    lines += ["", "```sh", *commands, "```", "", "| file | what it is |", "|---|---|"]
    found = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    order = list(MEANING)
    known = {name: name if name in MEANING else str(Path(name).parent) for name in found if name != INDEX}
    ordered = sorted(known, key=lambda name: (order.index(known[name]) if known[name] in order else len(order), name))
    lines += [f"| [{name}]({name}) | {MEANING.get(known[name], '')} |" for name in ordered]
    return "\n".join(lines) + "\n"


def _sentence(check: Check) -> str:
    """A failed check in one line."""
    if isinstance(check.seen, str) and check.seen.startswith(check.id):  # a verdict, which says it all
        return brief(check.seen)
    expected = "" if check.expected in (None, check.what) else f": expected {brief(check.expected, 120)}"
    seen = f", seen {brief(check.seen, 240)}" if expected else f": {brief(check.seen, 300)}"
    return f"{check.id} {check.outcome}: {check.what}{expected}{seen}"


def _plain(words: str) -> str:
    """Words of an implementation must not become Markdown or control anything."""
    return re.sub(r"([\\`*_<>\[\]|])", r"\\\1", "".join(c if c.isprintable() else "�" for c in words))


def _dump(path: Path, value: Any, *, many: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        if many:
            yaml.dump_all(value, file, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
        else:
            yaml.dump(value, file, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)


def copy_log(log: Path, offset: int, to: Path) -> None:
    """Copies what stands behind `offset`, at most the last `MOST_LOG` bytes, without tokens. Raises
    FileNotFoundError."""
    with log.open("rb") as file:
        end = file.seek(0, 2)
        file.seek(max(offset if offset <= end else 0, end - MOST_LOG))
        window = file.read()
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_bytes(redaction.words(window))
