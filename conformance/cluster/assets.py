"""The programs of the fake cluster. Their sources, in order of precedence:

1. a path in GROVE_CONFORMANCE_ASSET_<NAME>, e.g. GROVE_CONFORMANCE_ASSET_KUBE_APISERVER;
2. the cache, `<cache>/grove-conformance/assets/<name>/<version>/<os-arch>/<name>`, with a receipt next to it;
3. the official release, if its digest is pinned: a file, an archive, or an image;
4. a build from pinned Go modules.

Invariants: a folder of the cache is either absent or complete, because it is filled elsewhere and then moved there with
one rename. A program in the cache is unchanged: its digest is compared before the first use, and again when its file
has been touched.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from filelock import FileLock, Timeout

from conformance import data, disk, documents
from conformance.cluster import gobuild, locks, pins, processes
from conformance.cluster.download import fetch
from conformance.cluster.pins import Program
from conformance.cluster.progress import ProgressReporter, report_nothing
from conformance.cluster.sites import Sites, Unavailable
from conformance.errors import UsageError

RECEIPT = "receipt.json"
DIGEST_SUFFIX = "digest.json"
"""The suffix of the file with another file's digest and the state of that file when it was read."""
SETTLED_NANOSECONDS = 2_000_000_000
"""Nanoseconds after which another change to a file gets a different time, with any file system clock."""
APISERVER = "kube-apiserver"
VARIABLE_PREFIX = "GROVE_CONFORMANCE_ASSET_"
"""The prefix of the variables that name the user's own programs."""
DISK_HINT = "make room or make it writable, or put the cache elsewhere with XDG_CACHE_HOME"
_SITES = Sites()


@dataclass(frozen=True)
class Assets:
    """Paths of executable files."""

    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path
    kube_scheduler: Path
    kubectl: Path
    kwok: Path
    kwokctl: Path

    def program(self, component: str) -> Path:
        """Return the program of a component, such as `kube-scheduler`."""
        path: Path = getattr(self, component.replace("-", "_"))
        return path


@dataclass(frozen=True)
class Receipt:
    """The receipt of a program in the cache: its source, its SHA-256 (hex) and its size in bytes. For a download,
    `pinned` is the pinned digest, which may be the digest of an archive or of an image."""

    source: str
    sha256: str
    size: int
    pinned: str = ""


def resolve_all(report: ProgressReporter = report_nothing, kubernetes: str = "") -> Assets:
    """Return the paths of all programs of a cluster with this version of Kubernetes (by default the default version).
    Missing programs are downloaded or built, which can take minutes.

    Raises UsageError for mistakes of the user, ChecksumMismatch for a wrong download, HarnessError for a failed build.
    """
    needed_programs = programs(kubernetes)
    check_variables(program.name for program in needed_programs)
    store = ProgramCache(data.cache())
    return Assets(**{program.name.replace("-", "_"): store.resolve(program, report) for program in needed_programs})


def check_variables(names: Iterable[str]) -> None:
    """Raise UsageError if an environment variable would set the path of a program that is not among `names`, because it
    would have no effect."""
    variables = {variable_of(name) for name in names}
    for variable in sorted(os.environ):
        if variable.startswith(VARIABLE_PREFIX) and variable not in variables:
            raise UsageError("names no program", where=variable, hint=documents.suggestion(variable, variables))


def sources(kubernetes: str = "") -> dict[str, str]:
    """Return the origin of each program in readable form, or "" for a program that is not in the cache yet."""
    store = ProgramCache(data.cache())
    origins = {}
    for program in programs(kubernetes):
        receipt = store.receipt(program)
        origins[program.name] = "path given" if _user_program(program) else receipt.source if receipt else ""
    return origins


def programs(kubernetes: str = "") -> tuple[Program, ...]:
    """Return the programs of a cluster with this version of Kubernetes for this platform: see `pins.load`."""
    return pins.load(pins.platform_name(), kubernetes)


def versions(kubernetes: str = "") -> dict[str, str]:
    """Map the products of a cluster's programs to their versions: `kubernetes`, `kwok` and `etcd`. Raises UsageError if
    this version of Kubernetes is not pinned."""
    pinned_versions = {program.group.product: program.group.version for program in programs(kubernetes)}
    return pinned_versions | {pins.KUBERNETES: pins.release(pins.platform_name(), kubernetes).version}


def cache_key(kubernetes: str = "") -> str:
    """Return a name for the programs of a cluster, for the caches of CI systems. The name changes whenever a pin
    changes. Raises UsageError, as `versions`."""
    pins_digest = hashlib.sha256(pins.source().read_bytes())
    for path in sorted(path for path in pins.PINS.rglob("*") if path.is_file()):
        pins_digest.update(path.relative_to(pins.PINS).as_posix().encode() + path.read_bytes())
    version = versions(kubernetes)[pins.KUBERNETES]
    return f"grove-conformance-{pins.platform_name()}-{version}-{pins_digest.hexdigest()[:12]}"


def served_versions(kubernetes: str = "") -> dict[str, str]:
    """Return `versions`, but with the version of Kubernetes that the API server will report: the user's own program may
    have another version than the pinned one. Raises UsageError if the program does not report a version."""
    reported_versions = versions(kubernetes)
    server = next(program for program in programs(kubernetes) if program.name == APISERVER)
    if (user_program := _user_program(server)) is not None:
        try:
            output = subprocess.run(
                [user_program, "--version"], capture_output=True, text=True, timeout=60, check=False
            ).stdout
        except (OSError, subprocess.TimeoutExpired) as error:
            output = str(error)
        if (version := re.fullmatch(r"Kubernetes v(\S+)\s*", output)) is None:
            raise UsageError(
                f"{user_program} --version does not name a version of Kubernetes: {output.strip()[:80]!r}",
                where=variable_of(APISERVER),
                hint=f"name the file of {APISERVER}, or unset the variable",
            )
        reported_versions[pins.KUBERNETES] = version[1]
    return reported_versions


def check_minor(served_version: str, expected: str) -> None:
    """Raise UsageError if an API server is not of the expected minor version, which determines flags, features and
    requirements."""
    if pins.minor_of(served_version) != pins.minor_of(expected):
        raise UsageError(
            f"is Kubernetes {served_version}, and the cluster is one of {pins.minor_of(expected)}",
            where=variable_of(APISERVER),
            hint=f"add --kubernetes {pins.minor_of(served_version)}, or unset the variable",
        )


class Builder(Protocol):
    """A function that builds a program from source: see `gobuild.build`."""

    def __call__(self, program: Program, into: Path, *, marker: str, cache: Path, report: ProgressReporter) -> str:
        """Build `program` to the file `into` and return its origin."""


class ProgramCache:
    """The cache of programs below `root`. `sites` and `build` are the two ways to fill it."""

    def __init__(self, root: Path, *, sites: Sites = _SITES, build: Builder = gobuild.build) -> None:
        self._root, self._sites, self._build = root, sites, build

    def resolve(self, program: Program, report: ProgressReporter) -> Path:
        """Return the path of a program. The module docstring lists the order of the sources."""
        if (user_program := _user_program(program)) is not None:
            return user_program
        with disk.usage_errors(f"cache of programs {self._root}", DISK_HINT):
            self._remove_abandoned_files(program)
            if self.receipt(program) is None:
                with locks.hold(self._lock_file(program), report, timeout=locks.BUILD_WAIT_SECONDS):
                    if self.receipt(program) is None:  # otherwise another process was faster
                        if self.path(program).exists():
                            report(program.name, "the one in the cache is not the one that was put there")
                        self._fill(program, report)
        return self.path(program)

    def path(self, program: Program) -> Path:
        """Return the path of `program` in the cache, even if the program is missing."""
        return self._root / "assets" / program.name / program.group.version / pins.platform_name() / program.name

    def receipt(self, program: Program) -> Receipt | None:
        """Return the receipt of a program in the cache; None if the program is missing or was changed."""
        path = self.path(program)
        try:
            receipt = Receipt(**json.loads(path.with_name(RECEIPT).read_text()))
            intact = path.stat().st_size == receipt.size and os.access(path, os.X_OK)
            intact = intact and _digest(path) == receipt.sha256
        except (OSError, ValueError, TypeError):
            return None
        is_download = "://" in receipt.source
        return receipt if intact and (not is_download or receipt.pinned == program.digest) else None

    def _fill(self, program: Program, report: ProgressReporter) -> None:
        self._clear(program)
        scratch = Path(tempfile.mkdtemp(dir=self._scratch(program)))
        try:
            if downloads := self._download(program, scratch, report):
                for download in downloads:
                    self._publish(download, scratch / download.name, download.url, download.digest)
            else:
                file = scratch / program.name
                marker = self._marker(program)
                source = self._build(program, file, marker=marker, cache=self._root, report=report)
                self._publish(program, file, source)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _download(self, program: Program, folder: Path, report: ProgressReporter) -> list[Program]:
        """Download the program, and all missing programs of the same archive. Return the downloaded programs; an empty
        list if the program has to be built."""
        try:
            if program.digest:
                self._sites.probe({candidate.site for candidate in _all_programs() if candidate.digest})
            batch = [program, *(candidate for candidate in _all_programs() if self._shares_archive(candidate, program))]
            fetch(batch, folder, self._sites, report)
        except Unavailable as reason:
            report(program.name, f"no official release is available ({reason})")
            return []
        return batch

    def _shares_archive(self, other: Program, program: Program) -> bool:
        same_archive = (other.url, other.digest) == (program.url, program.digest) and other.name != program.name
        return same_archive and _user_program(other) is None and self.receipt(other) is None

    def _publish(self, program: Program, file: Path, source: str, pinned: str = "") -> None:
        """Move a file into the cache, together with its receipt, with one rename."""
        file.chmod(0o755)
        receipt = Receipt(source, _digest(file), file.stat().st_size, pinned)
        staging_folder = file.with_name(f"{file.name}.shelf")
        staging_folder.mkdir()
        file.rename(staging_folder / program.name)
        (staging_folder / RECEIPT).write_text(json.dumps(vars(receipt), indent=2) + "\n")
        for path in (*staging_folder.iterdir(), staging_folder):
            _fsync(path)
        destination = self.path(program).parent
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(destination, ignore_errors=True)  # damaged, because an intact program would have been used
        staging_folder.rename(destination)
        _fsync(destination.parent)

    def _marker(self, program: Program) -> str:
        return str(self._scratch(program))

    def _scratch(self, program: Program) -> Path:
        return self._root / "scratch" / program.group.name

    def _remove_abandoned_files(self, program: Program) -> None:
        """Remove the files of a killed run, unless another process is working there."""
        if any(self._scratch(program).glob("*/")):
            try:
                with FileLock(self._lock_file(program), mode=0o600).acquire(blocking=False):
                    self._clear(program)
            except Timeout:
                return

    def _clear(self, program: Program) -> None:
        """End all processes of an earlier attempt and remove its files. The caller holds the lock, so no other process
        is working there."""
        marker = self._marker(program)
        processes.end_marked(lambda environment: environment.get(processes.BUILD) == marker)
        shutil.rmtree(self._scratch(program), ignore_errors=True)
        self._scratch(program).mkdir(parents=True)

    def _lock_file(self, program: Program) -> Path:
        folder = self._root / "locks"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{program.group.name}.lock"


def _all_programs() -> tuple[Program, ...]:
    return pins.all_programs(pins.platform_name())


def variable_of(program: str) -> str:
    """Return the variable that names a program: GROVE_CONFORMANCE_ASSET_KUBE_APISERVER for `kube-apiserver`."""
    return VARIABLE_PREFIX + program.replace("-", "_").upper()


def _user_program(program: Program) -> Path | None:
    variable = variable_of(program.name)
    value = os.environ.get(variable)
    if not value:
        return None
    path = Path(value).expanduser().absolute()
    if not path.is_file() or not os.access(path, os.X_OK):
        raise UsageError(
            f"{path} is not an executable file",
            where=variable,
            hint=f"name the file of {program.name}, or unset the variable",
        )
    return path


def _digest(path: Path) -> str:
    """Return the SHA-256 (hex) of a file in the cache. A file is only read again if it has been touched: reading all
    programs takes as long as starting one of them, and each cluster needs them."""
    stat = path.stat()
    state = [stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]
    digest_file = path.with_name(f"{path.name}.{DIGEST_SUFFIX}")
    with suppress(OSError, ValueError, TypeError, KeyError):
        stored_digest = json.loads(digest_file.read_text())
        if stored_digest["state"] == state:
            return str(stored_digest["sha256"])
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if time.time_ns() - stat.st_ctime_ns > SETTLED_NANOSECONDS:  # otherwise another change might go unnoticed
        with suppress(OSError):  # the cache may be read-only for this user
            disk.write(digest_file, json.dumps({"state": state, "sha256": digest}))
    return digest


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
