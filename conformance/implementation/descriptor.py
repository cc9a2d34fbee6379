"""The model of a descriptor: everything that the suite knows about an implementation.

See docs/design.md, section "Implementations under test". `loading.load` creates a descriptor from a YAML file.
"""

from __future__ import annotations

import dataclasses
import datetime
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Literal

import msgspec

from conformance import data, documents
from conformance.documents import Document
from conformance.errors import UsageError
from conformance.grove.kinds import DEFAULT_SCHEDULER
from conformance.implementation import globs, placeholders

SUFFIXES = (".yaml", ".yml")


class Role(StrEnum):
    """The roles that an implementation can play."""

    OPERATOR = "operator"
    GANG_SCHEDULER = "gang-scheduler"


class Ready(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The signs that a process is ready. If both are given, both must hold. `within` is in seconds."""

    http: str | None = None
    log: str | None = None
    within: float = 60.0


class Stop(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a process is stopped. `grace` is the number of seconds between SIGTERM and SIGKILL."""

    grace: float = 10.0


class Process(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The command, the files and the signs of readiness of one process of a role. All strings may contain
    placeholders."""

    argv: list[str | list[str]]
    ready: Ready
    name: str = ""
    """The name of the process within the role; empty for a role's only process."""
    env: dict[str, str] = {}
    inherit: list[str] = []
    """Variables of the suite's environment that the process inherits in addition to the harmless ones
    (`inherited.py`)."""
    files: dict[str, str] = {}
    stop: Stop = Stop()


class Helm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A Helm release. `set` maps value names to strings. All strings may contain placeholders."""

    chart: str
    release: str
    namespace: str = "default"
    values: list[str] = []
    set: dict[str, str] = {}


class Install(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Files, folders or globs. Relative paths are relative to the folder of the descriptor."""

    crds: list[str] = []
    objects: list[str] = []
    webhooks: list[str] = []
    manifests: list[str] = []
    """The manifests of the implementation itself, for `start: manifests`."""
    helm: Helm | None = None


Part = Literal["crds", "objects", "webhooks", "manifests"]
"""The fields of `Install` that name files."""


class Deployment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The Deployment of a role. `within` is the number of seconds until the Deployment must be available."""

    name: str
    namespace: str = "default"
    within: float = 120.0


class Control(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The user's commands that stop and start a role, with KUBECONFIG in their environment. `start` returns when the
    role is ready. `within` is the number of seconds that a command may take; `inherit` has the same meaning as in a
    process."""

    stop: list[str]
    start: list[str]
    kill: list[str] = []
    """Ends the role immediately. Without this command, `stop` is used."""
    inherit: list[str] = []
    within: float = 120.0


Start = Literal["processes", "running", "manifests", "helm"]
DEPLOYED_STARTS: tuple[Start, ...] = ("manifests", "helm")
"""The ways of starting an implementation that need a cluster whose nodes run containers."""


class Metadata(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Labels and annotations that the suite adds to objects that it creates."""

    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}

    def fill(self, value: Callable[[str], str]) -> Metadata:
        """Return the metadata with the placeholders in the values replaced."""

        def expand(texts: Mapping[str, str]) -> dict[str, str]:
            return {name: placeholders.expand(text, value) for name, text in texts.items()}

        return Metadata(expand(self.labels), expand(self.annotations))


class ExpectedFailure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A requirement that is known to fail."""

    id: str
    reason: str
    link: str | None = None
    expires: datetime.date | None = None

    def has_expired(self, today: datetime.date) -> bool:
        """Return whether the entry has expired by this day."""
        return self.expires is not None and self.expires <= today


class Upgrade(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An earlier version from which this implementation can be upgraded: the same processes with other parameters.
    `about` describes the version; `libraries` is the version of the Kubernetes libraries with which it computed the
    hashes that it stored."""

    name: str
    about: str
    set: dict[str, str]
    libraries: str = ""


@dataclass(frozen=True)
class Descriptor:
    """A checked descriptor together with the values of its parameters."""

    document: Document
    name: str
    version: str
    roles: frozenset[Role]
    features: frozenset[str]
    scheduler_name: str
    start: Start
    install: Install
    processes: Mapping[Role, tuple[Process, ...]]
    """The processes of each role, in the order in which they start."""
    deployments: Mapping[Role, Deployment]
    """The Deployment of each role, if the implementation is started by manifests or Helm."""
    control: Mapping[Role, Control]
    """The commands that stop and start the roles of an implementation that is already running."""
    pods: Metadata
    """Labels and annotations that the gang scheduler needs on the pods that it is to schedule."""
    podgangs: Metadata
    resource_claims: Metadata
    """Labels and annotations that the gang scheduler needs on ResourceClaims that are not made for one pod."""
    cluster_roles: Mapping[Role, str]
    """The ClusterRole to which the user of a role is bound; `cluster-admin` for a role without an entry."""
    supplied: Mapping[str, str]
    """Parameters of the implementation that supplies the other roles."""
    supplied_by: str
    """The name of the implementation that supplies the other roles."""
    record: tuple[str, ...]
    """Additional resources to record, as `plural.group`."""
    lease: str
    """The name of the Lease with which the implementation's operators elect their leader."""
    settle: float
    """Seconds without a change after which the gang scheduler has nothing left to do; 0 if this is not declared."""
    expected_failures: tuple[ExpectedFailure, ...]
    settings: Mapping[str, str]
    upgrades: tuple[Upgrade, ...]
    digest: str
    """`sha256:` and the digest of the file as canonical JSON. Comments, the order of keys, and the values of parameters
    have no influence."""
    contract: str = ""
    """The release line or the release of Grove's contract that the descriptor names; empty if the line follows from the
    CRDs."""
    line: str = ""
    """The release line of Grove's contract that the implementation follows (`discovery.complete`)."""
    release: str = ""
    """The release of Grove whose requirements the implementation must meet."""
    discovered: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Optional parts of the API that the implementation's CRDs serve (`discovery.complete`)."""
    predecessor: Descriptor | None = None
    """Another implementation from which this one takes over, instead of from an earlier version of itself."""

    @property
    def is_kube_scheduler(self) -> bool:
        """Return whether the gang scheduler can be the cluster's kube-scheduler: the implementation starts no gang
        scheduler itself, and the scheduler has the default name."""
        has_scheduler = any(
            parts.get(Role.GANG_SCHEDULER) for parts in (self.processes, self.deployments, self.control)
        )
        return self.scheduler_name == DEFAULT_SCHEDULER and not has_scheduler

    def earlier(self, upgrade: Upgrade) -> Descriptor:
        """Return the descriptor of the earlier version with which an upgrade starts."""
        if self.predecessor is not None:
            return self.predecessor
        overrides = {
            name: placeholders.expand(value, lambda placeholder: self.static_value(placeholder) or "")
            for name, value in upgrade.set.items()
        }
        return dataclasses.replace(self, settings={**self.settings, **overrides})

    @property
    def folder(self) -> Path:
        """Return the folder of the descriptor's file."""
        return self.document.path.absolute().parent

    def static_value(self, name: str) -> str | None:
        """Return the value of a placeholder that needs no cluster; None for any other placeholder."""
        match name:
            case "python":
                return sys.executable
            case "project":
                return str(data.PROJECT)
            case "here":
                return str(self.folder)
            case "schedulerName":
                return self.scheduler_name
            case _:
                return self.settings.get(name.removeprefix("set.")) if name.startswith("set.") else None

    def manifests(self, part: Part) -> list[Path]:
        """Return the YAML files of a part of `install`, sorted within each entry. Raises UsageError if an entry matches
        no file."""
        paths: dict[Path, None] = {}
        for index, pattern in enumerate(getattr(self.install, part)):
            expanded = placeholders.expand(pattern, lambda name: self.static_value(name) or "")
            location = placeholders.option(pattern) or self.document.location("install", part, index)
            hint = "give a file, a folder with *.yaml files or a glob"
            try:
                files = list(self._files(expanded))
            except (OSError, ValueError, RecursionError) as error:
                problem = f"cannot be looked through: {getattr(error, 'strerror', None) or error}"
                raise UsageError(problem, where=location, hint=hint) from error
            if not files:
                raise UsageError(f"no YAML file at {documents.display_path(Path(expanded))}", where=location, hint=hint)
            paths |= dict.fromkeys(files)
        return list(paths)

    def _files(self, pattern: str) -> Iterator[Path]:
        path = self.folder / pattern
        if path.is_file():
            yield path
        elif path.is_dir():
            yield from sorted(file for file in path.iterdir() if file.suffix in SUFFIXES)
        else:
            yield from globs.files(path)
