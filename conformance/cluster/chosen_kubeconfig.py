"""The kubeconfig and the context of a command, chosen in the same way as by kubectl: `--kubeconfig`, `$KUBECONFIG`
(which can name several files), or `~/.kube/config`; and `--context`.

Programs that are given a kubeconfig use its current context. If another context is chosen, or the parts are in several
files, the required entries are therefore copied to a file that only this user can read, and that exists while the
command runs.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from conformance import disk, documents
from conformance.cluster.state import Owner, StateRoot
from conformance.documents import display_path, suggestion
from conformance.errors import UsageError
from conformance.suggestions import explain_missing

Object = Mapping[str, Any]

_SECTIONS = ("clusters", "users", "contexts")
_PATH_FIELDS = {
    "clusters": ("certificate-authority",),
    "users": ("client-certificate", "client-key", "tokenFile"),
}
"""The fields that are paths relative to the file that contains them."""


@dataclass(frozen=True)
class ChosenKubeconfig:
    """A kubeconfig whose current context is the chosen one, and the options that select it again."""

    path: Path
    options: tuple[str, ...]


@contextmanager
def choose(given: Path | None, context: str, state: StateRoot | None = None) -> Iterator[ChosenKubeconfig]:
    """Yield the kubeconfig that the options and the environment select. If a file or an entry is missing, raises
    UsageError with the entry and the files."""
    files, location = _files(given)
    contents = {kubeconfig_option: documents.parse(kubeconfig_option).value for kubeconfig_option in files}
    current_context = next(
        (str(document["current-context"]) for document in contents.values() if document.get("current-context")), ""
    )
    kubeconfig_option = ("--kubeconfig", str(files[0])) if len(files) == 1 else ()
    options = (*kubeconfig_option, *(("--context", context) if context else ()))
    if len(files) == 1 and context in ("", current_context):
        yield ChosenKubeconfig(files[0], options)
        return
    text = yaml.safe_dump(minimal_kubeconfig(contents, context or current_context, location))
    with _temporary_copy(text, state or StateRoot()) as path:
        yield ChosenKubeconfig(path, options)


def minimal_kubeconfig(files: Mapping[Path, Object], context: str, location: str) -> Object:
    """Return a kubeconfig with one context, its cluster and its user. If several entries have the same name, the first
    one is used; relative paths become absolute. `location` is named in errors. Raises UsageError if the context, its
    cluster or its user is missing."""
    entries = {kind: _entries_by_name(kind, files) for kind in _SECTIONS}
    if context not in entries["contexts"]:
        hint = suggestion(context, entries["contexts"]) if context else "give --context"
        problem = f"has no context {context!r}" if context else "has no current context"
        raise UsageError(problem, where=location, hint=hint)
    chosen_context = entries["contexts"][context].get("context") or {}
    kubeconfig: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", "current-context": context}
    for kind, name in (
        ("clusters", chosen_context.get("cluster")),
        ("users", chosen_context.get("user")),
        ("contexts", context),
    ):
        if name not in entries[kind]:
            problem = f"context {context!r} names the {kind[:-1]} {name!r}, which does not exist"
            raise UsageError(problem, where=location, hint=f"known: {', '.join(entries[kind]) or 'none'}")
        kubeconfig[kind] = [entries[kind][str(name)]]
    return kubeconfig


def _files(option: Path | None) -> tuple[list[Path], str]:
    """Return the files, and the option or variable that named them."""
    if option is not None:
        if not option.is_file():
            problem, hint = ("is a folder", "") if option.is_dir() else explain_missing(option)
            raise UsageError(problem, where=f"--kubeconfig {option}", hint=hint or "give the path of a kubeconfig")
        return [option.absolute()], f"--kubeconfig {option}"
    variable = os.environ.get("KUBECONFIG", "")
    paths = [Path(text) for text in variable.split(os.pathsep) if text] or [Path.home() / ".kube" / "config"]
    location = f"KUBECONFIG {variable}" if variable else display_path(paths[0])
    files = [path.absolute() for path in paths if path.is_file()]  # like kubectl, ignore files that do not exist
    if not files:
        raise UsageError("no such file", where=location, hint="give --kubeconfig FILE, or set KUBECONFIG")
    return files, location


def _entries_by_name(section: str, files: Mapping[Path, Object]) -> dict[str, dict[str, Any]]:
    entries: dict[str, dict[str, Any]] = {}
    for path, document in files.items():
        for entry in _only_mappings(document.get(section)):
            entries.setdefault(str(entry.get("name")), _with_absolute_paths(section, entry, path.parent))
    return entries


def _with_absolute_paths(section: str, entry: Object, folder: Path) -> dict[str, Any]:
    fields = entry.get(section[:-1])
    if not isinstance(fields, Mapping):
        return dict(entry)
    absolute_paths = {key: str(folder / str(fields[key])) for key in _PATH_FIELDS.get(section, ()) if fields.get(key)}
    plugin = fields.get("exec")
    if isinstance(plugin, Mapping) and os.sep in str(plugin.get("command", "")):  # a bare name is found on PATH
        absolute_paths["exec"] = {**plugin, "command": str(folder / str(plugin["command"]))}  # type: ignore[assignment]
    return {**entry, section[:-1]: {**fields, **absolute_paths}}


def _only_mappings(value: object) -> Iterable[Object]:
    entries: Sequence[object] = value if isinstance(value, list) else ()
    return (entry for entry in entries if isinstance(entry, Mapping))


@contextmanager
def _temporary_copy(text: str, state: StateRoot) -> Iterator[Path]:
    """Keep a copy while this process needs it, and remove the copies of killed processes."""
    folder = state.root / "kubeconfigs"
    disk.make_folder(folder, location=f"state folder {state.root}", hint="make it writable", mode=0o700)
    _remove_abandoned_copies(folder)
    owner = Owner.this_process()
    path = folder / f"{owner.pid}_{owner.started}_{secrets.token_hex(3)}"
    disk.write(path, text)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _remove_abandoned_copies(folder: Path) -> None:
    for path in folder.iterdir():
        try:
            pid, start_time, _ = path.name.removeprefix(".").split("_")  # starts with a dot while being written
            is_alive = Owner(int(pid), float(start_time)).is_alive()
        except ValueError:  # not a file of the suite
            continue
        if not is_alive:
            path.unlink(missing_ok=True)
