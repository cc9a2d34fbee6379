"""The failure bundle: a folder with the evidence of one failed test, and an index."""

from __future__ import annotations

import contextlib
import gzip
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
import yaml

from conformance import credentials, regular
from conformance.cluster.nodes import POOL
from conformance.evidence import picture, replay, timeline
from conformance.evidence.replay import WAIT, Act
from conformance.evidence.values import one_line
from conformance.grove.fields import text
from conformance.history import redaction
from conformance.history.query import History
from conformance.history.record import DELETED

MAX_LOG_BYTES = 100_000
"""Maximum size in bytes of a log that is copied unchanged. A longer log is compressed, and its end is also copied
uncompressed."""
MAX_TEXT_BYTES = 1_000_000
"""Size in bytes above which `objects.yaml` is compressed."""
MAX_READ_BYTES = 64 << 20
"""Maximum number of bytes that are read of a log. The logs of programs whose logs are truncated exceed this only for an
instant."""
INDEX, PICTURE, REPLAY, HISTORY = "README.md", "timeline.svg", "replay.sh", "history.jsonl.gz"
LEFT_OUT_NOTE = "Histories, objects and logs were left out: the bundles of this run had reached `--bundle-limit`."
DESCRIPTIONS = {
    PICTURE: "each gang and pod on one time axis, with the failed checks (open it in a browser)",
    "timeline.txt": "every object of the test with its states and their times, and the failed checks",
    "events.txt": "the events of the namespace, written by schedulers and controllers",
    "objects.yaml": "all objects that existed at the end",
    "checks.yaml": "all checks, with expected and seen values",
    HISTORY: "every watch event of the test's namespace and nodes, unchanged except for credentials",
    REPLAY: "what the test did, as kubectl commands, for a cluster without this suite",
    "reproduce.txt": "the command that runs the test again, and how to reproduce the failure by hand",
    "manifests": "the objects that the test wrote, in order",
    "neighbor": "the same of the scene's second namespace",
    "logs": "logs of the implementation's processes during the test; of a long one the end, and all of it as .gz",
    "logs/cluster": "logs of the cluster's own components during the test, likewise",
}
"""The files and folders of a bundle and their descriptions, the most useful ones first."""


class RecordedCheck(Protocol):
    """A check as the ledger records it, a msgspec struct. `at` is in seconds of the history, or None if the time is
    unknown."""

    @property
    def id(self) -> str:
        """The id of the requirement."""

    @property
    def what(self) -> str:
        """A description of the check."""

    @property
    def outcome(self) -> str:
        """`passed`, `failed` or `unknown`."""

    @property
    def expected(self) -> object:
        """The expected value."""

    @property
    def seen(self) -> object:
        """The observed value."""

    @property
    def at(self) -> float | None:
        """The time of the verdict."""


def write(
    folder: Path,
    *,
    test: str,
    checks: Sequence[RecordedCheck],
    history: History,
    acts: Sequence[Act],
    logs: Mapping[str, tuple[Path, int]],
    reproduce: Iterable[str],
    steps: Sequence[tuple[float, str]] = (),
    neighbor: History | None = None,
    include_large_files: bool = True,
) -> None:
    """Write a bundle. If the folder exists, only the files about checks are rewritten. Unless `include_large_files` is
    set, large files are left out: histories, objects and logs.

    `acts` are the requests of the test, `logs` maps a name to a log file and the offset in it at which the test
    started, `steps` are the steps of a scene with their times, and `neighbor` is the history of the scene's second
    namespace.
    """
    histories = {folder: history} | ({folder / "neighbor": neighbor} if neighbor is not None else {})
    if not folder.exists():
        for target, target_history in histories.items():
            target.mkdir(parents=True)
            if events := _events(target_history):
                _save(target / "events.txt", events)
            if include_large_files:
                _write_history(target, target_history)
        _write_requests(folder, acts, history.namespace)
        for name, (log, offset) in logs.items() if include_large_files else ():
            with contextlib.suppress(FileNotFoundError):
                copy_log(log, offset, folder / "logs" / f"{name}.log")
    failed_checks = [check for check in checks if check.outcome != "passed"]
    marks = [(c.at, f"{c.id} {c.outcome}: {c.what}") for c in failed_checks if c.at is not None]
    marks += [(at, f'step "{name}"') for at, name in steps]
    for target, target_history in histories.items():
        _save(target / "timeline.txt", timeline.render(target_history, marks) + "\n")
    svg = picture.draw(history, [(c.at, _description(c)) for c in failed_checks], test, POOL, steps)
    _save(folder / PICTURE, svg)
    _dump(folder / "checks.yaml", [msgspec.to_builtins(check) for check in checks])
    commands = list(reproduce)
    _save(folder / "reproduce.txt", "\n".join(commands) + "\n")
    _save(folder / INDEX, _index(folder, test, failed_checks, commands))


def _events(history: History) -> str:
    """Return the events of a namespace in the order in which they were received, one per line: `+1.301 Warning
    FailedScheduling Pod/x: 0/10 nodes are available … (scheduler)`."""
    lines = []
    for record in history.records("events"):
        if record.kind == DELETED:
            continue
        event = record.object
        subject = f"{text(event, 'regarding', 'kind')}/{text(event, 'regarding', 'name')}"
        reporter = text(event, "reportingController") or text(event, "deprecatedSource", "component")
        description = (
            f"{text(event, 'type')} {text(event, 'reason')} {subject}: {' '.join(text(event, 'note').split())}"
        )
        lines.append(f"+{record.at:.3f} {description}" + (f" ({reporter})" if reporter else ""))
    return "\n".join(lines) + "\n" if lines else ""


def _write_history(folder: Path, history: History) -> None:
    """Write the history of a namespace, and its objects at the end."""
    history.save(folder / HISTORY)
    view = history.view()
    objects = [
        redaction.value(obj) for resource in view.resources() if resource != "events" for obj in view.list(resource)
    ]
    path = folder / "objects.yaml"
    _dump(path, objects, several=True)
    if path.stat().st_size > MAX_TEXT_BYTES:
        _compress(path.with_name(f"{path.name}.gz"), path.read_bytes())
        path.unlink()


def _write_requests(folder: Path, acts: Sequence[Act], namespace: str) -> None:
    """Write the requests of the test, both as a script and as manifests."""
    redacted = [(word, redaction.secret(body) if " secrets/" in word else redaction.value(body)) for word, body in acts]
    _save(folder / REPLAY, replay.script(redacted, namespace))
    for number, (word, body) in enumerate((act for act in redacted if act[0] != WAIT), 1):
        title = f"{word} {body.get('kind', '')} {body.get('metadata', {}).get('name', '')}"
        name = re.sub(r"[^A-Za-z0-9]+", "-", title).strip("-").lower()[:80]
        _dump(folder / "manifests" / f"{number:02d}-{name}.yaml", body)


def _index(folder: Path, test: str, failed_checks: Sequence[RecordedCheck], commands: Sequence[str]) -> str:
    """Return the index: the failed checks, the command that reproduces them, and all files of the bundle."""
    lines = [f"# {test}", "", *(f"- {_escape_markdown(_description(check))}" for check in failed_checks)]
    lines += ["", "```sh", *commands, "```", ""]
    if not (folder / HISTORY).exists():
        lines += [LEFT_OUT_NOTE, ""]
    lines += ["| file | contents |", "|---|---|"]
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    order = list(DESCRIPTIONS)
    entries = {name: _entry_of(name) for name in names if name != INDEX}
    sorted_names = sorted(
        entries, key=lambda name: (order.index(entries[name]) if entries[name] in order else len(order), name)
    )
    lines += [f"| [{name}]({name}) | {DESCRIPTIONS.get(entries[name], '')} |" for name in sorted_names]
    return "\n".join(lines) + "\n"


def _entry_of(name: str) -> str:
    """Return the entry of `DESCRIPTIONS` that a file belongs to."""
    entry = name if name in DESCRIPTIONS else name.removesuffix(".gz")
    return entry if entry in DESCRIPTIONS else str(Path(name).parent)


def _description(check: RecordedCheck) -> str:
    """Return a description of a failed check, in one line."""
    if isinstance(check.seen, str) and check.seen.startswith(check.id):  # an invariant's text is already complete
        return one_line(check.seen)
    expected = "" if check.expected in (None, check.what) else f": expected {one_line(check.expected, 120)}"
    observed = f", seen {one_line(check.seen, 240)}" if expected else f": {one_line(check.seen, 300)}"
    return f"{check.id} {check.outcome}: {check.what}{expected}{observed}"


def _escape_markdown(words: str) -> str:
    """Escape text that comes from an implementation, so that it cannot act as Markdown or contain control
    characters."""
    return re.sub(r"([\\`*_<>\[\]|])", r"\\\1", "".join(c if c.isprintable() else "�" for c in words))


def _save(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    regular.write(path, credentials.redact(text).encode("utf-8", "replace"))


def _dump(path: Path, value: Any, *, several: bool = False) -> None:
    options: dict[str, Any] = {"Dumper": yaml.CSafeDumper, "sort_keys": False, "allow_unicode": True}
    _save(path, yaml.dump_all(value, **options) if several else yaml.dump(value, **options))


def _compress(path: Path, content: bytes) -> None:
    """Write a compressed file. Level 3 is fast; level 9 would make the file only a tenth smaller."""
    regular.write(path, gzip.compress(content, compresslevel=3, mtime=0))


def copy_log(log: Path, offset: int, target: Path, limit: int = MAX_READ_BYTES) -> None:
    """Copy the part of a log after `offset`, without credentials, and only its last `limit` bytes. If that is still
    more than `MAX_LOG_BYTES`, write its end to `target`, and all of it to a compressed file next to `target`. Raises
    FileNotFoundError if there is no log."""
    try:
        file = regular.OpenFile(log)
        end = file.size
        start = offset if offset <= end else 0
        content = credentials.redact_log(file.at(max(start, end - limit), min(limit, end - start)), log.name)
    except FileNotFoundError:
        raise
    except OSError as error:
        content = f"({log.name} cannot be read any more: {error.strerror})\n".encode()
    target.parent.mkdir(parents=True, exist_ok=True)
    regular.write(target, content[-MAX_LOG_BYTES:])
    if len(content) > MAX_LOG_BYTES:
        _compress(target.with_name(f"{target.name}.gz"), content)
