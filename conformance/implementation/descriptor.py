"""The model of a descriptor: everything that the suite knows about an implementation.

See docs/design.md, section "Implementations under test". `loading.load` creates a descriptor from a YAML file.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, field

from conformance import data, documents
from conformance.documents import Document, Field
from conformance.errors import UsageError
from conformance.formats import Format, Text
from conformance.grove.kinds import DEFAULT_SCHEDULER, LEASE
from conformance.implementation import globs, placeholders
from conformance.implementation.fields import (
    BY_ROLE,
    NOT_EMPTY,
    UNIQUE,
    Control,
    Deployment,
    ExpectedFailure,
    Install,
    Metadata,
    Part,
    Process,
    Start,
    Upgrade,
)
from conformance.implementation.fields import Role as Role
from conformance.implementation.parameters import Parameter

SUFFIXES = (".yaml", ".yml")
REFERENCE = "reference"
"""The descriptor that supplies the roles that an implementation does not play, unless the implementation names another
descriptor."""


class DescriptorFormat(Format, frozen=True, kw_only=True):
    """How the suite installs, starts and stops one implementation of the Grove API. See
    docs/writing-an-implementation.md."""

    api_version: Annotated[Literal["conformance.grove.io/v1alpha1"], Meta(description="conformance.grove.io/v1alpha1")]
    kind: Annotated[Literal["Implementation"], Meta(description="Implementation")]
    name: Annotated[
        str,
        Meta(
            pattern="^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
            description="lower-case letters, digits and inner hyphens, for example my-operator",
        ),
    ]
    version: Annotated[
        Text, Meta(description="the version that a report names, in quotes, or ${set.version} for a parameter")
    ]
    roles: Annotated[
        frozenset[Role],
        Meta(
            min_length=1,
            description="the roles it plays: operator, gang-scheduler or both",
            extra_json_schema=UNIQUE,
        ),
    ]
    features: Annotated[
        frozenset[Text],
        Meta(
            description="the features it claims; requirements of other features are reported as not claimed",
            extra_json_schema=UNIQUE,
        ),
    ] = frozenset()
    contract: Annotated[
        str,
        Meta(
            pattern=r"^(names|maps|v[0-9]+\.[0-9]+\.[0-9]+(-alpha\.[0-9]+(-rc[0-9]+)?)?|\$\{set\.[A-Za-z0-9]+\})$",
            description="the release of Grove whose contract it follows, or the line: names (up to "
            "v0.1.0-alpha.12-rc1) or maps, for the newest release of it; by default that which its CRDs show",
        ),
    ] = ""
    """Empty if the line follows from the CRDs."""
    scheduler_name: Annotated[
        str,
        Meta(
            pattern=r"^([a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?|\$\{set\.[A-Za-z0-9]+\})$",
            description="spec.schedulerName of the pods of its gangs; a supplied gang scheduler serves this name",
        ),
    ]
    start: Annotated[
        Start,
        Meta(
            description="processes (the default): the suite starts `processes`; running: the implementation runs "
            "already, nothing is started; manifests, helm: it is deployed in an existing cluster"
        ),
    ] = "processes"
    parameters: Annotated[
        dict[
            Annotated[
                str,
                Meta(
                    pattern="^[A-Za-z][A-Za-z0-9_-]*$",
                    description="start the name of a parameter with a letter; letters, digits, _ and - may follow",
                ),
            ],
            Parameter,
        ],
        Meta(description="parameters that users set with --set NAME=VALUE"),
    ] = field(default_factory=dict)
    install: Annotated[Install, Meta(description="what is applied to the API server before the processes start")] = (
        Install()
    )
    processes: Annotated[
        Mapping[
            Role,
            Process
            | Annotated[
                Sequence[Annotated[Process, Meta(extra_json_schema={"required": ["name"]})]],
                Meta(min_length=1),
            ],
        ],
        Meta(
            description="for each role its process, or a list of its processes in the order in which they start",
            extra_json_schema=BY_ROLE,
        ),
    ] = field(default_factory=dict)
    deployments: Annotated[
        Mapping[Role, Deployment],
        Meta(
            description="for each role its Deployment, which is ready when it is available; tests scale it to stop it",
            extra_json_schema=BY_ROLE,
        ),
    ] = field(default_factory=dict)
    control: Annotated[
        Mapping[Role, Control],
        Meta(
            description="for a role of an implementation that runs already, your commands that stop and start it",
            extra_json_schema=BY_ROLE,
        ),
    ] = field(default_factory=dict)
    cluster_roles: Annotated[
        Mapping[Role, Annotated[Text, Meta(description="the ClusterRole of the role's user")]],
        Meta(
            description="for each role the ClusterRole of its user, of install.objects or of Kubernetes; "
            "cluster-admin if none is named",
            extra_json_schema=BY_ROLE,
        ),
    ] = field(default_factory=dict)
    supplied: Annotated[
        Mapping[str, str],
        Meta(description="parameters of the implementation that supplies the roles that this one does not play"),
    ] = field(default_factory=dict)
    supplied_by: Annotated[
        Text,
        Meta(
            description="the implementation that supplies the roles that this one does not play; the reference by "
            "default"
        ),
    ] = REFERENCE
    pods: Annotated[
        Metadata,
        Meta(description="what the gang scheduler needs on pods: labels, annotations", extra_json_schema=NOT_EMPTY),
    ] = Metadata()
    podgangs: Annotated[
        Metadata,
        Meta(description="what the gang scheduler needs on PodGangs: labels, annotations", extra_json_schema=NOT_EMPTY),
    ] = Metadata()
    resource_claims: Annotated[
        Metadata,
        Meta(
            description="what the gang scheduler needs on ResourceClaims that pods share: labels, annotations",
            extra_json_schema=NOT_EMPTY,
        ),
    ] = Metadata()
    record: Annotated[
        tuple[
            Annotated[
                str,
                Meta(
                    pattern=r"^[a-z0-9]+\.[a-z0-9.-]+$",
                    description="the plural and the group of a resource, for example podgroups.example.com",
                ),
            ],
            ...,
        ],
        Meta(
            description="further resources that are recorded in histories and bundles, as plural.group",
            extra_json_schema=UNIQUE,
        ),
    ] = ()
    lease: Annotated[
        str,
        Meta(
            pattern="^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$",
            description="the Lease by which your operators elect their leader, grove-operator-leader-election without "
            "it",
        ),
    ] = LEASE
    settle: Annotated[
        float,
        Meta(
            gt=0,
            le=30,
            description="seconds without a change after which the gang scheduler has nothing left to do, at most 30",
        ),
    ] = 0.0
    """0 if this is not declared."""
    upgrades: Annotated[
        tuple[Upgrade, ...],
        Meta(min_length=1, description="earlier versions of the operator that this one takes over from"),
    ] = ()
    expected_failures: Annotated[
        tuple[ExpectedFailure, ...], Meta(description="requirements that are known to fail")
    ] = ()

    def each_process(self) -> Iterator[tuple[Role, Field, Process]]:
        """Yield every process with its role and its field."""
        for role, processes in self.processes.items():
            if isinstance(processes, Process):
                yield role, ("processes", role), processes
            else:
                yield from ((role, ("processes", role, index), process) for index, process in enumerate(processes))


class Descriptor(DescriptorFormat, frozen=True, kw_only=True):
    """A checked descriptor together with the values of its parameters."""

    document: Document
    settings: Mapping[str, str]
    processes: Mapping[Role, tuple[Process, ...]]
    """The processes of each role, in the order in which they start."""
    line: str = ""
    """The release line of Grove's contract that the implementation follows (`discovery.complete`)."""
    release: str = ""
    """The release of Grove whose requirements the implementation must meet."""
    discovered: Mapping[str, str] = field(default_factory=dict)
    """Optional parts of the API that the implementation's CRDs serve (`discovery.complete`)."""
    predecessor: Descriptor | None = None
    """Another implementation from which this one takes over, instead of from an earlier version of itself."""

    @property
    def digest(self) -> str:
        """Return `sha256:` and the digest of the file as canonical JSON. Comments, the order of keys, and the values of
        parameters have no influence."""
        canonical = json.dumps(self.document.value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()

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
        overrides = {name: self.expand(value) for name, value in upgrade.set.items()}
        return msgspec.structs.replace(self, settings={**self.settings, **overrides})

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

    def expand(self, text: str) -> str:
        """Return a text with the placeholders replaced that need no cluster. Those for pods are kept, and others become
        empty."""

        def value(name: str) -> str:
            return f"${{{name}}}" if name in placeholders.POD_LABELS else self.static_value(name) or ""

        return placeholders.expand(text, value)

    def manifests(self, part: Part) -> list[Path]:
        """Return the YAML files of a part of `install`, sorted within each entry. Raises UsageError if an entry matches
        no file."""
        paths: dict[Path, None] = {}
        for index, pattern in enumerate(getattr(self.install, part)):
            expanded = self.expand(pattern)
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


def fill(document: Document, fields: DescriptorFormat, settings: Mapping[str, str]) -> Descriptor:
    """Return a descriptor with the values of its parameters."""

    def expand(text: str) -> str:
        return placeholders.expand(text, lambda name: settings[name.removeprefix("set.")])

    processes = {
        role: (entry,) if isinstance(entry, Process) else tuple(entry) for role, entry in fields.processes.items()
    }
    texts = {"version": expand(fields.version), "contract": expand(fields.contract)}
    texts["scheduler_name"] = expand(fields.scheduler_name)
    content = {**msgspec.structs.asdict(fields), **texts, "processes": processes}
    descriptor = Descriptor(document=document, settings=settings, **content)
    return msgspec.structs.replace(
        descriptor,
        pods=fields.pods.fill(descriptor.expand),
        podgangs=fields.podgangs.fill(descriptor.expand),
        resource_claims=fields.resource_claims.fill(descriptor.expand),
        supplied={name: descriptor.expand(text) for name, text in fields.supplied.items()},
    )
