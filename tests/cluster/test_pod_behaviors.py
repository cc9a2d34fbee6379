"""Tests of the data file of pod behaviors: its choices, the mistakes that are reported, and the generated stages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from conformance.cluster import pod_behaviors, stages
from conformance.cluster.pod_behaviors import BEHAVIOR, PREFIX
from conformance.cluster.pod_mixes import Mix
from conformance.data import PROJECT, folder
from conformance.errors import UsageError

BEHAVIORS_FILE = folder("kwok-profiles") / "behaviors.yaml"
STAGES_FILE = folder("kwok-profiles") / "stages" / "fast" / "behaviors.yaml"


def test_the_annotations_of_a_behavior_have_their_full_names() -> None:
    annotations = pod_behaviors.behavior_annotations("crash-loop", restart_after="2s", restarts=3)
    assert annotations == {BEHAVIOR: "crash-loop", PREFIX + "restart-after": "2s", PREFIX + "restarts": "3"}


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        ({"behavior": "crashloop"}, "unknown behavior 'crashloop' — did you mean \"crash-loop\""),
        ({"behavoir": "slow"}, 'behavoir: unknown annotation — did you mean "behavior"'),
        ({"behavior": "slow", "redy-after": "3s"}, 'unknown annotation — did you mean "ready-after"'),
        ({"behavior": "slow", "ready-after": "3"}, "ready-after: '3' has the wrong form — give whole seconds"),
        ({"behavior": "crash-loop", "restarts": "3s"}, "restarts: '3s' has the wrong form"),
        ({"behavior": "never-ready", "ready-after": "3s"}, "has no effect with the behavior never-ready"),
        ({"exit-after": "3s"}, "has no effect without a behavior"),
        ({"ready-after": "3"}, "ready-after: '3' has the wrong form — give whole seconds"),
    ],
)
def test_a_mistake_is_reported(annotations: dict[str, str], message: str) -> None:
    clique = {"name": "web", "annotations": {PREFIX + name: value for name, value in annotations.items()}}
    manifest = {"spec": {"template": {"cliques": [{"name": "other"}, clique]}}}
    (mistake,) = pod_behaviors.mistakes_of_set(manifest)
    assert message in str(mistake) and str(mistake).startswith(f"clique web: {PREFIX}")


@pytest.mark.parametrize(
    "spec", [None, [], {"template": 1}, {"template": {"cliques": [None, {"annotations": ["x"]}, {"annotations": 1}]}}]
)
def test_a_malformed_manifest_is_left_to_the_api_server(spec: object) -> None:
    assert not list(pod_behaviors.mistakes_of_set({"spec": spec}))


def test_valid_and_foreign_annotations_are_not_mistakes() -> None:
    foreign_annotations = {"example.org/behavior": "long", PREFIX + "hold-deletion": ""}
    assert not list(
        pod_behaviors.mistakes(foreign_annotations | pod_behaviors.behavior_annotations("exit", exit_code=3))
    )
    assert not list(pod_behaviors.mistakes({PREFIX + "ready-after": "3s"}))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "ready-after: 3s",
            "ready-after: 3 s",
            "behaviors.realistic.parameters.ready-after: '3 s' is not a valid default",
        ),
        ("ready-after: 3s", "redy-after: 3s", "behaviors.realistic.parameters.redy-after: unknown parameter"),
        ("{fails-after: 1s}", "{}", "parameters.fails-after: no behavior reads it"),
        ("type: count", "type: number", 'parameters.restarts.type: "number" is not known'),
        ("never-ready:", "never_ready:", "behaviors"),
        ("times: {running-after", "times: {runing-after", "mixes.realistic.times.runing-after: unknown parameter"),
        ("[1, 6]", "[6, 1]", "mixes.realistic.times.running-after: 6 is more than 1"),
        ("[1, 6]", "[1]", "mixes.realistic.times.running-after: is empty"),
        ("crash-loop, oneOf: 16", "crash, oneOf: 16", "mixes.realistic.failures[0].behavior: unknown behavior 'crash'"),
        ("oneOf: 16", "oneOf: 17", "mixes.realistic.failures[0].oneOf: 17 is not known here"),
        ("oneOf: 16", "oneOf: 1", "mixes.realistic.failures[1].oneOf: more pods fail than there are"),
        ('restarts: "1"', 'restart: "1"', "mixes.realistic.failures[0].parameters.restart: unknown parameter"),
        ("jobs: {running-after: 0s", "jobs: {runing-after: 0s", "jobs.runing-after: unknown parameter"),
        ("exit-after: 1s}", "exit-after: 1 s}", "jobs.exit-after: '1 s' has the wrong form — give whole seconds"),
        ('restarts: "1"', "restarts: 1s", "mixes.realistic.failures[0].parameters.restarts: '1s' has the wrong form"),
    ],
)
def test_an_invalid_behaviors_file_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = BEHAVIORS_FILE.read_text("utf-8")
    assert old in text
    path = tmp_path / "behaviors.yaml"
    path.write_text(text.replace(old, new), "utf-8")
    with pytest.raises(UsageError, match=re.escape(message)):
        pod_behaviors.read(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[image-pull-failure]", "[image-pull-error]", "unknown behavior 'image-pull-error'"),
        ("[image-pull-failure]", "[slow]", "${fails-after} is not defined for the behavior slow"),
        ("durationFrom:", "durationFrm:", "unknown field"),
        ("matchAnnotations:", "matchAnotations:", "unknown field"),
    ],
)
def test_an_invalid_stages_file_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "behaviors.yaml"
    path.write_text(STAGES_FILE.read_text("utf-8").replace(old, new, 1), "utf-8")
    with pytest.raises(UsageError, match=re.escape(message)):
        stages.load_file(path)


def test_every_behavior_has_its_own_stages_with_all_of_its_parameters() -> None:
    loaded_stages = [stage for stage in stages.load_file(STAGES_FILE) if not is_unnamed(stage) and not is_of_job(stage)]
    yaml_by_behavior: dict[str, str] = {}
    for stage in loaded_stages:
        behavior = stage["spec"]["selector"]["matchAnnotations"][BEHAVIOR]
        assert stage["metadata"]["name"].endswith(f"-{behavior}") and "${" not in yaml.safe_dump(stage)
        yaml_by_behavior[behavior] = yaml_by_behavior.get(behavior, "") + yaml.safe_dump(stage)
    assert yaml_by_behavior.keys() == pod_behaviors.load().behaviors.keys()
    for name, behavior in pod_behaviors.load().behaviors.items():
        for parameter, default in behavior.parameters.items():
            assert f"{PREFIX}{parameter}" in yaml_by_behavior[name] and f'"{default}"' in yaml_by_behavior[
                name
            ].replace("\\", "")


def is_unnamed(stage: stages.Stage) -> bool:
    return str(stage["metadata"]["name"]).endswith("-unnamed")


def is_of_job(stage: stages.Stage) -> bool:
    return str(stage["metadata"]["name"]).endswith("-job")


JOB_STAGES = {f"pod-{stage}-exit-job" for stage in ("runs", "becomes-ready", "exits", "restarts")}


def test_stages_of_behaviors_add_few_expressions_for_other_pods() -> None:
    """KWOK compares annotations before it runs any jq expression, and stops at the first expression that does not
    match. Therefore, the stages of behaviors run no expression for other pods, except for two stages that check whether
    a parameter requests a behavior, and four that check whether a Job controls the pod."""
    counts_by_stage = {
        stage["metadata"]["name"]: len(stage["spec"]["selector"]["matchExpressions"])
        for stage in stages.load("fast")
        if stage["spec"]["resourceRef"]["kind"] == "Pod" and "matchAnnotations" not in stage["spec"]["selector"]
    }
    assert {name: count for name, count in counts_by_stage.items() if not name.endswith(("-unnamed", "-job"))} == {
        "pod-ready": 5,
        "pod-starts": 5,
        "pod-delete": 3,
    }
    assert {name for name in counts_by_stage if name.endswith("-unnamed")} == {
        "pod-runs-realistic-unnamed",
        "pod-becomes-ready-realistic-unnamed",
    }
    assert {name for name in counts_by_stage if name.endswith("-job")} == JOB_STAGES


def first_key(stage: stages.Stage) -> str:
    jq = stage["spec"]["selector"]["matchExpressions"][0]["jq"]
    assert jq["operator"] == "Exists"
    return str(jq["key"])


def test_pods_of_jobs_without_a_behavior_exit() -> None:
    loaded_stages = [stage for stage in stages.load("fast") if is_unnamed(stage) or is_of_job(stage)]
    without_behavior = f'select(.metadata.annotations["{BEHAVIOR}"] == null) | '
    for stage in loaded_stages:
        selector = f"select({stages.IS_JOB_POD})" if is_of_job(stage) else f"select({stages.IS_JOB_POD} | not) | "
        assert first_key(stage).startswith(without_behavior + selector)
    (exit_stage,) = (
        yaml.safe_dump(stage) for stage in loaded_stages if stage["metadata"]["name"] == "pod-exits-exit-job"
    )
    assert pod_behaviors.load().jobs["exit-after"] == "1s" and '"1s"' in exit_stage.replace("\\", "")
    parameters = pod_behaviors.load().job_parameters("slow")
    assert parameters is not None and (parameters["ready-after"], parameters["exit-after"]) == ("60s", "1s")


def mixes_of_behavior(behavior: str) -> list[Mix]:
    return [mix for name, mix in pod_behaviors.load().mixes.items() if name == behavior]


@pytest.mark.parametrize("behavior", sorted(pod_behaviors.load().behaviors))
def test_pods_without_a_behavior_have_every_stage_of_the_clusters_behavior(behavior: str) -> None:
    loaded_stages = stages.load("fast", behavior)
    named_stages = [stage for stage in loaded_stages if stage["metadata"]["name"].endswith(f"-{behavior}")]
    failure_behaviors = {failure.behavior for mix in mixes_of_behavior(behavior) for failure in mix.failures}
    additional = {f"{stage}-{cause}" for cause in failure_behaviors for stage in ("pod-exits", "pod-restarts")}
    assert {stage["metadata"]["name"] for stage in loaded_stages if is_unnamed(stage)} == {
        f"{name}-unnamed" for name in additional | {stage["metadata"]["name"] for stage in named_stages}
    }
    first_keys = {first_key(stage) for stage in loaded_stages if is_unnamed(stage)}
    has_job_stages = behavior in ("realistic", "slow")
    unless_job = f"select({stages.IS_JOB_POD} | not) | " if has_job_stages else ""
    assert first_keys == {f'select(.metadata.annotations["{BEHAVIOR}"] == null) | {unless_job}"every"'}
    assert {stage["metadata"]["name"] for stage in loaded_stages if is_of_job(stage)} == (
        JOB_STAGES if has_job_stages else set()
    )
    (ready_stage,) = (stage for stage in loaded_stages if stage["metadata"]["name"] == "pod-ready")
    keys = [expression["jq"]["key"] for expression in ready_stage["spec"]["selector"]["matchExpressions"]]
    assert any(f'("{behavior}" | select(. != ""))' in key for key in keys)
    assert "${" not in yaml.safe_dump_all(loaded_stages)


def test_the_page_has_every_annotation_with_its_defaults() -> None:
    page = (PROJECT / "docs" / "fake-cluster.md").read_text("utf-8")
    documented_parameters = {row[0]: row[1] for row in re.findall(r"^\| `([a-z-]+)` \| .* \| ([^|]*) \|$", page, re.M)}
    for name, behavior in pod_behaviors.load().behaviors.items():
        assert dict(re.findall(r"`([a-z-]+): ([^`]*)`", documented_parameters[name])) == behavior.parameters
    for name in (*pod_behaviors.load().parameters, *pod_behaviors.load().holds, "behavior", "lost"):
        assert f"`{name}`" in page
