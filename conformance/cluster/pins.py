"""The pinned programs of the fake cluster (`pins/assets.yaml`) for this platform.

Pure, except for reading that file and the environment: GROVE_CONFORMANCE_PINS names another file of the same form, and
GROVE_CONFORMANCE_RELEASES_<SITE> another site.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from msgspec import Meta, field

from conformance import documents, formats
from conformance.documents import Document
from conformance.errors import UsageError
from conformance.formats import Format, Text

PINS = Path(__file__).with_name("pins")
VARIABLE = "GROVE_CONFORMANCE_PINS"
KUBERNETES = "kubernetes"
"""The group of the default version of Kubernetes. The groups of other versions are named after their minor version:
`kubernetes-1.37`."""
NO_DOWNLOADS = "none"
"""The value of GROVE_CONFORMANCE_RELEASES_<SITE> that disables downloads from a site."""
PROGRAMS = {
    KUBERNETES: ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"),
    "kwok": ("kwok", "kwokctl"),
    "etcd": ("etcd",),
}
"""The programs of each product."""
_SYSTEMS = {"Linux": "linux", "Darwin": "darwin"}
_MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


class ProgramFormat(Format, frozen=True, kw_only=True):
    """A program, as the file with the pins has it."""

    package: Annotated[Text, Meta(description="Go package of a build")]
    site: Annotated[str | None, Meta(description="name of the site; by default that of the group")] = None
    file: Annotated[Text | None, Meta(description="path of the file on the site")] = None
    image: Annotated[Text | None, Meta(description="name of the image in the registry")] = None
    member: Annotated[Text, Meta(description="path of the program in the archive or image")] = ""
    digests: dict[
        Annotated[
            str,
            Meta(pattern="^(linux|darwin)(-(amd64|arm64))?$", description="a platform such as linux-amd64, or linux"),
        ],
        Annotated[
            str,
            Meta(pattern="^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$", description="sha256:HEX or sha512:HEX"),
        ],
    ] = field(default_factory=dict)


class GroupFormat(Format, frozen=True):
    """The programs of one release, as the file has them."""

    version: Annotated[str, Meta(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$", description="MAJOR.MINOR.PATCH")]
    programs: dict[
        str,
        Annotated[
            ProgramFormat,
            Meta(extra_json_schema={"oneOf": [{"required": ["file"]}, {"required": ["image", "member", "site"]}]}),
        ],
    ]
    ldflags: Annotated[str, Meta(description="linker flags of a build")] = ""


class PinsFormat(Format, frozen=True):
    """The programs of the fake cluster: versions, official releases, digests."""

    sites: Annotated[
        dict[
            Annotated[str, Meta(pattern="^[a-z]+$", description="lower-case letters")],
            Annotated[str, Meta(pattern="^https?://[^/]", description="an http:// or https:// URL")],
        ],
        Meta(description="name: base URL"),
    ]
    groups: Annotated[
        dict[
            Annotated[
                str,
                Meta(
                    pattern=r"^(kubernetes(-[0-9]+\.[0-9]+)?|kwok|etcd)$",
                    description="kubernetes, kwok, etcd, or kubernetes-MAJOR.MINOR for another version",
                ),
            ],
            GroupFormat,
        ],
        Meta(extra_json_schema={"required": [*PROGRAMS]}),
    ]


@dataclass(frozen=True)
class Site:
    """A site of official releases. `variable` is the environment variable that replaces the site."""

    variable: str
    base: str

    @property
    def root(self) -> str:
        """Return the scheme and host of the site, which are used to probe it."""
        parts = urlsplit(self.base)
        return f"{parts.scheme}://{parts.netloc}"


@dataclass(frozen=True)
class Program:
    """One program. `file` is its path on the site, or the name of its image there. `member` is its path in the archive
    or image. `digest` is the digest of the file or of the image's index, such as `sha256:…`; if it is empty, no digest
    is pinned and the program is built."""

    name: str
    group: ReleaseGroup
    package: str
    site: Site
    file: str
    member: str
    digest: str
    image: bool = False

    @property
    def url(self) -> str:
        """Return the address of the official release file, or of the index of the image."""
        return f"{self.repository}/manifests/{self.digest}" if self.image else f"{self.site.base}/{self.file}"

    @property
    def repository(self) -> str:
        """Return the address of the image in the OCI distribution API."""
        return f"{self.site.root}/v2{urlsplit(self.site.base).path}/{self.file}"


@dataclass(frozen=True)
class ReleaseGroup:
    """The programs of one release, which are built from one Go module folder."""

    name: str
    version: str
    ldflags: str

    @property
    def product(self) -> str:
        """Return the product of the release: `kubernetes`, `kwok` or `etcd`."""
        return self.name.partition("-")[0]

    @property
    def minor(self) -> str:
        """Return MAJOR.MINOR of the version."""
        return minor_of(self.version)

    @property
    def module(self) -> Path:
        """Return the folder with go.mod and go.sum."""
        return PINS / self.name


def minor_of(version: str) -> str:
    """Return MAJOR.MINOR of a version such as `1.36.3` or `1.36.3-gke.100`."""
    return ".".join(version.split(".")[:2])


def platform_name() -> str:
    """Return the operating system and architecture in Go's terms, such as `linux-amd64`. Raises UsageError for an
    unsupported platform."""
    system, machine = platform.system(), platform.machine()
    if system not in _SYSTEMS or machine.lower() not in _MACHINES:
        raise UsageError(
            f"the fake cluster does not run on {system} {machine}",
            hint="use Linux or macOS on amd64 or arm64, or give every program by GROVE_CONFORMANCE_ASSET_<NAME>",
        )
    return f"{_SYSTEMS[system]}-{_MACHINES[machine.lower()]}"


def source() -> Path:
    """Return the file with the pins: the suite's own file, or the user's."""
    return Path(os.environ.get(VARIABLE) or PINS / "assets.yaml").expanduser()


def load(platform_: str, kubernetes: str = "") -> tuple[Program, ...]:
    """Return the programs of a cluster for `platform_`, in the order in which builds share most of the compile cache.

    `kubernetes` is as for `release`. Programs that are missing in the group of this version are taken from the default
    version (kubectl works with a neighboring minor version). Raises UsageError for an unknown version, a wrong file or
    a wrong site in the environment.
    """
    programs = all_programs(platform_)
    group = _matching_group(programs, kubernetes)
    names = {program.name for program in programs if program.group == group}
    return tuple(
        program
        for program in programs
        if program.group.product != KUBERNETES
        or program.group == group
        or (program.group.name == KUBERNETES and program.name not in names)
    )


def releases(platform_: str) -> tuple[ReleaseGroup, ...]:
    """Return the pinned versions of Kubernetes, the default version first. Raises UsageError as `all_programs`."""
    return _releases(all_programs(platform_))


def release(platform_: str, kubernetes: str = "") -> ReleaseGroup:
    """Return the pinned version that `kubernetes` names: `1.37`, `1.37.2`, `v1.37.2`, or the default version if it is
    empty. Raises UsageError if there is none."""
    return _matching_group(all_programs(platform_), kubernetes)


def all_programs(platform_: str) -> tuple[Program, ...]:
    """Return every pinned program for `platform_`, for all versions of Kubernetes.

    Raises UsageError for a wrong file or a wrong site in the environment.
    """
    document, content = formats.read(source(), PinsFormat)
    system, arch = platform_.split("-")
    sites = {name: _site(name, base) for name, base in content.sites.items()}
    programs = []
    for group_name, entry in content.groups.items():

        def fill(text: str, version: str = entry.version) -> str:
            return text.replace("{version}", version).replace("{os}", system).replace("{arch}", arch)

        group = ReleaseGroup(group_name, entry.version, fill(entry.ldflags))
        _require_programs(group, entry.programs, document)
        for name, fields in entry.programs.items():
            site = sites.get(fields.site or group_name)
            if site is None:
                location = document.location("groups", group_name, "programs", name)
                raise UsageError("its site is not one of `sites`", where=location, hint="add `site`")
            programs.append(
                Program(
                    name=name,
                    group=group,
                    package=fields.package,
                    site=site,
                    file=fill(fields.file or fields.image or ""),
                    member=fill(fields.member),
                    digest=_digest(fields.digests, platform_) if site.base != NO_DOWNLOADS else "",
                    image=fields.image is not None,
                )
            )
        if group.name not in (group.product, f"{group.product}-{group.minor}"):
            raise UsageError(
                f"{group.version} is not a version of {group.name}",
                where=document.location("groups", group_name, "version"),
                hint=f"name the group {group.product}-{group.minor}",
            )
    return tuple(programs)


def _require_programs(group: ReleaseGroup, programs: Collection[str], document: Document) -> None:
    """Raise UsageError unless a group has the programs of its product. The kubectl of a version may be the default
    one."""
    names, parent = PROGRAMS[group.product], ("groups", group.name, "programs")
    for name in programs:
        if name not in names:
            raise UsageError(
                "unknown field", where=document.location(*parent, name), hint=documents.suggestion(name, names)
            )
    for name in names:
        if name not in programs and (name != "kubectl" or group.name == KUBERNETES):
            raise UsageError(f'the field "{name}" is missing', where=document.location(*parent), hint="add it")


def _releases(programs: tuple[Program, ...]) -> tuple[ReleaseGroup, ...]:
    groups = dict.fromkeys(program.group for program in programs if program.group.product == KUBERNETES)
    return tuple(sorted(groups, key=lambda group: group.name != KUBERNETES))


def _matching_group(programs: tuple[Program, ...], kubernetes: str) -> ReleaseGroup:
    groups = _releases(programs)
    version = kubernetes.removeprefix("v")
    for group in groups:
        if version in ("", group.version, group.minor):
            return group
    pinned_versions = ", ".join(group.version + " (default)" * (group.name == KUBERNETES) for group in groups)
    raise UsageError(
        f"Kubernetes {kubernetes!r} is not pinned", where="--kubernetes", hint=f"pinned: {pinned_versions}"
    )


def _site(name: str, base: str) -> Site:
    variable = f"GROVE_CONFORMANCE_RELEASES_{name.upper()}"
    address = os.environ.get(variable) or base
    if address != NO_DOWNLOADS and not re.match("https?://[^/]", address):
        hint = f"give an http:// or https:// URL, or {NO_DOWNLOADS} to download nothing from there"
        raise UsageError(f"{address!r} is not the address of a site", where=variable, hint=hint)
    return Site(variable, address.rstrip("/"))


def _digest(digests: Mapping[str, str], platform_: str) -> str:
    return digests.get(platform_) or digests.get(platform_.split("-")[0]) or ""
