"""The objects that an operator must create for a PodCliqueSet: the suite's own oracle, read from the specification.

Pure: the input is a set, the output is names, labels, owners and pods (docs/spec/objects.md, sections 1, 2 and 4). The
oracle and the reference share no code, because otherwise their agreement would prove nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from conformance.grove import labels, names, template
from conformance.grove.fields import Document
from conformance.grove.labels import ComponentLabel
from conformance.grove.template import CliqueTemplate, GroupTemplate, SetTemplate

Owner = tuple[str, str]
"""Kind and name of the controller."""


@dataclass(frozen=True)
class Service:
    """The headless Service of a set replica (OBJ-107, OBJ-216, OBJ-240)."""

    name: str
    labels: Mapping[str, str]
    publish_not_ready: bool
    owner: Owner


@dataclass(frozen=True)
class ScalingGroup:
    """A PodCliqueScalingGroup (OBJ-102, OBJ-213)."""

    name: str
    labels: Mapping[str, str]
    owner: Owner
    replicas: int
    min_available: int
    cliques: tuple[str, ...]


@dataclass(frozen=True)
class ExpectedClique:
    """A PodClique, standalone or in a scaling group (OBJ-101, OBJ-103, OBJ-211, OBJ-212)."""

    name: str
    labels: Mapping[str, str]
    owner: Owner
    template: CliqueTemplate
    gang: str
    base_gang: str
    """The gang that a clique of a scaled gang waits for; empty for a clique of a base gang."""
    set_index: int
    group: str
    """Full name of its scaling group; empty for a standalone clique."""
    pods_of_group: int
    """Total number of pods in one replica of its scaling group (OBJ-253)."""


@dataclass(frozen=True)
class ExpectedGang:
    """A PodGang: its PodGroups are the cliques, with their minimums (OBJ-401, OBJ-410, OBJ-411)."""

    name: str
    labels: Mapping[str, str]
    owner: Owner
    minimums: Mapping[str, int]
    """PodGroup name → minReplicas."""
    base: bool


@dataclass(frozen=True)
class ExpectedObjects:
    """All objects of a set, by name."""

    services: Mapping[str, Service]
    groups: Mapping[str, ScalingGroup]
    cliques: Mapping[str, ExpectedClique]
    gangs: Mapping[str, ExpectedGang]

    @property
    def base_gangs(self) -> list[ExpectedGang]:
        """Return the base gangs, one for each replica of the set."""
        return [gang for gang in self.gangs.values() if gang.base]

    @property
    def scaled_gangs(self) -> list[ExpectedGang]:
        """Return the gangs of scaling group replicas whose index is `minAvailable` or higher."""
        return [gang for gang in self.gangs.values() if not gang.base]

    @property
    def pods(self) -> int:
        """Return the number of pods that the set has once all exist."""
        return sum(clique.template.replicas for clique in self.cliques.values())

    def of_gang(self, gang: str) -> list[ExpectedClique]:
        """Return the cliques of a gang."""
        return [clique for clique in self.cliques.values() if clique.gang == gang]


def expected(workload: Document) -> ExpectedObjects:
    """Return the objects of a valid PodCliqueSet that has just been created and has never been scaled."""
    set_template = template.read(workload)
    services, groups, cliques = {}, {}, {}
    gangs: dict[str, ExpectedGang] = {}
    for i in range(set_template.replicas):
        service = _service(set_template, i)
        services[service.name] = service
        members = [_standalone(set_template, i, clique) for clique in set_template.standalone]
        for group in set_template.groups:
            built = _group(set_template, i, group)
            groups[built.name] = built
            members += _members(set_template, i, group)
        for clique in members:
            cliques[clique.name] = clique
        gangs |= _gangs(set_template, i, members)
    return ExpectedObjects(services, groups, cliques, gangs)


def _common(set_template: SetTemplate, component: str, name: str = "") -> dict[str, str]:
    """Return the common labels (OBJ-201 to OBJ-203); a gang has no name label."""
    common = {
        labels.MANAGED_BY: labels.OPERATOR,
        labels.PART_OF: set_template.name,
        labels.COMPONENT: component,
    }
    return {**common, labels.NAME: name} if name else common


def _service(set_template: SetTemplate, i: int) -> Service:
    name = names.service(set_template.name, i)
    index = {labels.SET_INDEX: str(i)}
    return Service(
        name=name,
        labels={**_common(set_template, ComponentLabel.SERVICE, name), **index},
        publish_not_ready=set_template.publish_not_ready,
        owner=("PodCliqueSet", set_template.name),
    )


def _group(set_template: SetTemplate, i: int, group: GroupTemplate) -> ScalingGroup:
    name = names.scaling_group(set_template.name, i, group.name)
    return ScalingGroup(
        name=name,
        labels={**_common(set_template, ComponentLabel.SCALING_GROUP, name), labels.SET_INDEX: str(i)},
        owner=("PodCliqueSet", set_template.name),
        replicas=group.replicas,
        min_available=group.min_available,
        cliques=group.cliques,
    )


def _standalone(set_template: SetTemplate, i: int, clique: CliqueTemplate) -> ExpectedClique:
    name = names.clique(set_template.name, i, clique.name)
    gang = names.base_gang(set_template.name, i)
    return ExpectedClique(
        name=name,
        labels={
            **clique.labels,
            **_common(set_template, ComponentLabel.STANDALONE_CLIQUE, name),
            labels.SET_INDEX: str(i),
            labels.GANG: gang,
        },
        owner=("PodCliqueSet", set_template.name),
        template=clique,
        gang=gang,
        base_gang="",
        set_index=i,
        group="",
        pods_of_group=0,
    )


def _members(set_template: SetTemplate, i: int, group: GroupTemplate) -> Iterator[ExpectedClique]:
    group_name = names.scaling_group(set_template.name, i, group.name)
    base = names.base_gang(set_template.name, i)
    for j in range(group.replicas):
        is_scaled = j >= group.min_available
        gang = names.scaled_gang(group_name, j, group.min_available) if is_scaled else base
        for clique_name in group.cliques:
            name = names.member_clique(group_name, j, clique_name)
            clique = set_template.clique(clique_name)
            member = {
                **clique.labels,
                **_common(set_template, ComponentLabel.MEMBER_CLIQUE, name),
                labels.SET_INDEX: str(i),
                labels.GANG: gang,
                labels.GROUP: group_name,
                labels.GROUP_INDEX: str(j),
            }
            yield ExpectedClique(
                name=name,
                labels={**member, labels.BASE_GANG: base} if is_scaled else member,
                owner=("PodCliqueScalingGroup", group_name),
                template=clique,
                gang=gang,
                base_gang=base if is_scaled else "",
                set_index=i,
                group=group_name,
                pods_of_group=sum(set_template.clique(other).replicas for other in group.cliques),
            )


def _gangs(set_template: SetTemplate, i: int, members: list[ExpectedClique]) -> dict[str, ExpectedGang]:
    base = names.base_gang(set_template.name, i)
    gangs: dict[str, ExpectedGang] = {}
    for clique in members:
        minimums = {other.name: other.template.min_available for other in members if other.gang == clique.gang}
        gangs[clique.gang] = ExpectedGang(
            name=clique.gang,
            labels=_common(set_template, ComponentLabel.GANG),
            owner=("PodCliqueSet", set_template.name),
            minimums=minimums,
            base=clique.gang == base,
        )
    return gangs
