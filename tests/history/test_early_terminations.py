"""Tests that the terminationDelay counts from the breach that caused the termination. The scripted log starts at
2026-01-01T00:00:00Z."""

from __future__ import annotations

from conformance.history.record import Record
from conformance.testing import incarnations
from conformance.tests.termination.delays import breaches, early_deletions
from tests.history.scripted import Scripted
from tests.history.story import Story


def breach(story: Story, resource: str, name: str, second: float) -> None:
    """Record a breach at the second at which it happens."""
    moment = f"2026-01-01T00:00:{second:02.0f}Z"
    condition = {"type": "MinAvailableBreached", "status": "True", "lastTransitionTime": moment}
    story.record(resource, name, {"status": {"conditions": [condition]}}, after=second - story.at)


def deletion(story: Story, name: str, second: float) -> None:
    timestamp = f"2026-01-01T00:00:{second:02.0f}Z"
    story.record("podcliques", name, {"metadata": {"deletionTimestamp": timestamp}}, after=second - story.at)


def torn() -> tuple[Story, dict[str, list[Record]]]:
    """Return a story and the breaches that count for each of its cliques. Replica 1 of a scaling group is breached at
    10 s; replica 0, and with it the group, is breached at 13 s. Replica 2 never ran."""
    story = Story(Scripted())
    for name in ("torn-0-a", "torn-0-g-0-b", "torn-0-g-1-b"):
        story.record("podcliques", name, {})
    breach(story, "podcliques", "torn-0-g-2-c", 5)
    breach(story, "podcliques", "torn-0-g-1-c", 10)
    breach(story, "podcliques", "torn-0-g-0-c", 13)
    breach(story, "podcliquescalinggroups", "torn-0-g", 13)
    names = ("torn-0-a", *(f"torn-0-g-{replica}-{clique}" for replica in range(3) for clique in "bc"))
    return story, {name: breaches(story.history, name, ["torn-0-g-2-b", "torn-0-g-2-c"]) for name in names}


def deleted_early(second: float, *names: str) -> list[str]:
    story, causes = torn()
    for name in names:
        deletion(story, name, second)
    ends = incarnations.deletions(story.history, "podcliques")
    return [line.split()[0] for line in early_deletions(causes, ends, 6, 0)]


def test_a_replica_is_judged_by_its_own_breach() -> None:
    """The replica is deleted 6 s after its own breach and 3 s after the breach of its group."""
    assert deleted_early(16, "torn-0-g-1-b", "torn-0-g-1-c") == []


def test_a_replica_that_is_deleted_before_its_own_delay_is_over_is_early() -> None:
    assert deleted_early(15, "torn-0-g-1-b") == ["torn-0-g-1-b"]


def test_everything_else_is_judged_by_the_breach_of_the_group() -> None:
    assert deleted_early(18, "torn-0-a", "torn-0-g-0-b") == ["torn-0-a", "torn-0-g-0-b"]
    assert deleted_early(19, "torn-0-a", "torn-0-g-0-b") == []


def test_a_replica_that_never_ran_has_no_breach() -> None:
    assert deleted_early(18, "torn-0-g-2-b") == ["torn-0-g-2-b"]


def test_a_deletion_without_a_breach_is_early() -> None:
    story = Story(Scripted())
    story.record("podcliques", "loose-0-a", {})
    deletion(story, "loose-0-a", 50)
    assert early_deletions({"loose-0-a": []}, incarnations.deletions(story.history, "podcliques"), 6, 0)
