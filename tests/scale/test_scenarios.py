"""Tests of scenario files and of the objects that are generated from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.data import folder
from conformance.errors import UsageError
from conformance.scale import scenario
from conformance.scale.phases import Action, Until

SMALL_SCENARIO = folder("fixtures") / "scale" / "scale-20.yaml"
SET_FILE = SMALL_SCENARIO.parent / "sets" / "expert-worker.yaml"


def test_a_scenario_yields_a_set_and_the_same_pods_without_an_operator() -> None:
    small_scenario = scenario.read(SMALL_SCENARIO)
    manifest = small_scenario.pod_clique_set("there", "some-scheduler")
    [clique] = manifest["spec"]["template"]["cliques"]
    assert manifest["metadata"] == {"name": "scale", "namespace": "there"} and manifest["spec"]["replicas"] == 10
    assert clique["spec"]["podSpec"]["schedulerName"] == "some-scheduler"
    assert (
        "schedulerName"
        not in small_scenario.pod_clique_set("there", None)["spec"]["template"]["cliques"][0]["spec"]["podSpec"]
    )
    pods = small_scenario.plain_pods("there", "default-scheduler")
    assert len(pods) == small_scenario.pods == 20 == len({pod["metadata"]["name"] for pod in pods})
    assert {pod["spec"]["schedulerName"] for pod in pods} == {"default-scheduler"}
    assert pods[0]["spec"]["containers"] == clique["spec"]["podSpec"]["containers"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("replicas: 10", "replicas: many", "replicas"),
        ("count: 4", "count: 0", "nodes.count"),
        ("profile: tiny", "profile: tyni", "tiny"),
        ("set: expert-worker", "set: expert-wroker", 'did you mean "expert-worker"'),
        ("set: expert-worker", "manifest: {spec: {}}", "metadata.name"),
        ("set: expert-worker", "", "manifest"),
        ("set: expert-worker", "set: expert-worker\nmanifest: {}", "wrong.yaml"),
        ("description:", "descriptoin:", "descriptoin"),
    ],
)
def test_an_invalid_scenario_is_reported_with_file_and_field(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = SMALL_SCENARIO.read_text()
    assert old in text
    path = tmp_path / "wrong.yaml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(UsageError, match=r"wrong\.yaml") as caught:
        scenario.read(path)
    assert message in str(caught.value)


def write_scenario(path: Path, phases: str, old: str = "replicas: 10", new: str = "replicas: 10") -> Path:
    path.write_text(SMALL_SCENARIO.read_text().replace(old, new, 1) + f"phases: {phases}\n")
    return path


def test_without_phases_a_set_is_deployed_and_deleted() -> None:
    assert [
        (phase.name, phase.action, phase.until, phase.replicas) for phase in scenario.read(SMALL_SCENARIO).phases
    ] == [
        ("deploy", Action.CREATE, Until.SETTLED, 10),
        ("delete", Action.DELETE, Until.GONE, 0),
    ]


def test_phases_follow_the_replicas_of_the_set(tmp_path: Path) -> None:
    path = write_scenario(
        tmp_path / "up.yaml",
        "[{name: deploy, create: {}}, {name: up, scale: 15}, {repeat: 2, phases: [{name: down, scale: 5}]},"
        " {name: touch, patch: [{op: add, path: /metadata/annotations, value: {x: 'steady-${run}'}}],"
        " until: observed, hold: 3, unchanged: true}, {name: wait, until: settled}]",
    )
    loaded_scenario = scenario.read(path)
    assert [(phase.name, phase.replicas, phase.previous_replicas) for phase in loaded_scenario.phases] == [
        ("deploy", 10, 0),
        ("up", 15, 10),
        ("down-c1", 5, 15),
        ("down-c2", 5, 5),
        ("touch", 5, 5),
        ("wait", 5, 5),
    ]
    assert (loaded_scenario.peak_replicas, loaded_scenario.pods) == (15, 30) and len(
        loaded_scenario.plain_pods("there", "x")
    ) == 30
    touch_phase = loaded_scenario.phases[4]
    assert touch_phase.operations("r1") == [{"op": "add", "path": "/metadata/annotations", "value": {"x": "steady-r1"}}]
    assert (touch_phase.until, touch_phase.hold, touch_phase.unchanged) == (Until.OBSERVED, 3, True)


@pytest.mark.parametrize(
    ("phases", "message"),
    [
        ("[{name: up, scale: 5}]", "begin with create"),
        ("[{name: a, create: {}}, {name: b, create: {}}]", "a set that exists"),
        ("[{name: a, create: {}}, {name: a, delete: {}}]", "duplicate phase"),
        ("[{name: a, create: {}, delete: {}}]", "create and delete"),
        ("[{name: a, create: {}, until: later}]", "phases"),
        ("[{name: a, create: {}, fits: 11}]", "fits: 11 is more than the 10 replicas of the set"),
        ("[]", "phases"),
    ],
)
def test_inconsistent_phases_are_rejected(tmp_path: Path, phases: str, message: str) -> None:
    with pytest.raises(UsageError, match=r"wrong\.yaml:\d+") as caught:
        scenario.read(write_scenario(tmp_path / "wrong.yaml", phases))
    assert message in str(caught.value)


def test_the_raw_floor_has_as_many_pods_as_fit(tmp_path: Path) -> None:
    loaded_scenario = scenario.read(
        write_scenario(tmp_path / "gangs.yaml", "[{name: a, create: {}, fits: 7}, {name: b, delete: {}}]")
    )
    assert (loaded_scenario.pods, len(loaded_scenario.plain_pods("there", "x"))) == (20, 14)
    assert [phase.fits for phase in loaded_scenario.phases] == [7, None]


def test_the_raw_floor_has_the_time_limit_of_the_longest_phase() -> None:
    assert [scenario.load(name).within for name in ("scale-20", "scale-10000")] == [600, 3600]


def test_scaling_groups_multiply_the_pods_of_their_cliques(tmp_path: Path) -> None:
    set_with_group = SET_FILE.read_text().replace(
        "    cliques:\n",
        "    podCliqueScalingGroups: [{name: g, cliqueNames: [expert-worker], replicas: 3}]\n    cliques:\n",
    )
    (tmp_path / "set.yaml").write_text(set_with_group)
    path = tmp_path / "groups.yaml"
    path.write_text(SMALL_SCENARIO.read_text().replace("set: expert-worker", "set: set.yaml"))
    loaded_scenario = scenario.read(path)
    assert (loaded_scenario.pods_per_replica, loaded_scenario.pods) == (6, 60)
    assert len({pod["metadata"]["name"] for pod in loaded_scenario.plain_pods("there", "x")}) == 60


def test_the_digest_depends_on_the_load_only(tmp_path: Path) -> None:
    text, path = SMALL_SCENARIO.read_text(), tmp_path / "other.yaml"
    digest = scenario.read(SMALL_SCENARIO).digest
    path.write_text(text.replace("ScaleTest_20", "Another").replace("description: ", "description: Also "))
    assert scenario.read(path).digest == digest
    (tmp_path / "set.yaml").write_text(SET_FILE.read_text().replace("memory: 1Mi", "memory: 2Mi"))
    for old, new in (
        ("count: 4", "count: 5"),
        ("set: expert-worker", "set: set.yaml"),
        ("replicas: 10", "replicas: 11"),
    ):
        path.write_text(text.replace(old, new, 1))
        assert scenario.read(path).digest != digest
    assert scenario.read(write_scenario(path, "[{name: deploy, create: {}}]")).digest != digest


def test_a_scenario_may_be_a_file_of_the_user(tmp_path: Path) -> None:
    assert scenario.load(str(write_scenario(tmp_path / "mine.yaml", "[{name: deploy, create: {}}]"))).pods == 20


def test_an_unknown_scenario_is_reported_with_a_suggestion() -> None:
    with pytest.raises(UsageError, match="scale-1000"):
        scenario.load("scale-100")


def test_a_scenario_can_have_nodes_with_partitions(tmp_path: Path) -> None:
    path = tmp_path / "partitions.yaml"
    path.write_text(SMALL_SCENARIO.read_text().replace("profile: tiny", "profile: single-mig"))
    assert scenario.read(path).digest != scenario.read(SMALL_SCENARIO).digest
