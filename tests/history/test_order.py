"""Tests of the order of writes, and of the states between them that are known."""

from __future__ import annotations

from conformance.history.order import server_order, uncertain_indices
from conformance.history.record import Record
from tests.history.story import Story


def _certain(story: Story) -> list[str]:
    """Return the records after which the state is known, in the order of their writes."""
    ordered = server_order(story.history.records())
    assert ordered is not None
    unknown = uncertain_indices(ordered)
    return [_named(record) for index, record in enumerate(ordered) if index not in unknown]


def _named(record: Record) -> str:
    return f"{record.resource}/{record.name}"


def test_the_later_of_two_writes_may_arrive_first() -> None:
    story = Story()
    story.record("podcliquesets", "s", {}, revision=20)
    story.record("pods", "a", {}, revision=10)
    assert _certain(story) == ["pods/a", "podcliquesets/s"]


def test_all_states_are_known_while_the_watches_last() -> None:
    story = Story()
    for resource in ("podcliquesets", "podgangs", "pods"):
        story.record(resource, "a", {})
    assert len(_certain(story)) == 3


def test_a_listed_change_may_have_happened_at_any_time_since_the_last_event() -> None:
    story = Story()
    story.record("pods", "before", {})
    story.record("podgangs", "last-event", {})
    story.record("pods", "meanwhile", {})
    story.record("podgangs", "g", {}, listed=True)
    story.record("podgangs", "h", {}, listed=True)
    story.record("pods", "after", {})
    assert _certain(story) == ["pods/before", "podgangs/h", "pods/after"]


def test_a_list_without_an_event_before_it_hides_all_that_was_before() -> None:
    story = Story()
    story.record("pods", "a", {})
    story.record("podgangs", "g", {}, listed=True)
    assert _certain(story) == ["podgangs/g"]
