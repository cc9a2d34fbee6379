"""Tests of the invariants that hold after any change, revert or failure during a coherent update.

The checks read only the simulated members, not the planner's view of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reference_impl.api.coherent import GangLayout
from reference_impl.plan.coherent.planner import Advance, Complete, Step
from reference_impl.plan.coherent.steps import step_count
from reference_impl.plan.components import Key, Kind
from reference_impl.plan.epochs import sort_key
from reference_impl.plan.fitting import violations
from reference_impl.plan.layout import first_layout
from tests.reference.coherent.simulation import Member, Replica, components, entry_of_index, find, gangs, named

BROKEN = "x"
"""A version whose pods never become Ready."""
VERSIONS = ("0", "1", "2", BROKEN)


@dataclass
class History:
    """A replica under test, with all observations of it."""

    replica: Replica
    versions_seen: dict[tuple[str, Key], str] = field(default_factory=dict)
    """The version of a component's members in a gang, as of its first member."""
    epochs: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.replica.works = lambda _, version: version != BROKEN
        self.check()

    def change(self, versions: dict[Key, str]) -> None:
        self.replica.retarget(versions)
        self.check()

    def lose(self, number: int) -> None:
        """Lose a member, and replace what its gang may replace."""
        members = [(key, member) for key, key_members in self.replica.members.items() for member in key_members]
        if members:
            key, member = members[number % len(members)]
            self.replica.members[key].remove(member)
            self.replica.act()
            self.check()

    def settle(self) -> None:
        self.replica.settle()
        self.check()

    def advance(self) -> Step:
        """Plan and act, and check which members were deleted."""
        replica = self.replica
        before = {key: list(members) for key, members in replica.members.items()}
        scope = replica.in_scope()
        step = replica.advance()
        deleted = {
            key: [member for member in members if all(member is not survivor for survivor in replica.members[key])]
            for key, members in before.items()
        }
        self._check_deleted(deleted)
        if any(member.ready for members in deleted.values() for member in members):
            for component in scope:
                available = replica.available(component.key)
                assert available >= component.floor, f"{component.key}: {available} available after a deletion"
        self.check()
        return step

    def _check_deleted(self, deleted: dict[Key, list[Member]]) -> None:
        scope = {component.key for component in self.replica.in_scope()}
        for key, members in deleted.items():
            for member in members:
                assert key in scope, f"{key} is not in scope, and a member of it was deleted"
                assert member.version != self.replica.versions[key], (
                    f"{key}: a member of the present version was deleted"
                )

    def check(self) -> None:
        replica = self.replica
        assert violations(replica.layout, replica.components) == []
        for entry in replica.layout:
            if entry.key not in self.epochs:
                assert all(sort_key(entry.key) > sort_key(earlier) for earlier in self.epochs), "epochs follow creation"
                self.epochs.append(entry.key)
            assert set(entry.depends_on) <= {other.key for other in replica.layout} - {entry.key}
            assert entry.anchor or entry.depends_on
        for key, members in replica.members.items():
            assert len(members) <= replica.component(key).replicas, f"{key}: surge"
            for member in members:
                version = self.versions_seen.setdefault((member.entry, key), member.version)
                assert version == member.version, f"two versions of {key} in gang {member.entry}"
            if key.kind is Kind.GROUP:
                assert max(Counter(member.index for member in members).values(), default=0) <= 1
            self._check_places(key, members)

    def _check_places(self, key: Key, members: list[Member]) -> None:
        for member in members:
            entry = find(self.replica.layout, member.entry)
            assert entry is not None, "a member is in a gang that is not in the layout"
            if key.kind is Kind.GROUP:
                assert entry_of_index(self.replica.layout, key.name, member.index) == member.entry
        for entry_key, count in Counter(member.entry for member in members).items():
            entry = find(self.replica.layout, entry_key)
            assert entry is not None and count <= entry.count(key)

    def finish(self) -> None:
        """Run the update to its end with working versions and without more failures, and check that all members
        exist."""
        replica = self.replica
        limit = sum(component.replicas for component in replica.components) + 2
        for _ in range(limit):
            replica.act()
            replica.settle()
            if isinstance(self.advance(), Complete):
                break
        else:
            raise AssertionError(f"the update does not end: {replica.plan()}")
        for component in replica.components:
            members = replica.members[component.key]
            assert len(members) == component.replicas
            assert all(member.ready and member.version == replica.versions[component.key] for member in members)


@st.composite
def component(draw: st.DrawFn, name: str) -> str:
    minimum = draw(st.integers(1, 4))
    replicas = draw(st.integers(minimum, 12))
    return f"{name}{replicas}/{minimum}/{draw(st.integers(minimum, replicas))}"


@st.composite
def sets(draw: st.DrawFn) -> str:
    names = draw(st.lists(st.sampled_from("FGPD"), min_size=1, max_size=4, unique=True))
    return " ".join(draw(component(name)) for name in sorted(names, key="FGPD".index))


ACTIONS = st.one_of(
    st.tuples(st.just("change"), st.dictionaries(st.sampled_from("FGPD"), st.sampled_from(VERSIONS), min_size=1)),
    st.tuples(st.just("lose"), st.integers(0, 50)),
    st.tuples(st.just("settle"), st.none()),
    st.tuples(st.just("advance"), st.none()),
    st.tuples(st.just("advance"), st.none()),
    st.tuples(st.just("settle and advance"), st.integers(1, 4)),
    st.tuples(st.just("lose and advance"), st.lists(st.integers(0, 50), min_size=1, max_size=4)),
)


def begun(text: str, layout: GangLayout) -> Replica:
    """Return a replica with version 0 of all components."""
    parts = components(text)
    versions = {component.key: "0" for component in parts}
    return Replica(parts, generation=",".join(versions.values()), gang_layout=layout, versions=versions).deploy()


def play(text: str, layout: GangLayout, actions: list[tuple[str, Any]]) -> History:
    history = History(begun(text, layout))
    present = set(history.replica.versions)
    for action, argument in actions:
        if action == "change":
            history.change({named(name): version for name, version in argument.items() if named(name) in present})
        elif action == "lose":
            history.lose(argument)
        elif action == "settle":
            history.settle()
        elif action == "advance":
            history.advance()
        elif action == "lose and advance":
            history.settle()
            for number in argument:
                history.lose(number)
            history.advance()
        else:
            for _ in range(argument):
                history.settle()
                history.advance()
    return history


@settings(max_examples=400)
@given(sets(), st.sampled_from(GangLayout), st.lists(ACTIONS, max_size=20))
def test_every_history_keeps_the_invariants_and_ends(
    text: str, layout: GangLayout, actions: list[tuple[str, Any]]
) -> None:
    history = play(text, layout, actions)
    replica = history.replica
    if BROKEN in replica.versions.values():
        history.change({key: "9" for key, version in replica.versions.items() if version == BROKEN})
    history.finish()


@settings(max_examples=200)
@given(sets(), st.sampled_from(GangLayout), st.data())
def test_one_version_always_serves_without_failures(text: str, layout: GangLayout, data: st.DataObject) -> None:
    """In an update of two or more steps, `minAvailable` members of each component are always available in one common
    version (COH-I02)."""
    replica = begun(text, layout)
    changed = data.draw(st.sets(st.sampled_from(sorted(replica.versions)), min_size=1))
    replica.retarget(dict.fromkeys(changed, "1"))
    scope, initial_layout = replica.in_scope(), replica.layout
    steps = step_count(scope)
    for _ in range(1000):
        step = replica.advance()
        if isinstance(step, Complete):
            break
        assert isinstance(step, Advance)
        serves = [
            version
            for version in "01"
            if all(
                sum(member.ready and member.version == version for member in replica.members[c.key]) >= c.min_available
                for c in scope
            )
        ]
        assert serves or steps == 1
        replica.settle()
    old = {entry.key for entry in initial_layout}
    anchors = [entry for entry in replica.layout if entry.anchor and entry.key not in old]
    assert len(anchors) == (1 if layout is GangLayout.SINGLE_ANCHOR else steps)
    if layout is GangLayout.SINGLE_ANCHOR and len(changed) == len(replica.components):
        new = first_layout(replica.components, replica.generation, replica.epochs)
        assert sorted(gangs(replica.layout)) == sorted(gangs(new)), "the layout of a first deployment (COH-R01)"
