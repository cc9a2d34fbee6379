"""Lives as data: what can be chosen, which mistakes are told, and what stages are made of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from conformance.cluster import lives, stages
from conformance.cluster.lives import LIFE, PREFIX
from conformance.data import PROJECT, folder
from conformance.errors import UsageError

DATA = folder("kwok-profiles") / "lives.yaml"
STAGES = folder("kwok-profiles") / "stages" / "fast" / "lives.yaml"


def test_annotations_of_a_life_are_spelled_out() -> None:
    found = lives.annotated("crash-loop", restart_after="2s", restarts=3)
    assert found == {LIFE: "crash-loop", PREFIX + "restart-after": "2s", PREFIX + "restarts": "3"}


@pytest.mark.parametrize(
    ("annotations", "told"),
    [
        ({"life": "crashloop"}, "no life 'crashloop' — did you mean \"crash-loop\""),
        ({"lief": "slow"}, 'lief: unknown annotation — did you mean "life"'),
        ({"life": "slow", "redy-after": "3s"}, 'unknown annotation — did you mean "ready-after"'),
        ({"life": "slow", "ready-after": "3"}, "ready-after: '3' has not the right form — give whole seconds"),
        ({"life": "crash-loop", "restarts": "3s"}, "restarts: '3s' has not the right form"),
        ({"life": "never-ready", "ready-after": "3s"}, "means nothing to the life never-ready"),
        ({"ready-after": "3s"}, "means nothing without a life"),
    ],
)
def test_a_mistake_is_told(annotations: dict[str, str], told: str) -> None:
    clique = {"name": "web", "annotations": {PREFIX + name: value for name, value in annotations.items()}}
    manifest = {"spec": {"template": {"cliques": [{"name": "other"}, clique]}}}
    (mistake,) = lives.mistakes_of_set(manifest)
    assert told in str(mistake) and str(mistake).startswith(f"clique web: {PREFIX}")


def test_what_is_right_or_not_ours_is_no_mistake() -> None:
    other = {"example.org/life": "long", PREFIX + "hold-deletion": ""}
    assert not list(lives.mistakes(other | lives.annotated("exit", exit_code=3)))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("ready-after: 3s", "ready-after: 3 s", "lives.realistic.parameters.ready-after: '3 s' is no default"),
        ("ready-after: 3s", "redy-after: 3s", "lives.realistic.parameters.redy-after: unknown parameter"),
        ("{fails-after: 1s}", "{}", "parameters.fails-after: no life reads it"),
        ("type: count", "type: number", 'parameters.restarts.type: "number" is not known'),
        ("never-ready:", "never_ready:", "lives"),
    ],
)
def test_a_wrong_file_of_lives_is_refused(tmp_path: Path, old: str, new: str, told: str) -> None:
    text = DATA.read_text("utf-8")
    assert old in text
    path = tmp_path / "lives.yaml"
    path.write_text(text.replace(old, new), "utf-8")
    with pytest.raises(UsageError, match=re.escape(told)):
        lives.read(path)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("[image-pull-failure]", "[image-pull-error]", "no life 'image-pull-error'"),
        ("[image-pull-failure]", "[slow]", "${fails-after} stands for nothing for the life slow"),
        ("durationFrom:", "durationFrm:", "unknown field"),
        ("matchAnnotations:", "matchAnotations:", "unknown field"),
    ],
)
def test_a_wrong_file_of_stages_is_refused(tmp_path: Path, old: str, new: str, told: str) -> None:
    path = tmp_path / "lives.yaml"
    path.write_text(STAGES.read_text("utf-8").replace(old, new, 1), "utf-8")
    with pytest.raises(UsageError, match=re.escape(told)):
        stages.load_file(path)


def test_every_life_has_stages_of_its_own_and_no_parameter_is_left_out() -> None:
    made = stages.load_file(STAGES)
    texts: dict[str, str] = {}
    for stage in made:
        life = stage["spec"]["selector"]["matchAnnotations"][LIFE]
        assert stage["metadata"]["name"].endswith(f"-{life}") and "${" not in yaml.safe_dump(stage)
        texts[life] = texts.get(life, "") + yaml.safe_dump(stage)
    assert texts.keys() == lives.known().lives.keys()
    for name, life in lives.known().lives.items():
        for parameter, default in life.parameters.items():
            assert f"{PREFIX}{parameter}" in texts[name] and f'"{default}"' in texts[name].replace("\\", "")


def test_pods_without_a_life_are_asked_nothing_more_than_before() -> None:
    """KWOK compares annotations before it runs any jq: the stages of lives cost other pods nothing."""
    plain = [stage for stage in stages.load("fast") if stage["spec"]["resourceRef"]["kind"] == "Pod"]
    asked = {
        stage["metadata"]["name"]: len(stage["spec"]["selector"]["matchExpressions"])
        for stage in plain
        if "matchAnnotations" not in stage["spec"]["selector"]
    }
    assert asked == {"pod-ready": 5, "pod-starts": 5, "pod-delete": 3}


def test_the_page_has_every_annotation_with_its_defaults() -> None:
    page = (PROJECT / "docs" / "fake-cluster.md").read_text("utf-8")
    told = {row[0]: row[1] for row in re.findall(r"^\| `([a-z-]+)` \| .* \| ([^|]*) \|$", page, re.M)}
    for name, life in lives.known().lives.items():
        assert dict(re.findall(r"`([a-z-]+): ([^`]*)`", told[name])) == life.parameters
    for name in (*lives.known().forms, *lives.known().holds, "life", "lost"):
        assert f"`{name}`" in page
