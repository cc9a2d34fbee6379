"""A run of a generated history on the reference's planner, with simulated members and without waiting.

The suite (`conformance.grove.coherent`), which shares no code with the planner, makes all judgements. Killing the
operator and switching the strategy change nothing here: the planner keeps no state in memory, and other strategies have
no plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from conformance.grove.coherent import change
from conformance.grove.coherent import steady as steady_rules
from conformance.grove.coherent.model import Component, Entry, Key, Layout, broken_partition
from reference_impl.plan import components
from reference_impl.plan import layout as layouts
from reference_impl.plan.coherent.planner import Advance, Complete
from reference_impl.plan.components import Key as ReferenceKey
from reference_impl.plan.components import Kind
from reference_impl.plan.layout import EntryGang
from reference_impl.plan.layout import Layout as ReferenceLayout
from tests.coherent.histories import reproduction
from tests.coherent.histories.model import (
    Change,
    FailNode,
    GeneratedHistory,
    LosePod,
    Part,
    Proceed,
    Revert,
    Scale,
    Settle,
)
from tests.reference.coherent.simulation import Replica

MAX_SUB_STEPS = 60
"""More sub-steps than an update of such a set can have."""


def read(layout: ReferenceLayout) -> Layout:
    """Convert a layout of the reference to the suite's model of a PodGangMap: one entry for each gang."""
    return tuple(
        Entry(
            _name(gang), entry.generation, dict(gang.cliques), dict(gang.groups), entry.anchor, bool(entry.depends_on)
        )
        for entry in layout
        for gang in layouts.gangs(entry)
    )


def _name(gang: EntryGang) -> str:
    return gang.entry.key if gang.entry.anchor else f"{gang.entry.key}/{gang.group}/{gang.index}"


def key_of(key: ReferenceKey) -> Key:
    """Convert the reference's key of a component to the suite's key."""
    return Key("clique" if key.kind is Kind.CLIQUE else "group", key.name)


def sizes(replica: Replica, *, scope: bool = False) -> list[Component]:
    """Return the components of a replica, or only those in the scope of its update."""
    selected = replica.in_scope() if scope else replica.components
    return [Component(key_of(c.key), c.replicas, c.minimum, c.budget) for c in selected]


def unavailable(replica: Replica) -> dict[Key, int]:
    """Return the number of members of each component that are not Ready."""
    return {
        key_of(key): replica.component(key).replicas - sum(member.ready for member in members)
        for key, members in replica.members.items()
    }


def settled(replica: Replica) -> Callable[[Entry, Key], bool]:
    """Return a function that tells whether the members of a component in a gang have the current template."""

    def is_current(entry: Entry, key: Key) -> bool:
        reference_key = ReferenceKey(Kind.CLIQUE if key.kind == "clique" else Kind.GROUP, key.name)
        return replica.templates[entry.generation][reference_key] == replica.versions[reference_key]

    return is_current


def sub_step(replica: Replica, old: set[str]) -> tuple[object, list[str]]:
    """Run one step of the planner; return the step and its problems."""
    before, unavailable_counts = read(replica.layout), unavailable(replica)
    in_scope, keys = sizes(replica, scope=True), {component.key for component in replica.in_scope()}
    step = replica.advance()
    after = read(replica.layout)
    wrong = broken_partition(after, {component.key: component.replicas for component in sizes(replica)})
    changes = change.LayoutChange(before, after)
    if isinstance(step, Advance):
        wrong += change.problems(
            changes, replica.generation, in_scope, before=old, unavailable=unavailable_counts, settled=settled(replica)
        )
    elif changes:
        wrong.append("the layout changes without a sub-step")
    if isinstance(step, Complete):
        wrong += [
            f"the update ends, and {len(old_members)} of {key} are of an old version"
            for key in sorted(keys)
            if (old_members := [member for member in replica.members[key] if member.version != replica.versions[key]])
        ]
    return step, wrong


def problems(history: GeneratedHistory) -> list[str]:
    """Return the problems of the first step that has any; empty if none has."""
    return next(_Play(history).run(), [])


class _Play:
    def __init__(self, history: GeneratedHistory) -> None:
        self.history = history
        self.versions = reproduction.first_versions(history)
        self._last = self.versions
        texts = self._texts()
        generation = ",".join(text for _, text in sorted(texts.items()))
        self.replica = Replica([_component(part) for part in history.parts], generation, versions=texts)
        self.replica.works = lambda _, version: not version.startswith("-")
        self.replica.deploy()
        self.old: set[str] = set()

    def _texts(self) -> dict[ReferenceKey, str]:
        return {
            _key(part): ("" if self.versions[part.name][1] else "-") + str(self.versions[part.name][0])
            for part in self.history.parts
        }

    def run(self) -> Iterator[list[str]]:
        """Yield the problems of each step that has any."""
        for action in self.history.actions:
            self.versions, self._last = reproduction.after(self.versions, self._last, action)
            match action:
                case Change() | Revert():
                    self._retarget()
                case Scale(part=name, replicas=replicas):
                    if wrong := self._scale(self.history.part(name), replicas):
                        yield wrong
                case LosePod(number=number):
                    self._lose(number, 1)
                case FailNode():
                    self._lose(0, 2)
                case Proceed(steps=steps):
                    yield from self._proceed(steps)
                case Settle():
                    yield from self._proceed(MAX_SUB_STEPS)
        self.versions = reproduction.mended(self.history, self.versions)
        self._retarget()
        yield from self._proceed(MAX_SUB_STEPS)
        yield from self._at_rest()

    def _retarget(self) -> None:
        before = self.replica.generation
        self.replica.retarget(self._texts())
        if self.replica.generation != before:
            self.old = {entry.key for entry in read(self.replica.layout)}
        self.replica.act()  # members that were lost before the change may be replaced now

    def _proceed(self, steps: int) -> Iterator[list[str]]:
        self.replica.settle()
        for _ in range(steps):
            if not self.replica.scope:
                return
            _, wrong = sub_step(self.replica, self.old)
            if wrong:
                yield wrong
            self.replica.settle()

    def _at_rest(self) -> Iterator[list[str]]:
        replica = self.replica
        if replica.scope:
            yield [f"the update does not end: {replica.plan()}"]
        for key, members in sorted(replica.members.items()):
            good = sum(member.ready and member.version == replica.versions[key] for member in members)
            if good != replica.component(key).replicas or len(members) != good:
                yield [f"{good} of {replica.component(key).replicas} of {key} are Ready and of the last version"]

    def _lose(self, number: int, count: int) -> None:
        for _ in range(count):
            candidates = [(key, member) for key, members in self.replica.members.items() for member in members]
            if candidates:
                key, member = candidates[number % len(candidates)]
                self.replica.members[key].remove(member)
        self.replica.act()

    def _scale(self, part: Part, replicas: int) -> list[str]:
        """Scale between two updates; during an update the request would be rejected, so nothing happens."""
        replica, key = self.replica, _key(part)
        if replica.scope:
            return []
        before = read(replica.layout)
        index = next(i for i, component in enumerate(replica.components) if component.key == key)
        replica.components[index] = _component(part, replicas)
        replica.fit()
        replica.act()
        replica.settle()
        expected = {component.key: component.replicas for component in sizes(replica)}
        return steady_rules.problems(change.LayoutChange(before, read(replica.layout)), expected)


def _key(part: Part) -> ReferenceKey:
    return ReferenceKey(Kind.GROUP if part.group else Kind.CLIQUE, part.name)


def _component(part: Part, replicas: int | None = None) -> components.Component:
    make = components.group if part.group else components.clique
    return make(part.name, part.replicas if replicas is None else replicas, part.minimum, part.budget)
