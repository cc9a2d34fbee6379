"""A simulated replica of a set, against which coherent updates are planned without a control plane.

The simulation performs the operator's work between two plans. It deletes members that their gang no longer holds, and
then creates the members that a gang lacks, from the current template.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from reference_impl.api.coherent import GangLayout
from reference_impl.plan import layout as layouts
from reference_impl.plan.coherent import progress
from reference_impl.plan.coherent.planner import Advance, Complete, Step, converged_layout, next_step
from reference_impl.plan.coherent.scope import ReplicaState, scope
from reference_impl.plan.components import Component, Key, Kind, clique, group
from reference_impl.plan.epochs import EpochSource
from reference_impl.plan.fitting import fitted_layout
from reference_impl.plan.layout import Entry, EntryGang, Layout
from reference_impl.plan.observed import Observed, ObservedPod, ObservedReplica


def components(text: str) -> list[Component]:
    """Return components written in the specification's notation.

    `F5/2/2 P4/1/1` stands for the replicas, `minAvailable` and, optionally, `maxUnavailable` of each component. `F`,
    `G` and `H` are standalone cliques; all other letters are scaling groups.
    """
    result = []
    for word in text.split():
        replicas, minimum, *optional_numbers = (int(number) for number in word[1:].split("/"))
        make = clique if word[0] in "FGH" else group
        result.append(make(word[0], replicas, minimum, optional_numbers[0] if optional_numbers else None))
    return result


def written(gang: EntryGang) -> str:
    """Return the contents of a gang in the specification's notation: `F2 P0 D0,1`."""
    pods = [f"{name}{count}" for name, count in sorted(gang.cliques.items())]
    indices = [f"{name}{','.join(map(str, members))}" for name, members in sorted(gang.groups.items())]
    return " ".join(pods + indices)


def gangs(layout: Layout) -> list[str]:
    """Return the contents of all gangs, in the order of their creation."""
    return [written(gang) for entry in layout for gang in layouts.gangs(entry)]


def table(layout: Layout) -> str:
    """Return the gangs of a layout in one line, as in the specification's traces: `F3 | P1 | F2 P0@v1`. Gangs of v0 are
    not marked."""
    return " | ".join(
        written(gang) + ("" if entry.generation == "v0" else f"@{entry.generation}")
        for entry in layout
        for gang in layouts.gangs(entry)
    )


@dataclass
class Member:
    """A pod, or a replica of a scaling group."""

    entry: str
    version: str
    ready: bool = False
    born: int = 0
    index: int = -1


@dataclass
class Replica:
    """A replica of a set. Versions of components and generations are strings."""

    components: list[Component]
    generation: str = "v0"
    gang_layout: GangLayout = GangLayout.PER_STEP
    layout: Layout = ()
    versions: dict[Key, str] = field(default_factory=dict)
    """The current version of each component's template."""
    applied: dict[Key, str] = field(default_factory=dict)
    """The version to which each component's objects are updated. From the first sub-step on, it is the current
    version."""
    templates: dict[str, dict[Key, str]] = field(default_factory=dict)
    """Generation → the version of each component."""
    scope: set[Key] = field(default_factory=set)
    members: dict[Key, list[Member]] = field(default_factory=dict)
    been_ready: set[str] = field(default_factory=set)
    works: Callable[[Key, str], bool] = lambda key, version: True
    """Whether the pods of a version of a component become Ready."""
    clock: int = 1_700_000_000_000_000_000
    born: int = 0

    def __post_init__(self) -> None:
        self._source = EpochSource(lambda: self.clock)
        for component in self.components:
            self.versions.setdefault(component.key, self.generation)
            self.applied.setdefault(component.key, self.versions[component.key])
            self.members.setdefault(component.key, [])
        self.templates[self.generation] = dict(self.versions)
        if not self.layout:
            self.layout = layouts.first_layout(self.components, self.generation, self.epochs)

    def epochs(self, count: int) -> list[str]:
        self.clock += 1_000
        return self._source.take(count, [entry.key for entry in self.layout])

    def fit(self) -> None:
        """Fit the layout to the sizes of the components, as between updates."""
        self.layout = fitted_layout(self.layout, self.components, self.observed(), self.generation, self.epochs)

    def component(self, key: Key) -> Component:
        return next(component for component in self.components if component.key == key)

    def in_scope(self) -> list[Component]:
        return [component for component in self.components if component.key in self.scope]

    def change(self, generation: str, versions: dict[Key, str] | Iterable[Key]) -> None:
        """Set a new template as the set's reconciler records it, with the changed components added to the scope."""
        new = versions if isinstance(versions, dict) else dict.fromkeys(versions, generation)
        self.generation = generation
        self.scope |= {key for key, version in new.items() if self.versions[key] != version}
        self.versions |= new
        self.templates[generation] = dict(self.versions)

    def retarget(self, new: dict[Key, str]) -> None:
        """Set a new template, and derive the scope from it.

        The versions of all components name the generation, so reverting to an earlier template yields the same
        generation.
        """
        self.versions |= new
        self.generation = ",".join(version for _, version in sorted(self.versions.items()))
        self.templates[self.generation] = dict(self.versions)
        changed_keys = {key for key, version in self.versions.items() if self.applied[key] != version}
        self.scope = set(scope(changed_keys, self.scope, [ReplicaState(self.layout, self.observed())], self.generation))
        if not self.scope:
            self.applied |= self.versions

    def observed(self) -> Observed:
        pods: dict[str, list[ObservedPod]] = {}
        replicas: dict[str, dict[int, ObservedReplica]] = {}
        for key, members in self.members.items():
            for number, member in enumerate(members):
                is_current = member.version == self.versions[key]
                if key.kind is Kind.CLIQUE:
                    pod = ObservedPod(
                        f"{key.name}-{number}", member.entry, member.ready, is_current, (member.ready, -member.born)
                    )
                    pods.setdefault(key.name, []).append(pod)
                else:
                    replica = ObservedReplica(member.entry, member.ready, is_current)
                    replicas.setdefault(key.name, {})[member.index] = replica
        equal_generations = {
            key: frozenset(
                generation
                for generation, template_versions in self.templates.items()
                if template_versions[key] == self.versions[key]
            )
            for key in self.versions
        }
        return Observed(pods, replicas, frozenset(self.been_ready), equal_generations)

    def available(self, key: Key) -> int:
        return sum(member.ready for member in self.members[key])

    def plan(self) -> Step:
        return next_step(self.layout, self.in_scope(), self.observed(), self.generation, self.gang_layout, self.epochs)

    def act(self) -> None:
        """Delete members that their gang no longer holds, and then create missing members."""
        for component in self.components:
            key = component.key
            if key.kind is Kind.CLIQUE:
                self._delete_pods(key)
                self._create_pods(key)
            else:
                self._replace_indices(component)
        self.been_ready &= {entry.key for entry in self.layout}

    def _delete_pods(self, key: Key) -> None:
        for key_of_entry in {member.entry for member in self.members[key]}:
            entry = find(self.layout, key_of_entry)
            desired = entry.count(key) if entry else 0
            members = sorted(
                (member for member in self.members[key] if member.entry == key_of_entry),
                key=lambda m: (m.ready, -m.born),
            )
            for member in members[: max(0, len(members) - desired)]:
                self.members[key].remove(member)

    def _create_pods(self, key: Key) -> None:
        for entry in self.layout:
            members = [member for member in self.members[key] if member.entry == entry.key]
            if self.refills(entry, key):
                for _ in range(entry.count(key) - len(members)):
                    self._create(key, entry.key)

    def _replace_indices(self, component: Component) -> None:
        key = component.key
        remaining = [m for m in self.members[key] if entry_of_index(self.layout, key.name, m.index) == m.entry]
        self.members[key] = remaining
        for entry in self.layout:
            for index in entry.groups.get(key.name, ()):
                exists = any(member.index == index for member in self.members[key])
                if not exists and self.refills(entry, key):
                    self._create(key, entry.key, index)

    def refills(self, entry: Entry, key: Key) -> bool:
        """Return whether a lost member is replaced in its gang, which requires that the gang was created for the
        current template."""
        return self.templates[entry.generation][key] == self.versions[key]

    def _create(self, key: Key, entry: str, index: int = -1) -> None:
        self.born += 1
        self.members[key].append(Member(entry, self.versions[key], False, self.born, index))

    def settle(self) -> None:
        """Make all pods Ready that can become Ready, and update the gangs' conditions."""
        for key, members in self.members.items():
            for member in members:
                member.ready = member.ready or self.works(key, member.version)
        self.observe_gangs()

    def observe_gangs(self) -> None:
        for entry in self.layout:
            if all(self._complete(entry, component) for component in self.components):
                self.been_ready.add(entry.key)

    def _complete(self, entry: Entry, component: Component) -> bool:
        expected = entry.count(component.key)
        needed_count = min(expected, component.min_available) if component.key.kind is Kind.CLIQUE else expected
        ready = sum(member.ready and member.entry == entry.key for member in self.members[component.key])
        return ready >= needed_count

    def advance(self) -> Step:
        """Plan once. If a sub-step starts, carry it out to the point at which its new pods are not Ready yet."""
        step = self.plan()
        if isinstance(step, Advance):
            self.layout = converged_layout(step.layout, self.in_scope(), self.generation, complete=False)
            self.applied |= self.versions
            self.act()
        elif isinstance(step, Complete) and self.scope:
            self.layout = converged_layout(self.layout, self.in_scope(), self.generation, complete=True)
            self.scope = set()
        return step

    def deploy(self) -> Replica:
        self.act()
        self.settle()
        return self

    def update(self, limit: int = 1000) -> list[Advance]:
        """Run the update to its end, with all new pods becoming Ready, and return its sub-steps."""
        result: list[Advance] = []
        for _ in range(limit):
            step = self.advance()
            if isinstance(step, Complete):
                return result
            assert isinstance(step, Advance), step
            result.append(step)
            scope, observed = self.in_scope(), self.observed()
            update_entries = progress.own_entries(self.layout, self.generation, scope, observed)
            assert step.in_flight == progress.in_flight_entries(update_entries, scope, observed), (
                "what an update waits for is the same after a restart"
            )
            self.settle()
        raise AssertionError("the update does not end")


def find(layout: Layout, key: str) -> Entry | None:
    """Return the entry with this key, or None."""
    return next((entry for entry in layout if entry.key == key), None)


def entry_of_index(layout: Layout, group: str, index: int) -> str | None:
    """Return the key of the entry that holds a replica of a scaling group, or None."""
    return next((entry.key for entry in layout if index in entry.groups.get(group, ())), None)


def deployed(text: str, gang_layout: GangLayout = GangLayout.PER_STEP) -> Replica:
    return Replica(components(text), gang_layout=gang_layout).deploy()


def named(name: str) -> Key:
    """Return the key of the component with this letter."""
    return Key(Kind.CLIQUE if name in "FGH" else Kind.GROUP, name)


def keys(names: str) -> list[Key]:
    return [named(name) for name in names]


def batch(step: Advance) -> str:
    """Return a sub-step in short notation: `anchor F2 P1 D1`."""
    return " ".join([str(step.phase), *(f"{k.name}{count}" for k, count in step.batch.items())])
