"""How long a gang has had, by the stamps in its objects."""

from __future__ import annotations

import pytest

from conformance.tests.termination.scenes import waited
from tests.history.story import Story


def told(story: Story, transition: str, deletion: str, after: float):
    condition = {"type": "MinAvailableBreached", "status": "True", "lastTransitionTime": transition}
    cause = story.tell("podcliques", "a", {"status": {"conditions": [condition]}})
    metadata = {"deletionTimestamp": deletion} if deletion else {}
    end = story.tell("podcliques", "a", {"metadata": metadata, "status": {}}, after=after)
    return cause, end


def test_what_arrives_late_was_not_deleted_early(story: Story) -> None:
    cause, end = told(story, "2026-01-01T00:00:00Z", "2026-01-01T00:00:06Z", 4.9)
    assert waited(cause, end) == 6


def test_what_was_deleted_early_is_seen_however_late_that_arrives(story: Story) -> None:
    cause, end = told(story, "2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z", 9)
    assert waited(cause, end) == 5


@pytest.mark.parametrize("transition", ["", "soon"])
def test_without_stamps_arrivals_count(story: Story, transition: str) -> None:
    assert waited(*told(story, transition, "", 7.5)) == 7.5


def test_without_a_record_there_is_no_duration(story: Story) -> None:
    cause, end = told(story, "2026-01-01T00:00:00Z", "2026-01-01T00:00:06Z", 1)
    assert waited(None, end) == waited(cause, None) == -1
