"""The files of the clusters of this checkout: one folder and one record per cluster.

    <state root>/clusters/<name>/     folder of a cluster, 0700; its record is cluster.json
    <state root>/lock                 held for an instant to add, remove or prune a folder

Invariant: a folder with its final name always contains a readable record, because it is filled under another name and
then renamed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from conformance import disk, regular
from conformance.cluster import locks, processes
from conformance.cluster.progress import ProgressReporter, report_notice
from conformance.data import PROJECT
from conformance.errors import UsageError

Phase = Literal["starting", "ready"]
RECORD_FILE = "cluster.json"
CLUSTER_BYTES = 256 << 20
"""Bytes that an unused cluster takes: 129 MiB, mostly for etcd, and logs."""
_HINT = "make room or make it writable, or choose another folder with GROVE_CONFORMANCE_STATE"
_MAX_BYTES = 1 << 20
"""Maximum size of a record in bytes."""
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
"""The form of the names of clusters, snapshots and node profiles."""


@dataclass(frozen=True)
class Owner:
    """The process that owns a cluster: its pid and its start time, as `processes.find_start_time` returns it."""

    pid: int
    started: float

    @classmethod
    def this_process(cls) -> Owner:
        """Return this process."""
        return cls.of(os.getpid())

    @classmethod
    def of(cls, pid: int) -> Owner:
        """Return a running process. Raises UsageError if there is none."""
        start_time = processes.find_start_time(pid)
        if start_time is None:
            raise UsageError(f"there is no process {pid}", hint="give the id of a running process")
        return cls(pid, start_time)

    def is_alive(self) -> bool:
        """Return whether exactly this process is alive."""
        return processes.is_alive(self.pid, self.started)


@dataclass(frozen=True)
class ClusterRecord:
    """The record of a cluster. `owner` is null for a cluster that outlives the command that created it.

    `creator` is the process that starts the cluster; it matters while the phase is `starting`.
    """

    name: str
    uid: str
    creator: Owner
    owner: Owner | None
    phase: Phase = "starting"
    ports: int = 0
    """The first port of the cluster's block; 0 before a block is claimed."""
    apiserver_port: int = 0
    scheduler: bool = True
    scheduler_name: str = ""
    """The scheduler name of kube-scheduler; empty for the default name."""
    versions: dict[str, str] = field(default_factory=dict)
    """Maps a product to the pinned version of its programs."""
    served: str = ""
    """The version of Kubernetes that the API server reports; empty before the API server runs."""
    features: list[str] = field(default_factory=list)
    """The features that are enabled in addition to the defaults, as options of `cluster up`."""
    addons: bool = False
    """Whether the process `startup-order` serves metrics."""
    policies: list[str] = field(default_factory=list)
    """The policies that the cluster enforces: names, and paths of files and folders."""
    implementation: str = ""
    """The name of the implementation that was started on the cluster."""
    descriptor: str = ""
    """The path of the implementation's descriptor."""
    settings: dict[str, str] = field(default_factory=dict)
    """The values of the descriptor's parameters."""
    roles: dict[str, Owner] = field(default_factory=dict)
    """The processes of the implementation's roles, by name."""
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    def abandonment_reason(self) -> str:
        """Return the reason why the cluster is not needed any more; empty if its owner is alive, or if it has no
        owner."""
        if self.phase == "starting":
            return "" if self.creator.is_alive() else "the process that was starting it is gone"
        if self.owner is None or self.owner.is_alive():
            return ""
        return f"the process that it belonged to ({self.owner.pid}) is gone"


class StateRoot:
    """The state root of a checkout."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or state_root()
        self.clusters = self.root / "clusters"

    @contextmanager
    def lock(self, report: ProgressReporter = report_notice) -> Iterator[None]:
        """Hold the lock for adding and removing folders. It must not be held during long operations, except by `prune`.
        Raises UsageError if the state root cannot be written."""
        self._create_folders()
        with self.usage_errors(), locks.hold(self.root / "lock", report):
            yield

    def require(self, size: int = CLUSTER_BYTES) -> None:
        """Raise UsageError unless the state root can be written and `size` bytes are free."""
        self._create_folders()
        disk.require_space(self.root, size, location=self._location, hint=_HINT)

    def usage_errors(self) -> AbstractContextManager[None]:
        """Return a context manager that converts the errors of a full or read-only disk to UsageError."""
        return disk.usage_errors(self._location, _HINT)

    @property
    def _location(self) -> str:
        return f"state folder {self.root}"

    def _create_folders(self) -> None:
        for folder in (self.root, self.clusters):  # individually, because `mode` would not apply to parents
            disk.make_folder(folder, location=self._location, hint=_HINT, mode=0o700)

    def directory(self, name: str) -> Path:
        """Return the folder of the cluster `name`."""
        return self.clusters / name

    def add(self, record: ClusterRecord, report: ProgressReporter = report_notice) -> Path:
        """Create the folder of a new cluster. Raises UsageError if the name is taken or invalid."""
        with self.lock(report):
            self.require_new(record.name)
            new_folder = self.clusters / f".new-{record.uid}"
            new_folder.mkdir(mode=0o700)
            _write(new_folder / RECORD_FILE, record)
            new_folder.rename(self.directory(record.name))
        return self.directory(record.name)

    def require_new(self, name: str) -> None:
        """Raise UsageError if the name of a new cluster is taken or invalid."""
        if not NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} is not a valid cluster name", hint="use 1 to 40 lower-case letters, digits and inner hyphens"
            )
        if self.directory(name).exists():
            start = f"grove-conformance cluster start {name} (if it has ended)"
            raise UsageError(
                f"a cluster named {name!r} exists already",
                where=str(self.directory(name)),
                hint=f"choose another name, or run: {start}, or: grove-conformance cluster down {name}",
            )

    def update(self, record: ClusterRecord, **changes: Any) -> ClusterRecord:
        """Write the record with `changes` and return it."""
        updated_record = replace(record, **changes)
        with self.usage_errors():
            _write(self.directory(record.name) / RECORD_FILE, updated_record)
        return updated_record

    def read(self, name: str) -> ClusterRecord | None:
        """Return the record of a cluster; None if its folder does not exist or contains no readable record."""
        if not NAME.fullmatch(name):  # it could be the path of another folder
            return None
        try:
            document = json.loads(regular.OpenFile(self.directory(name) / RECORD_FILE).at(0, _MAX_BYTES))
            owner = document.pop("owner")
            roles = {role: Owner(**process) for role, process in document.pop("roles", {}).items()}
            creator = Owner(**document.pop("creator"))
            return ClusterRecord(creator=creator, owner=Owner(**owner) if owner else None, roles=roles, **document)
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None

    def abandonment_reason(self, name: str) -> str:
        """Return the reason why a cluster is not needed any more, as `ClusterRecord.abandoned`; empty if there is no
        readable record.

        After the owner has been found dead, the record is read again, because the owner may have given the cluster away
        as its last action.
        """
        record = self.read(name)
        reason = record.abandonment_reason() if record is not None else ""
        return reason if reason and self.read(name) == record else ""

    def names(self) -> list[str]:
        """Return the sorted names of all folders of clusters, without the remains of a killed add or remove."""
        if not self.clusters.is_dir():
            return []
        return sorted(entry.name for entry in self.clusters.iterdir() if not entry.name.startswith("."))

    def remove(self, name: str) -> None:
        """Remove the folder of a cluster atomically."""
        trash = self.clusters / f".gone-{secrets.token_hex(4)}"
        try:
            self.directory(name).rename(trash)
        except FileNotFoundError:
            return
        shutil.rmtree(trash, ignore_errors=True)

    def leftovers(self) -> list[Path]:
        """Return the remaining folders of a killed add or remove. The result is meaningful only under the lock."""
        return sorted(self.clusters.glob(".*-*")) if self.clusters.is_dir() else []


def state_root() -> Path:
    """Return `$GROVE_CONFORMANCE_STATE`, or a folder for this checkout below `$XDG_STATE_HOME` (~/.local/state)."""
    if folder := os.environ.get("GROVE_CONFORMANCE_STATE"):
        return Path(folder).expanduser().absolute()
    return user_state() / checkout_id()


def user_state() -> Path:
    """Return the folder that all checkouts of this user share: `$XDG_STATE_HOME/grove-conformance`."""
    base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return base / "grove-conformance"


def known_roots() -> list[Path]:
    """Return the state roots of every checkout of this user: the roots in the default location, and the roots that port
    claims name."""
    candidates = [*user_state().glob("*/clusters"), *_claimed_folders()]
    folders = (
        candidate
        for candidate in candidates
        if candidate.name == "clusters" and candidate.is_absolute() and candidate.is_dir()
    )
    return sorted({folder.parent for folder in folders})


def _claimed_folders() -> Iterator[Path]:
    """Yield the folders of clusters that port claims name."""
    for file in (user_state() / "ports").glob("[0-9]*"):
        with suppress(OSError):  # the claim was released a moment ago
            yield claimed_folder(file).parent


def claimed_folder(file: Path) -> Path:
    """Return the folder that a port claim names. Other content results in a path that is not a folder. Raises OSError
    if the claim cannot be read."""
    return Path(os.fsdecode(regular.OpenFile(file).at(0, _MAX_BYTES)))


def checkout_id() -> str:
    """Return eight hex digits that differ between checkouts."""
    return hashlib.sha256(str(PROJECT).encode()).hexdigest()[:8]


def _write(path: Path, record: ClusterRecord) -> None:
    disk.write(path, json.dumps(asdict(record), indent=2) + "\n")
