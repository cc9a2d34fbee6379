"""The parts of a descriptor, as its file has them."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta, field

from conformance.formats import Format, Text


class Role(StrEnum):
    """The roles that an implementation can play."""

    OPERATOR = "operator"
    GANG_SCHEDULER = "gang-scheduler"


BY_ROLE = {"propertyNames": {"enum": [*Role]}}
"""The rule that the keys of a mapping are roles, which the generated schema lacks."""
UNIQUE = {"uniqueItems": True}
NOT_EMPTY = {"minProperties": 1}
Start = Literal["processes", "running", "manifests", "helm"]
DEPLOYED_STARTS: tuple[Start, ...] = ("manifests", "helm")
"""The ways of starting an implementation that need a cluster whose nodes run containers."""
Part = Literal["crds", "objects", "webhooks", "manifests"]
"""The fields of `Install` that name files."""
PARTS: tuple[Part, ...] = ("crds", "objects", "webhooks", "manifests")

Command = Annotated[list[str], Meta(min_length=1)]
Namespace = Annotated[
    str,
    Meta(
        pattern="^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
        description="a namespace: lower-case letters, digits, inner hyphens (default: default)",
    ),
]
Variable = Annotated[str, Meta(pattern="^[^=]+$", description="the name of a variable, without =")]
Within = Annotated[float, Meta(gt=0, le=3600)]


class Ready(Format, frozen=True):
    """The signs that a process is ready. If both are given, both must hold. `within` is in seconds."""

    http: (
        Annotated[
            str,
            Meta(
                pattern=r"^http://(127\.0\.0\.1|localhost):",
                description="a URL that starts with http://127.0.0.1: and answers 200 when ready",
            ),
        ]
        | None
    ) = None
    log: Annotated[Text, Meta(description="a regular expression that a line of the log matches when ready")] | None = (
        None
    )
    within: Annotated[Within, Meta(description="seconds until it must be ready (default 60)")] = 60.0


class Stop(Format, frozen=True):
    """Options for stopping a process."""

    grace: Annotated[float, Meta(ge=0, le=3600, description="seconds between SIGTERM and SIGKILL (default 10)")] = 10.0


class Process(Format, frozen=True, kw_only=True):
    """The command, the files and the signs of readiness of one process of a role. All strings may contain
    placeholders."""

    name: Annotated[
        str,
        Meta(
            pattern="^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$",
            description="the name of the process, if the role has several: lower-case letters, digits, inner hyphens",
        ),
    ] = ""
    """The name of the process within the role; empty for a role's only process."""
    argv: Annotated[
        list[
            str
            | Annotated[
                Command,
                Meta(
                    description="an argument, or a list of arguments that is omitted if one of its placeholders is "
                    "empty"
                ),
            ]
        ],
        Meta(
            min_length=1,
            description="the program and its arguments; there is no shell",
            extra_json_schema={
                "prefixItems": [
                    {"type": "string", "minLength": 1, "description": "the program: a path, or a name on PATH"}
                ]
            },
        ),
    ]
    env: Annotated[dict[Variable, str], Meta(description="environment variables in addition to the inherited ones")] = (
        field(default_factory=dict)
    )
    inherit: Annotated[
        list[Variable],
        Meta(
            description="variables of the suite's environment that the process gets besides the harmless ones",
            extra_json_schema=UNIQUE,
        ),
    ] = field(default_factory=list)
    files: Annotated[
        dict[
            Annotated[
                str,
                Meta(
                    pattern="^[A-Za-z0-9][A-Za-z0-9._-]*$",
                    description="a plain file name: letters, digits, dot, _ and -",
                ),
            ],
            str,
        ],
        Meta(description="files written before each start, by name; ${file.NAME} is the path"),
    ] = field(default_factory=dict)
    ready: Annotated[
        Ready,
        Meta(
            description="how to detect that it is ready: http, log or both",
            extra_json_schema={"minProperties": 1, "anyOf": [{"required": ["http"]}, {"required": ["log"]}]},
        ),
    ]
    stop: Annotated[Stop, Meta(description="how to stop it")] = Stop()


class Helm(Format, frozen=True):
    """A Helm release. All strings may contain placeholders."""

    chart: Annotated[Text, Meta(description="a folder or an archive, relative to this file, or oci://…")]
    release: Annotated[
        str,
        Meta(
            pattern="^[a-z0-9]([a-z0-9-]{0,51}[a-z0-9])?$",
            description="the name of the release: lower-case letters, digits, inner hyphens",
        ),
    ]
    namespace: Namespace = "default"
    values: Annotated[list[Text], Meta(description="YAML files with values, relative to this file")] = field(
        default_factory=list
    )
    set: Annotated[dict[str, str], Meta(description="single values as texts, by path")] = field(default_factory=dict)


class Install(Format, frozen=True):
    """Files, folders or globs. Relative paths are relative to the folder of the descriptor."""

    crds: Annotated[
        tuple[Text, ...],
        Meta(description="YAML files of CustomResourceDefinitions: files, folders or globs"),
    ] = ()
    objects: Annotated[
        tuple[Text, ...],
        Meta(description="YAML files of objects of any other kind, with placeholders: files, folders or globs"),
    ] = ()
    webhooks: Annotated[
        tuple[Text, ...],
        Meta(description="YAML files of webhook configurations, with placeholders: files, folders or globs"),
    ] = ()
    manifests: Annotated[
        tuple[Text, ...],
        Meta(description="YAML files of the implementation itself, with placeholders: files, folders or globs"),
    ] = ()
    helm: Annotated[Helm | None, Meta(description="the chart of the implementation")] = None


class Deployment(Format, frozen=True):
    """The Deployment of a role."""

    name: Annotated[Text, Meta(description="the name of the Deployment")]
    namespace: Namespace = "default"
    within: Annotated[Within, Meta(description="seconds until it must be available (default 120)")] = 120.0


class Control(Format, frozen=True):
    """The user's commands that stop and start a role, with KUBECONFIG in their environment."""

    stop: Annotated[Command, Meta(description="a command that returns when it has stopped")]
    start: Annotated[Command, Meta(description="a command that returns when it is ready")]
    kill: Annotated[Command, Meta(description="a command that ends it at once; stop by default")] = field(
        default_factory=list
    )
    inherit: Annotated[
        list[Variable],
        Meta(
            description="variables of the suite's environment that the commands get besides the harmless ones",
            extra_json_schema=UNIQUE,
        ),
    ] = field(default_factory=list)
    within: Annotated[Within, Meta(description="seconds that a command may take (default 120)")] = 120.0


class Metadata(Format, frozen=True):
    """Labels and annotations that the suite adds to objects that it creates."""

    labels: Annotated[Mapping[str, str], Meta(description="label keys and values")] = field(default_factory=dict)
    annotations: Annotated[Mapping[str, str], Meta(description="annotation keys and values")] = field(
        default_factory=dict
    )

    def fill(self, expand: Callable[[str], str]) -> Metadata:
        """Return the metadata with each value expanded."""
        labels = {name: expand(text) for name, text in self.labels.items()}
        return Metadata(labels, {name: expand(text) for name, text in self.annotations.items()})


class ExpectedFailure(Format, frozen=True, omit_defaults=True):
    """A requirement that is known to fail."""

    id: Annotated[str, Meta(pattern="^[A-Z]+-[0-9]{3}$", description="a requirement, for example CORE-001")]
    reason: Annotated[Text, Meta(description="one line that says why it fails")]
    link: Annotated[str | None, Meta(description="where it is discussed")] = None
    expires: Annotated[datetime.date | None, Meta(description="the day (YYYY-MM-DD) from which it counts as stale")] = (
        None
    )

    def has_expired(self, today: datetime.date) -> bool:
        """Return whether the entry has expired by this day."""
        return self.expires is not None and self.expires <= today


class Upgrade(Format, frozen=True):
    """An earlier version from which this implementation can be upgraded: the same processes with other parameters."""

    name: Annotated[
        str,
        Meta(
            pattern="^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$",
            description="lower-case letters, digits, dots and inner hyphens",
        ),
    ]
    about: Annotated[Text, Meta(description="one line that describes the earlier version")]
    set: Annotated[
        dict[str, str], Meta(min_length=1, description="parameters that select the earlier version, by name")
    ]
    libraries: Annotated[
        Literal["0.34", "0.35", "0.36"] | None,
        Meta(
            description="minor version of the Kubernetes libraries with which the earlier version computed Grove's "
            "hashes"
        ),
    ] = None
