"""Tests of the states of gangs in a recording of any cluster: each state occurs, and each rule is both kept and
broken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from conformance.cli import app
from conformance.commands import scheduler
from conformance.errors import Exit, UsageError
from conformance.grove import labels
from conformance.history import redaction, storage
from conformance.history.record import Record
from conformance.invariants import placements
from conformance.invariants.placements import GangState, Placements
from conformance.invariants.settled_gangs import SETTLED_SECONDS
from tests.history.story import Story

A = {"gang": "s-0", "clique": "s-0-a"}
SCALED = {"gang": "s-0-g-0", "clique": "s-0-g-1-w", "extra": {labels.BASE_GANG: "s-0"}}
RACK = "example.com/rack"
IN_A_RACK = {
    "topologyConstraint": {"packConstraint": {"required": RACK}},
    "podgroups": [{"name": "t-0-a", "minReplicas": 1}],
}
LATER = 2 * SETTLED_SECONDS


def records(story: Story) -> list[Record]:
    return story.log.all_records()


def judge_story(story: Story) -> Placements:
    return placements.judge(records(story), story.at + LATER)


def states(judgment: Placements) -> dict[str, GangState]:
    return {fate.gang: fate.state for fate in judgment.fates}


def broken_rules(judgment: Placements) -> list[str]:
    return [result.id for _, result in judgment.broken_rules]


def whole_gang(story: Story) -> None:
    story.node("n1", gpus="2", tags={RACK: "r1"})
    story.node("n2", gpus="2", tags={RACK: "r2"})
    story.gang("s-0", {"s-0-a": (2, ["a1", "a2"])})
    for name in ("a1", "a2"):
        story.pod(name, **A)
        story.pod(name, node="n1", **A)


def torn_gang(story: Story) -> None:
    story.gang("s-0", {"s-0-a": (2, ["a1", "a2"])})
    story.pod("a1", **A)
    story.pod("a2", **A)
    story.pod("a1", node="n1", **A)


def waiting_gang(story: Story) -> None:
    story.gang("s-0", {"s-0-a": (1, ["a1"])})
    story.pod("a1", **A)


def deleted_gang(story: Story) -> None:
    waiting_gang(story)
    story.delete("pods", "a1")
    story.delete("podgangs", "s-0")


def older_gang(story: Story) -> None:
    """Record a gang with a pod that was bound before the recording began, so the gang may have been whole at that
    time."""
    story.gang("s-0", {"s-0-a": (2, ["a1", "a2"])})
    story.pod("a1", node="n1", listed=True, **A)
    story.gang("s-0-g-0", {"s-0-g-1-w": (1, ["w1"])})
    story.pod("w1", **SCALED)
    story.pod("w1", node="n1", **SCALED)


def gang_bound_by_hand(story: Story) -> None:
    """Record a pod that was created with its node, so no scheduler has bound it."""
    story.gang("s-0", {"s-0-a": (2, ["a1", "a2"])})
    story.pod("a1", node="n1", **A)


@pytest.mark.parametrize(
    ("prepare", "state", "rules"),
    [
        (gang_bound_by_hand, {"s-0": GangState.OLDER}, []),
        (whole_gang, {"s-0": GangState.ADMITTED}, []),
        (torn_gang, {"s-0": GangState.TORN}, ["INV-003"]),
        (waiting_gang, {"s-0": GangState.WAITING}, []),
        (deleted_gang, {"s-0": GangState.DELETED}, []),
        (older_gang, {"s-0": GangState.OLDER, "s-0-g-0": GangState.OLDER}, []),
    ],
)
def test_the_state_of_a_gang(
    prepare: Callable[[Story], None], state: dict[str, GangState], rules: list[str], story: Story
) -> None:
    prepare(story)
    judgment = judge_story(story)
    assert (states(judgment), broken_rules(judgment)) == (state, rules)


def test_the_time_between_the_first_bound_pod_and_the_admission(story: Story) -> None:
    whole_gang(story)
    [fate] = judge_story(story).fates
    assert fate.binding_seconds == 1.0


def test_a_scaled_gang_before_its_base_gang_is_wrong(story: Story) -> None:
    waiting_gang(story)
    story.gang("s-0-g-0", {"s-0-g-1-w": (1, ["w1"])})
    story.pod("w1", **SCALED)
    story.pod("w1", node="n1", **SCALED)
    assert broken_rules(judge_story(story)) == ["INV-008"]


@pytest.mark.parametrize(("bound", "rule"), [(2, "TOPO-034"), (3, "TOPO-035")], ids=["minimum", "extra pod"])
@pytest.mark.parametrize("part", ["gang", "podgroup", "group of podgroups"])
def test_a_required_domain(part: str, bound: int, rule: str, story: Story) -> None:
    whole_gang(story)
    pack = {"topologyConstraint": {"packConstraint": {"required": RACK}}}
    group = {"name": "t-0-a", "minReplicas": 2}
    spec = {
        "gang": {**pack, "podgroups": [group]},
        "podgroup": {"podgroups": [{**group, **pack}]},
        "group of podgroups": {
            "podgroups": [group],
            "topologyConstraintGroupConfigs": [{"name": "c", "podGroupNames": ["t-0-a"], **pack}],
        },
    }[part]
    story.record("podgangs", "t-0", {"spec": spec})
    for name, node in list({"t1": "n2", "t2": "n2", "t3": "n1"}.items())[3 - bound :]:
        story.pod(name, gang="t-0", clique="t-0-a")
        story.pod(name, node=node, gang="t-0", clique="t-0-a")
    judgment = judge_story(story)
    assert broken_rules(judgment) == [rule]
    assert "r1" in judgment.broken_rules[0][1].reason and "r2" in judgment.broken_rules[0][1].reason


def test_a_node_that_lacks_the_label_is_in_no_domain(story: Story) -> None:
    story.node("bare", gpus="2")
    story.record("podgangs", "t-0", {"spec": IN_A_RACK})
    story.pod("t1", gang="t-0", clique="t-0-a")
    story.pod("t1", node="bare", gang="t-0", clique="t-0-a")
    assert broken_rules(judge_story(story)) == ["TOPO-034"]


def test_a_replacement_may_go_where_the_rest_went(story: Story) -> None:
    whole_gang(story)
    story.record("podgangs", "t-0", {"spec": IN_A_RACK})
    story.pod("t1", gang="t-0", clique="t-0-a")
    story.pod("t1", node="n1", gang="t-0", clique="t-0-a")
    story.pod("t1", node="n1", gang="t-0", clique="t-0-a", terminating=True)
    story.pod("t2", gang="t-0", clique="t-0-a")
    story.pod("t2", node="n2", gang="t-0", clique="t-0-a")
    assert broken_rules(judge_story(story)) == []


def test_pods_of_all_namespaces_use_up_nodes(story: Story) -> None:
    gpu = {"nvidia.com/gpu": "1"}
    story.node("n1", gpus="1", pods="9")
    story.gang("s-0", {"s-0-a": (1, ["a1"])})
    story.pod("a1", asks=gpu, **A)
    story.pod("a1", asks=gpu, node="n1", **A)
    pod = orjson.loads(records(story)[-1].raw)
    for node in ("", "n1"):
        pod["spec"] |= {"nodeName": node}
        story.revision += 1
        story.log.append(
            "MODIFIED" if node else "ADDED", "pods", namespace="other", name="a1", uid="uid-other",
            version=str(story.revision), raw=orjson.dumps(pod), at=story.at,
        )  # fmt: skip
    judgment = judge_story(story)
    assert [(space, result.id) for space, result in judgment.broken_rules] == [("", "INV-010")]


# -- files and commands


def recording(tmp_path: Path, story: Story, *, ends: bool = True) -> Path:
    path = tmp_path / "recording.jsonl"
    file = storage.Recording(path)
    file.write(records(story)[:3])
    file.write(records(story)[3:])
    file.now = story.at + LATER
    if ends:
        file.__exit__(None, None, None)
    else:
        file.close()
    return path


def test_a_recording_is_read_again(tmp_path: Path, story: Story) -> None:
    torn_gang(story)
    space, now, loaded = storage.load(recording(tmp_path, story))
    assert (space, now) == ("", story.at + LATER)
    assert [(record.seq, record.raw) for record in loaded] == [(record.seq, record.raw) for record in records(story)]
    assert (tmp_path / "recording.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_recording_that_was_killed_ends_with_its_last_record(tmp_path: Path, story: Story) -> None:
    torn_gang(story)
    _, now, loaded = storage.load(recording(tmp_path, story, ends=False))
    assert (now, len(loaded)) == (story.at, len(records(story)))


def test_a_truncated_line_is_ignored(tmp_path: Path, story: Story) -> None:
    torn_gang(story)
    path = recording(tmp_path, story, ends=False)
    path.write_bytes(path.read_bytes()[:-40])
    assert len(storage.load(path)[2]) == len(records(story)) - 1
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(UsageError, match="was the file cut"):
        storage.load(path)


def test_a_gang_that_is_torn_when_the_recording_ends_is_not_settled(tmp_path: Path, story: Story) -> None:
    torn_gang(story)
    path = recording(tmp_path, story, ends=False)
    invocation = CliRunner().invoke(app, ["scheduler", "judge", str(path)], standalone_mode=False)
    assert invocation.return_value == Exit.PARTIAL and "not settled yet" in invocation.output


def test_a_recording_lasts_until_ctrl_c_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Recorder:
        def __init__(self, *arguments: object) -> None: ...

        def start(self) -> None: ...

        stop = start

        def all_records(self, after: int) -> list[Record]:
            return []

        def now(self) -> float:
            return 1.0

        def last_seq(self) -> int:
            return 0

    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    async def maps(path: Path) -> list[object]:
        return []

    monkeypatch.setattr(scheduler, "Recorder", Recorder)
    monkeypatch.setattr(scheduler, "_watched_maps", maps)
    monkeypatch.setattr(scheduler.time, "sleep", interrupted)
    command = ["scheduler", "record", str(tmp_path / "h.jsonl"), "--kubeconfig", str(tmp_path / "config")]
    invocation = CliRunner().invoke(app, command, standalone_mode=False)
    assert invocation.return_value == 0, invocation.output
    assert "Ctrl-C ends it" in invocation.output and (tmp_path / "h.jsonl").exists()


@pytest.mark.parametrize(
    ("prepare", "code", "words"), [(whole_gang, 0, "1 admitted"), (torn_gang, 1, "s-0-a has 1 of 2 bound")]
)
def test_the_command(prepare: Callable[[Story], None], code: int, words: str, tmp_path: Path, story: Story) -> None:
    prepare(story)
    path, result = recording(tmp_path, story), tmp_path / "result.json"
    invocation = CliRunner().invoke(
        app, ["scheduler", "judge", str(path), "--json", str(result)], standalone_mode=False
    )
    assert invocation.return_value == code, invocation.output
    assert words in invocation.output
    assert [gang["name"] for gang in orjson.loads(result.read_bytes())["gangs"]] == ["s-0"]


def test_nothing_to_judge_is_not_conformant(tmp_path: Path, story: Story) -> None:
    story.node("n1", gpus="1")
    with pytest.raises(UsageError, match="no gang to judge"):
        scheduler.judge(recording(tmp_path, story))


def test_containers_of_pods_are_not_recorded(story: Story) -> None:
    container = {
        "name": "main",
        "image": "private/image",
        "command": ["run"],
        "env": [{"name": "KEY", "value": "secret"}],
        "resources": {"limits": {"nvidia.com/gpu": 1}},
    }
    raw = orjson.dumps({"metadata": {"name": "a1", "labels": {"l": "v"}}, "spec": {"containers": [container]}})
    placement = orjson.loads(redaction.placement(raw))
    assert placement["spec"]["containers"] == [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": 1}}}]
    assert placement["metadata"] == {"name": "a1", "labels": {"l": "v"}}
    node = orjson.dumps({"metadata": {"name": "n", "annotations": {"a": "b"}}, "status": {"addresses": [1]}})
    assert orjson.loads(redaction.node(node)) == {"metadata": {"name": "n"}, "spec": {}, "status": {}}
