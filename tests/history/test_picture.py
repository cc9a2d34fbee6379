"""Tests of the picture of a history, for histories of every size."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from conformance.evidence import bars, picture
from conformance.evidence.axis import MAX_GAP, Axis
from conformance.history.query import History

POOL = "example.com/pool"
FAILED = "SCHED-007 failed: bound pods: expected 0, seen 10"


def record_torn_gang(story, prefills: int = 10, decodes: int = 2, name: str = "serve-0") -> float:
    """Record a gang whose prefill pods are all bound and become Ready, while none of its decode pods is bound; return
    the time just before the first binding."""
    groups = {f"{name}-prefill": prefills, f"{name}-decode": decodes}
    pods = {group: [f"{group}-{i}" for i in range(count)] for group, count in groups.items()}
    members = [(group, pod) for group in groups for pod in pods[group]]
    for group, pod in members:
        story.pod(pod, gang=name, clique=group, gated=True, after=0.01)
    story.gang(name, {group: (1, pods[group]) for group in groups})
    for group, pod in members:
        story.pod(pod, gang=name, clique=group, after=0.01)
    first = story.at
    for i, pod in enumerate(pods[f"{name}-prefill"]):
        for ready in (False, True):
            story.pod(pod, gang=name, clique=f"{name}-prefill", node=f"n{i}", ready=ready, after=0.02)
    return first


def draw(history: History, *failures: tuple[float | None, str], title: str = "a test") -> tuple[str, list[str]]:
    """Return the picture, after asserting that it is well-formed and needs no other file, and its texts."""
    text = picture.draw(history, failures, title, POOL)
    tree = ElementTree.fromstring(text)
    kinds = {element.tag.rpartition("}")[2] for element in tree.iter()}
    assert kinds <= {"svg", "style", "defs", "pattern", "path", "rect", "line", "text", "title"}
    assert not re.search(r"(?i)\b(href|src|@import|on[a-z]+=)", text.replace("xmlns", ""))
    assert "prefers-color-scheme: dark" in text
    return text, ["".join(t.itertext()) for t in tree.iter() if t.tag.endswith("}text")]


def height(text: str) -> float:
    match = re.search(r'height="([\d.]+)"', text)
    assert match is not None
    return float(match[1])


def test_a_torn_gang_is_shown_in_words_and_in_color(story):
    first = record_torn_gang(story)
    text, words = draw(story.history, (first, FAILED))
    assert "TORN: decode has 0 of 1 bound" in words
    assert "0 of 2 bound, minimum 1" in words and "10 of 10 bound, minimum 1" in words
    assert 'class="torn"' in text and "gang TORN: bound in part" in words
    assert FAILED in words and "✗1" in words and 'class="failure"/>' in text


def test_the_picture_has_the_clock_of_the_history(story):
    story.node("n1", tags={POOL: "space"}, gpus="1")
    story.owned("podcliquesets", "serve", None, replicas=1, after=20.0)
    first = record_torn_gang(story)
    text, words = draw(story.history, (first, FAILED))
    times = {f"{record.at:.3f}" for record in story.history.records()}
    created = next(record.at for record in story.history.records() if record.namespace)
    assert words[words.index("✗1") + 1] == f"{first:.2f} s"
    assert (
        words[words.index("set serve is created") - 1] == words[words.index("1 node added") - 1] == f"{created:.2f} s"
    )
    assert set(re.findall(r"from (\S+) to", text)) <= times
    ticks = [float(word.removesuffix(" s")) for word in re.findall(r'faint middle">([\d.]+ s)<', text)]
    assert ticks and all(created <= tick <= story.at * 1.1 for tick in ticks)


def test_each_of_a_dozen_pods_has_a_row(story):
    record_torn_gang(story)
    text, words = draw(story.history)
    assert {f"serve-0-prefill-{i}" for i in range(10)} | {"serve-0-decode-0", "serve-0-decode-1"} <= set(words)
    assert "ready on n3" in words and "waiting" in words
    assert height(text) < 400


def test_with_two_hundred_pods_each_clique_has_a_row(story):
    for gang in range(10):
        record_torn_gang(story, 18, 2, f"serve-{gang}")
    text, words = draw(story.history)
    assert not any(word.startswith("serve-3-prefill-") for word in words)
    assert {"serve-3-prefill", "serve-9-decode"} <= set(words)
    assert words.count("18 of 18 bound, minimum 1") == 10
    assert height(text) < 1200


def test_with_many_gangs_each_gang_has_a_row(story):
    for gang in range(30):
        record_torn_gang(story, 3, 1, f"serve-{gang}")
    text, words = draw(story.history)
    assert "serve-3-prefill" not in words and "serve-3" in words
    assert words.count("TORN: decode has 0 of 1 bound") == 30
    assert height(text) < 1600


def test_a_gang_that_never_had_pods_has_a_row_among_many(story):
    for i in range(20):
        record_torn_gang(story, 3, 1, name=f"serve-{i}")
    story.gang("empty", {"empty-worker": (1, [])})
    _, words = draw(story.history)
    assert "empty" in words and "up to 0 at a time" in words


def test_with_too_many_gangs_only_torn_gangs_have_rows(story):
    for gang in range(60):
        record_torn_gang(story, 2, gang % 10 == 0, f"serve-{gang}")
    for gang in range(60):
        if gang % 10:
            story.gang(f"serve-{gang}", {f"serve-{gang}-prefill": (1, [])})
    text, words = draw(story.history)
    assert "60 gangs" in words and "6 gangs are torn in the end:" in words
    assert "serve-10" in words and "serve-11" not in words
    assert height(text) < 900


@pytest.mark.parametrize(
    ("after", "words", "torn"),
    [
        (None, "", False),
        (0.03, "INV-003 failed: gang serve-0 was never admitted", True),
        (0.03, "SCHED-008 failed: bound: 1 pods of serve-0-prefill", True),
        (0.03, "CORE-001 failed: the names", False),
        (9.0, "INV-003 failed: gang serve-0 was never admitted", False),
    ],
    ids=[
        "no failure",
        "a failure of the gang in it",
        "a failure of its pods in it",
        "a failure of something else in it",
        "a failure after it",
    ],
)
def test_a_gang_that_was_bound_in_part_for_a_moment_is_torn_only_if_a_check_says_so(story, after, words, torn):
    first = record_torn_gang(story)
    for i in range(2):
        story.pod(f"serve-0-decode-{i}", gang="serve-0", clique="serve-0-decode", node="n1", after=0.5)
    text, drawn_words = draw(story.history, *([(first + after, words)] if after else []))
    assert ('class="torn"' in text) == torn == ("gang TORN: bound in part" in drawn_words)
    assert ('class="partial"' in text) != torn
    assert "its minimums are bound" in drawn_words


def test_requested_objects_are_marked(story):
    story.node("n1", tags={POOL: "space"}, gpus="1")
    story.node("other", gpus="1")
    story.owned("podcliquesets", "serve", None, replicas=1)
    record_torn_gang(story)
    story.node("n2", tags={POOL: "space"}, gpus="1")
    story.owned("podcliquesets", "serve", None, replicas=3)
    story.delete("nodes", "n1")
    story.delete("podcliquesets", "serve")
    changes = [mark.words for mark in bars.read_timeline(story.history, pool=POOL).changes]
    assert changes == [
        "1 node added",
        "set serve is created",
        "1 node added",
        "set serve has 3 replicas instead of 1",
        "1 node removed",
        "set serve is deleted",
    ]
    _, words = draw(story.history)
    assert set(changes) <= set(words)


def test_bars_of_deleted_pods_have_an_end(story):
    record_torn_gang(story)
    story.pod("serve-0-prefill-3", gang="serve-0", clique="serve-0-prefill", node="n3", terminating=True)
    story.delete("pods", "serve-0-prefill-3")
    story.pod("serve-0-decode-0", gang="serve-0", clique="serve-0-decode", after=1)
    scene = bars.read_timeline(story.history)
    [gang] = scene.gangs
    [lane] = [pod for clique in gang.cliques for pod in clique.pods if pod.name == "serve-0-prefill-3"]
    assert [bar.state for bar in lane.bars] == ["gated", "waiting", "bound", "ready", "terminating"]
    assert scene.start <= lane.bars[0].start < lane.bars[-1].end < scene.end and lane.note == "gone"
    _, words = draw(story.history)
    assert "9 of 9 bound, minimum 1" in words


def test_texts_of_an_implementation_are_escaped(story):
    record_torn_gang(story)
    text, words = draw(story.history, (None, "<script>&\x1b[2J"), title='"]]><b>')
    assert "<script>&�[2J" in words and "at the end" in words
    assert "<script>" not in text


def test_an_empty_history_has_a_picture(story):
    _, words = draw(story.history, (None, "X-001 failed: no pod came"))
    assert "there was never any pod or gang" in words


def test_a_saved_history_has_the_same_picture(story, tmp_path: Path):
    first = record_torn_gang(story)
    story.history.save(tmp_path / "history.jsonl")
    loaded = History.load(tmp_path / "history.jsonl")
    assert draw(loaded, (first, FAILED)) == draw(story.history, (first, FAILED))


# -- the axis -------------------------------------------------------------------------------------------------------


def test_a_long_spell_is_cut_short():
    axis = Axis([1.0, 2.0, 60.0], 61.0, 600.0)
    assert axis.x(0) == 0 and axis.x(61.0) == pytest.approx(600)
    [(begin, end, seconds)] = axis.breaks
    assert (axis.x(2.0), axis.x(60.0)) == pytest.approx((begin, end)) and seconds == 58
    assert end - begin < axis.x(2.0) - axis.x(1.0)
    assert all(not 2.0 < tick < 60.0 for tick in axis.ticks()) and {0, 1, 2, 60} <= set(axis.ticks())


@pytest.mark.parametrize("end", [0.0, 0.01, 0.7, 3.0, MAX_GAP * 0.9])
def test_ticks_are_in_order_and_apart(end):
    axis = Axis([end / 3, end / 2], end, 700.0)
    places = [axis.x(tick) for tick in axis.ticks()]
    assert places == sorted(places) and all(0 <= place <= 700 for place in places)
    assert all(later - earlier > 30 for earlier, later in pairwise(places))


def test_an_axis_starts_at_the_given_time():
    axis = Axis([21.0], 22.0, 600.0, 20.0)
    assert (axis.x(20.0), axis.x(21.0), axis.x(22.0)) == pytest.approx((0, 300, 600))
    assert axis.x(3.0) == 0 and {20, 21, 22} <= set(axis.ticks()) and min(axis.ticks()) == 20


def test_moments_keep_their_order():
    axis = Axis([0.5, 9.0, 9.1, 40.0], 41.0, 500.0)
    moments = [0.0, 0.2, 0.5, 3.0, 9.0, 9.05, 9.1, 20.0, 40.0, 41.0]
    assert [axis.x(m) for m in moments] == sorted(axis.x(m) for m in moments)
