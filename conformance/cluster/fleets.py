"""Fleets: nodes of one or several profiles, as requested on a command line or by a test.

tiny:10            ten nodes
gb200-nvl72:2racks two full racks of 18
dgx-h100:1block    a block of 8 racks of 4
mixed              a fleet of several profiles, from `kwok-profiles/fleets/`
./mine.yaml:10     ten nodes of the user's own profile: a file like those in `kwok-profiles/nodes/`
./fleet.yaml       the user's own fleet: a file like those in `kwok-profiles/fleets/`, or one of `cluster capture`
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

from msgspec import Meta, field

from conformance import bounded, documents, formats
from conformance.cluster import node_profiles, nodes, resizing
from conformance.cluster.node_profiles import LabelValue, NodeProfile, ProfileFormat
from conformance.cluster.nodes import KEYS, Keys, Manifest
from conformance.cluster.state import NAME
from conformance.data import folder
from conformance.documents import Document
from conformance.errors import UsageError
from conformance.formats import Format, Text
from conformance.suggestions import explain_missing

_REQUEST = re.compile(r"(?P<name>[a-z0-9-]+|.+\.ya?ml)(:(?P<count>[1-9][0-9]*)(?P<unit>|nodes?|racks?|blocks?))?")
_FLEET = re.compile(r"^parts\s*:", re.MULTILINE)
"""The field by which a file is a fleet, and not a profile."""
_SUFFIXES = (".yaml", ".yml")
OPTION = "--nodes"
MAX_NODES = 10_000
"""Maximum number of nodes in one argument, twice what Kubernetes supports in a cluster."""
EXAMPLES = "for example tiny:10, gb200-nvl72:2racks, mixed, ./mine.yaml:10 or ./fleet.yaml"


@dataclass(frozen=True)
class FleetRequest:
    """A number of units of one profile. A unit is a node, a rack or a block, and has `size` nodes."""

    profile: NodeProfile
    units: int
    size: int


@dataclass(frozen=True)
class FleetPart:
    """Nodes of one profile in a fleet. `location` are labels for the place of all of them, and `occupied` is the number
    of their GPUs that are taken."""

    profile: NodeProfile
    nodes: int
    block: str = ""
    location: Mapping[str, str] | None = None
    occupied: int = 0


class PartFormat(Format, frozen=True):
    """A part of a fleet, as written."""

    profile: Annotated[str, Meta(description="a node profile")]
    nodes: Annotated[int, Meta(ge=1)] | None = None
    racks: Annotated[int, Meta(ge=1, description="number of full racks")] | None = None
    block: Annotated[
        str,
        Meta(
            pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", description="the block that these nodes share with other parts"
        ),
    ] = ""
    labels: (
        Annotated[
            dict[str, LabelValue],
            Meta(description="labels for the place of these nodes, instead of a zone, blocks and racks of the profile"),
        ]
        | None
    ) = None
    occupied: Annotated[
        int,
        Meta(
            ge=1,
            le=256,
            description="how many GPUs of each of these nodes are taken, as by --occupied",
        ),
    ] = 0


class DeviceClass(Format, frozen=True):
    """A DeviceClass of the cluster."""

    name: Text
    extended_resource_name: (
        Annotated[Text, Meta(description="the extended resource that its devices can serve")] | None
    ) = None
    selectors: Annotated[list[Text], Meta(description="CEL expressions for its devices")] = field(default_factory=list)

    def manifest(self) -> Manifest:
        """Return the object."""
        spec: Manifest = {"selectors": [{"cel": {"expression": text}} for text in self.selectors]}
        if self.extended_resource_name:
            spec["extendedResourceName"] = self.extended_resource_name
        metadata = {"name": self.name}
        return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": metadata, "spec": spec}


class FleetFormat(Format, frozen=True):
    """Nodes of several profiles in one topology."""

    description: Annotated[Text, Meta(description="one sentence that describes the fleet")]
    parts: Annotated[
        list[
            Annotated[PartFormat, Meta(extra_json_schema={"oneOf": [{"required": ["nodes"]}, {"required": ["racks"]}]})]
        ],
        Meta(min_length=1),
    ]
    profiles: Annotated[
        dict[Annotated[str, Meta(pattern="^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$")], ProfileFormat],
        Meta(description="node profiles of this fleet alone, by name, in the form of nodes.schema.json"),
    ] = field(default_factory=dict)
    device_classes: Annotated[list[DeviceClass], Meta(description="DeviceClasses of the cluster")] = field(
        default_factory=list
    )


@dataclass(frozen=True)
class Fleet:
    """Nodes of one or several profiles in one topology."""

    name: str
    description: str
    parts: tuple[FleetPart, ...]
    device_classes: tuple[Manifest, ...] = dataclasses.field(default=(), compare=False)


def names() -> list[str]:
    """Return the names of all fleets that have several profiles."""
    return sorted(path.stem for path in _fleets().glob("*.yaml"))


def requested_nodes(
    argument: str, pool: str = "", keys: Keys = KEYS, *, used_names: Collection[str] = (), location: str = OPTION
) -> list[Manifest]:
    """Return the nodes that an argument requests: the first nodes whose names are not in `used_names`. A rack or block
    is used only if none of its nodes exists yet. `location` names the argument in messages. Raises UsageError if the
    argument is invalid."""
    request = _parse(argument, location)
    if isinstance(request, Fleet):
        all_nodes = manifests(request, pool, keys)
        if any(manifest["metadata"]["name"] in used_names for manifest in all_nodes):
            raise UsageError(
                f"nodes of the fleet {request.name} exist", where=location, hint="a cluster has it once only"
            )
        return all_nodes
    existing = resizing.indices(nodes.node_stem(request.profile, pool), used_names)
    free_indices = resizing.first_free(existing, request.units, request.size)
    return [nodes.node_manifest(request.profile, index, pool, keys=keys) for index in free_indices]


def requested_classes(argument: str, *, location: str = OPTION) -> list[Manifest]:
    """Return the DeviceClasses of the fleet that an argument requests. Raises UsageError if the argument is invalid."""
    request = _parse(argument, location)
    return list(request.device_classes) if isinstance(request, Fleet) else []


def chosen_nodes(argument: str, names: Collection[str], pool: str = "", *, location: str = OPTION) -> list[str]:
    """Return the nodes among `names` that an argument selects: a node, a fleet, or the last nodes, racks or blocks of a
    profile. Raises UsageError if there are too few."""
    if argument in names:
        return [argument]
    if ":" not in argument and not argument.endswith(_SUFFIXES) and argument not in _all_names():
        raise UsageError(
            f"unknown node {argument!r}", where=location, hint=documents.suggestion(argument, (*names, *_all_names()))
        )
    request = _parse(argument, location)
    if isinstance(request, Fleet):
        members = [manifest["metadata"]["name"] for manifest in manifests(request, pool)]
        members = [name for name in members if name in names]
        if not members:
            raise UsageError(f"no node of the fleet {request.name} exists", where=location)
        return members
    stem = nodes.node_stem(request.profile, pool)
    existing = resizing.indices(stem, names)
    last_indices = resizing.last_complete(existing, request.units, request.size)
    if len(last_indices) < request.units * request.size:
        hint = f"ask for fewer than {argument}" if last_indices else "name nodes that exist, with their --pool"
        raise UsageError(f"only {len(last_indices)} such nodes exist", where=location, hint=hint)
    return [f"{stem}-{index}" for index in last_indices]


def _parse(argument: str, location: str) -> FleetRequest | Fleet:
    """Return the request that an argument makes. Raises UsageError if the argument is invalid."""
    match = _REQUEST.fullmatch(argument)
    if match is None:
        raise UsageError(f"{argument!r} is not PROFILE:COUNT", where=location, hint=EXAMPLES)
    name, count, unit = match["name"], match["count"], (match["unit"] or "").rstrip("s")
    profile: NodeProfile | Fleet
    if name in names():
        profile = fleet(name)
    elif name.endswith(_SUFFIXES):
        profile = _profile_or_fleet_from_file(Path(name).expanduser(), location)
    else:
        profile = _built_in_profile(name, location)
    if isinstance(profile, Fleet):
        if count is not None:
            raise UsageError(f"the fleet {profile.name} has a size of its own", where=location, hint=f"write {name}")
        return profile
    request = FleetRequest(profile, int((count or "1")[:9]), _nodes_per_unit(profile, unit))
    if request.units * request.size > MAX_NODES or len(count or "") > 9:
        raise UsageError(
            f"{argument[:40]!r} asks for more than {MAX_NODES:,} nodes", where=location, hint="ask for fewer"
        )
    return request


def _built_in_profile(name: str, location: str) -> NodeProfile:
    if name not in node_profiles.names():
        raise UsageError(
            f"unknown node profile {name!r}", where=location, hint=documents.suggestion(name, _all_names())
        )
    return node_profiles.profile(name)


def _all_names() -> list[str]:
    """Return the names of all profiles and fleets."""
    return [*node_profiles.names(), *names()]


def _profile_or_fleet_from_file(path: Path, location: str) -> NodeProfile | Fleet:
    if not path.is_file():
        problem, missing_hint = ("is a folder", "") if path.is_dir() else explain_missing(path)
        hint = missing_hint or "give the path of a node profile (docs/fake-cluster.md)"
        raise UsageError(problem, where=f"{location} {path}", hint=hint)
    if not NAME.fullmatch(path.stem):
        hint = "nodes are named after it: use lower-case letters, digits and inner hyphens"
        raise UsageError(f"{path.stem!r} is not a valid name for nodes", where=f"{location} {path}", hint=hint)
    text = bounded.text(path, bounded.MAX_MANIFEST_BYTES, documents.display_path(path))
    return load(path) if _FLEET.search(text) else node_profiles.load(path)


@cache
def fleet(name: str) -> Fleet:
    """Return the fleet `name`. Raises UsageError if there is none, or if its file is wrong (file, line, field)."""
    path = _fleets() / f"{name}.yaml"
    if not path.is_file():
        raise UsageError(f"unknown fleet {name!r}", hint=documents.suggestion(name, names()))
    return load(path)


def load(path: Path) -> Fleet:
    """Read and check one fleet file. Raises UsageError if the file is invalid."""
    document, file = formats.read(path, FleetFormat, max_bytes=bounded.MAX_MANIFEST_BYTES)
    own_profiles = {
        name: node_profiles.resolve(profile, name, document, "profiles", name)
        for name, profile in file.profiles.items()
    }
    fleet_parts: list[FleetPart] = []
    for index, entry in enumerate(file.parts):
        part = _part(document, index, entry, own_profiles)
        if _kind(part) in [_kind(earlier_part) for earlier_part in fleet_parts]:
            location = document.location("parts", index, "profile")
            raise UsageError("duplicate profile", where=location, hint="add the counts up")
        fleet_parts.append(part)
    if sum(part.nodes for part in fleet_parts) > MAX_NODES:
        raise UsageError(
            f"has more than {MAX_NODES:,} nodes", where=document.location("parts"), hint="reduce the counts"
        )
    classes = tuple(entry.manifest() for entry in file.device_classes)
    return Fleet(path.stem, file.description, tuple(fleet_parts), classes)


def _part(document: Document, index: int, entry: PartFormat, own_profiles: Mapping[str, NodeProfile]) -> FleetPart:
    name = entry.profile
    if name not in own_profiles and name not in node_profiles.names():
        hint = documents.suggestion(name, [*own_profiles, *node_profiles.names()])
        location = document.location("parts", index, "profile")
        raise UsageError(f"unknown node profile {name!r}", where=location, hint=hint)
    profile = own_profiles[name] if name in own_profiles else node_profiles.profile(name)
    count = entry.nodes or (entry.racks or 0) * _nodes_per_unit(profile, "rack")
    return FleetPart(profile, count, entry.block, entry.labels, entry.occupied)


def _kind(part: FleetPart) -> tuple[str, Mapping[str, str] | None, int]:
    return part.profile.name, part.location, part.occupied


def manifests(fleet_of_profiles: Fleet, pool: str = "", keys: Keys = KEYS) -> list[Manifest]:
    """Return all nodes of a fleet, profile by profile."""
    return list(_manifests(fleet_of_profiles, pool, keys))


def _manifests(fleet_of_profiles: Fleet, pool: str, keys: Keys) -> Iterator[Manifest]:
    counts: Counter[str] = Counter()
    for part in fleet_of_profiles.parts:
        start = counts[part.profile.name]
        counts[part.profile.name] += part.nodes
        for index in range(start, start + part.nodes):
            yield nodes.node_manifest(
                part.profile,
                index,
                pool,
                fleet=fleet_of_profiles.name,
                block=part.block,
                location=part.location,
                occupied=part.occupied,
                keys=keys,
            )


def label_keys(arguments: Iterable[str]) -> Keys:
    """Return label keys from arguments such as `rack=example.com/nvlink-domain`. Raises UsageError if an argument is
    invalid."""
    key_by_level: dict[str, str] = {}
    for argument in arguments:
        level, equals, key = argument.partition("=")
        if level not in Keys.__dataclass_fields__ or not equals or not key:
            hint = f"write LEVEL=KEY, the level one of {', '.join(Keys.__dataclass_fields__)}"
            raise UsageError(f"{argument!r} is not LEVEL=KEY", where="--level", hint=hint)
        key_by_level[level] = key
    return Keys(**key_by_level)


def _nodes_per_unit(profile: NodeProfile, unit: str) -> int:
    """Return the number of nodes of a profile in a unit."""
    if unit in ("", "node"):
        return 1
    if not profile.nodes_per_rack:
        raise UsageError(f"nodes of the profile {profile.name} are in no {unit}", hint="give a number of nodes")
    return profile.nodes_per_rack * (profile.racks_per_block if unit == "block" else 1)


def _fleets() -> Path:
    return folder("kwok-profiles") / "fleets"
