"""The content of a PodCliqueSet with admission's defaults (docs/spec/admission.md, section 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conformance.grove.fields import Document, at, items, mapping, name, number, text, texts, truth


@dataclass(frozen=True)
class CliqueTemplate:
    """One entry of `spec.template.cliques`."""

    name: str
    role: str
    replicas: int
    min_available: int
    pod_spec: Document
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    starts_after: tuple[str, ...]
    """Names of clique templates; used only with the startup type Explicit (OBJ-602)."""
    entry: Document
    """The original entry, for checks of other fields."""


@dataclass(frozen=True)
class GroupTemplate:
    """One entry of `spec.template.podCliqueScalingGroups`."""

    name: str
    cliques: tuple[str, ...]
    replicas: int
    min_available: int
    """minAvailable: replicas with a lower index belong to the base gang, and every other replica has its own scaled
    gang (OBJ-401)."""
    entry: Document


@dataclass(frozen=True)
class SetTemplate:
    """A PodCliqueSet."""

    name: str
    namespace: str
    replicas: int
    publish_not_ready: bool
    cliques: tuple[CliqueTemplate, ...]
    groups: tuple[GroupTemplate, ...]
    startup: str
    """cliqueStartupType."""
    document: Document
    """The original set."""

    def clique(self, name: str) -> CliqueTemplate:
        """Return a clique template by name. Raises KeyError if there is none."""
        for clique in self.cliques:
            if clique.name == name:
                return clique
        raise KeyError(name)

    @property
    def standalone(self) -> tuple[CliqueTemplate, ...]:
        """Return the cliques that are not in a scaling group, in their order."""
        members = {member for group in self.groups for member in group.cliques}
        return tuple(clique for clique in self.cliques if clique.name not in members)


def read(workload: Document) -> SetTemplate:
    """Read a valid PodCliqueSet, either as submitted or as stored."""
    template = at(workload, "spec", "template")
    publish = truth(template, "headlessServiceConfig", "publishNotReadyAddresses")
    return SetTemplate(
        name=name(workload),
        namespace=text(workload, "metadata", "namespace"),
        replicas=number(workload, "spec", "replicas") or 0,  # DEF-01: not 1
        publish_not_ready=publish is not False,  # DEF-04, DEF-09
        cliques=tuple(_clique(entry) for entry in items(template, "cliques")),
        groups=tuple(_group(entry) for entry in items(template, "podCliqueScalingGroups")),
        startup=text(template, "cliqueStartupType") or "CliqueStartupTypeAnyOrder",  # DEF-03
        document=workload,
    )


def _clique(entry: Document) -> CliqueTemplate:
    spec = at(entry, "spec")
    replicas = number(spec, "replicas") or 1  # DEF-10
    min_available = number(spec, "minAvailable")
    pod_spec = at(spec, "podSpec")
    return CliqueTemplate(
        name=text(entry, "name"),
        role=text(spec, "roleName"),
        replicas=replicas,
        min_available=replicas if min_available is None else min_available,  # DEF-11
        pod_spec=pod_spec if isinstance(pod_spec, Mapping) else {},
        labels=mapping(entry, "labels"),
        annotations=mapping(entry, "annotations"),
        starts_after=tuple(texts(spec, "startsAfter")),
        entry=entry,
    )


def _group(entry: Document) -> GroupTemplate:
    replicas, min_available = number(entry, "replicas"), number(entry, "minAvailable")
    return GroupTemplate(
        name=text(entry, "name"),
        cliques=tuple(texts(entry, "cliqueNames")),
        replicas=1 if replicas is None else replicas,  # DEF-05
        min_available=1 if min_available is None else min_available,
        entry=entry,
    )
