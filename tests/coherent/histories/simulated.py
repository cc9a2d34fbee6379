"""A run of a generated history on the reference's planner, with simulated members and without waiting.

The suite (`conformance.grove.coherent`), which shares no code with the planner, makes all judgements. Kills of the
operator and switches of the strategy have no effect here, because the planner keeps no state in memory, and other
strategies have no plan.
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
"""A number of sub-steps that no update of a generated set needs."""


def convert_layout(layout: ReferenceLayout) -> Layout:
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


def convert_key(key: ReferenceKey) -> Key:
    """Convert the reference's key of a component to the suite's key."""
    return Key("clique" if key.kind is Kind.CLIQUE else "group", key.name)


def component_sizes(replica: Replica, *, scope: bool = False) -> list[Component]:
    """Return the components of a replica, or only those in the scope of its update."""
    selected_components = replica.in_scope() if scope else replica.components
    return [Component(convert_key(c.key), c.replicas, c.minimum, c.budget) for c in selected_components]


def unavailable_counts(replica: Replica) -> dict[Key, int]:
    """Return the number of members of each component that are not Ready."""
    return {
        convert_key(key): replica.component(key).replicas - sum(member.ready for member in members)
        for key, members in replica.members.items()
    }


def current_template_check(replica: Replica) -> Callable[[Entry, Key], bool]:
    """Return a predicate that holds if the members of a component in a gang have the current template."""

    def is_current(entry: Entry, key: Key) -> bool:
        reference_key = ReferenceKey(Kind.CLIQUE if key.kind == "clique" else Kind.GROUP, key.name)
        return replica.templates[entry.generation][reference_key] == replica.versions[reference_key]

    return is_current


def run_sub_step(replica: Replica, old_keys: set[str]) -> tuple[object, list[str]]:
    """Run one step of the planner, and return the step and its problems."""
    layout_before, unavailable_by_key = convert_layout(replica.layout), unavailable_counts(replica)
    in_scope, keys = component_sizes(replica, scope=True), {component.key for component in replica.in_scope()}
    step = replica.advance()
    layout_after = convert_layout(replica.layout)
    errors = broken_partition(
        layout_after, {component.key: component.replicas for component in component_sizes(replica)}
    )
    changes = change.LayoutChange(layout_before, layout_after)
    if isinstance(step, Advance):
        errors += change.problems(
            changes,
            replica.generation,
            in_scope,
            before=old_keys,
            unavailable=unavailable_by_key,
            settled=current_template_check(replica),
        )
    elif changes:
        errors.append("the layout changes without a sub-step")
    if isinstance(step, Complete):
        errors += [
            f"the update ends, and {len(old_members)} of {key} are of an old version"
            for key in sorted(keys)
            if (old_members := [member for member in replica.members[key] if member.version != replica.versions[key]])
        ]
    return step, errors


def problems(history: GeneratedHistory) -> list[str]:
    """Return the problems of the first step that has any problem, or an empty list if every step is right."""
    return next(_HistoryRun(history).run(), [])


class _HistoryRun:
    def __init__(self, history: GeneratedHistory) -> None:
        self.history = history
        self.versions = reproduction.initial_versions(history)
        self._previous_versions = self.versions
        version_texts = self._version_texts()
        generation = ",".join(text for _, text in sorted(version_texts.items()))
        self.replica = Replica([_component(part) for part in history.parts], generation, versions=version_texts)
        self.replica.works = lambda _, version: not version.startswith("-")
        self.replica.deploy()
        self.old_keys: set[str] = set()

    def _version_texts(self) -> dict[ReferenceKey, str]:
        return {
            _key(part): ("" if self.versions[part.name][1] else "-") + str(self.versions[part.name][0])
            for part in self.history.parts
        }

    def run(self) -> Iterator[list[str]]:
        """Yield the problems of each step that has problems."""
        for action in self.history.actions:
            self.versions, self._previous_versions = reproduction.versions_after(
                self.versions, self._previous_versions, action
            )
            match action:
                case Change() | Revert():
                    self._change_target()
                case Scale(part=name, replicas=replicas):
                    if errors := self._scale(self.history.part(name), replicas):
                        yield errors
                case LosePod(number=number):
                    self._delete_members(number, 1)
                case FailNode():
                    self._delete_members(0, 2)
                case Proceed(steps=steps):
                    yield from self._proceed(steps)
                case Settle():
                    yield from self._proceed(MAX_SUB_STEPS)
        self.versions = reproduction.final_versions(self.history, self.versions)
        self._change_target()
        yield from self._proceed(MAX_SUB_STEPS)
        yield from self._final_problems()

    def _change_target(self) -> None:
        generation_before = self.replica.generation
        self.replica.retarget(self._version_texts())
        if self.replica.generation != generation_before:
            self.old_keys = {entry.key for entry in convert_layout(self.replica.layout)}
        self.replica.act()  # members that were lost before the change may be replaced now

    def _proceed(self, steps: int) -> Iterator[list[str]]:
        self.replica.settle()
        for _ in range(steps):
            if not self.replica.scope:
                return
            _, errors = run_sub_step(self.replica, self.old_keys)
            if errors:
                yield errors
            self.replica.settle()

    def _final_problems(self) -> Iterator[list[str]]:
        replica = self.replica
        if replica.scope:
            yield [f"the update does not end: {replica.plan()}"]
        for key, members in sorted(replica.members.items()):
            current_count = sum(member.ready and member.version == replica.versions[key] for member in members)
            if current_count != replica.component(key).replicas or len(members) != current_count:
                yield [
                    f"{current_count} of {replica.component(key).replicas} of {key} are Ready and of the last version"
                ]

    def _delete_members(self, number: int, count: int) -> None:
        for _ in range(count):
            candidates = [(key, member) for key, members in self.replica.members.items() for member in members]
            if candidates:
                key, member = candidates[number % len(candidates)]
                self.replica.members[key].remove(member)
        self.replica.act()

    def _scale(self, part: Part, replicas: int) -> list[str]:
        """Scale a part, and return the problems. During an update nothing happens, because the request would be
        rejected."""
        replica, key = self.replica, _key(part)
        if replica.scope:
            return []
        layout_before = convert_layout(replica.layout)
        index = next(i for i, component in enumerate(replica.components) if component.key == key)
        replica.components[index] = _component(part, replicas)
        replica.fit()
        replica.act()
        replica.settle()
        expected = {component.key: component.replicas for component in component_sizes(replica)}
        return steady_rules.problems(change.LayoutChange(layout_before, convert_layout(replica.layout)), expected)


def _key(part: Part) -> ReferenceKey:
    return ReferenceKey(Kind.GROUP if part.is_group else Kind.CLIQUE, part.name)


def _component(part: Part, replicas: int | None = None) -> components.Component:
    factory = components.group if part.is_group else components.clique
    return factory(part.name, part.replicas if replicas is None else replicas, part.minimum, part.budget)
