"""Tests of the stages of fake nodes and pods: stages that KWOK cannot handle are rejected."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from conformance.cluster import stages
from conformance.cluster.kubelet_sim.init_wait import LOST
from conformance.errors import UsageError

VALID_STAGE = {
    "apiVersion": "kwok.x-k8s.io/v1alpha1",
    "kind": "Stage",
    "metadata": {"name": "x"},
    "spec": {
        "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
        "selector": {"matchExpressions": [{"jq": {"key": ".a", "operator": "In", "values": ["b"]}}]},
        "steps": [{"delete": True}],
    },
}


def test_the_fast_set_has_five_stages_for_objects_without_a_behavior() -> None:
    plain_stages = [stage for stage in stages.load("fast") if "matchAnnotations" not in stage["spec"]["selector"]]
    names = [
        stage["metadata"]["name"]
        for stage in plain_stages
        if not stage["metadata"]["name"].endswith(("-unnamed", "-job"))
    ]
    assert sorted(names) == ["node-heartbeat-with-lease", "node-initialize", "pod-delete", "pod-ready", "pod-starts"]


def test_every_status_patch_names_its_resource_version_except_that_of_a_new_node() -> None:
    for stage in stages.load("fast"):
        for step in stage["spec"]["steps"]:
            if "patch" in step:
                # KWOK does not retry a rejected patch. Other clients write a new node, so its patch has only the uid.
                precondition = "uid" if stage["metadata"]["name"] == "node-initialize" else "resourceVersion"
                assert f"{precondition}: {{{{ .metadata.{precondition} | Quote }}}}" in step["patch"]["template"]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ({"cel": {"expression": "true"}}, r"\[0\]\.cel: unknown field — known: jq"),
        ({"key": ".a", "operator": "Exists"}, r"\[0\]\.key: unknown field — known: jq"),
        ({"jq": {"key": ".a", "operator": "In", "values": [1]}}, r"values\[0\]: holds a number — give a text"),
        ({"jq": {"key": ".a", "operator": "In"}}, "needs values"),
        ({"jq": {"key": ".a", "operator": "Exists", "values": ["b"]}}, "takes no values"),
        ({"jq": {"key": ".a", "operator": "Is"}}, "operator"),
        ({"jq": {"key": ".a", "operator": []}}, "operator"),
    ],
)
def test_a_selector_that_never_matches_or_crashes_kwok_is_refused(
    tmp_path: Path, expression: dict[str, object], message: str
) -> None:
    invalid_stage = VALID_STAGE | {"spec": {**VALID_STAGE["spec"], "selector": {"matchExpressions": [expression]}}}  # type: ignore[dict-item]
    path = tmp_path / "pods.yaml"
    path.write_text(yaml.safe_dump_all([VALID_STAGE, invalid_stage], explicit_start=True))
    with pytest.raises(UsageError, match=message) as caught:
        stages.load_file(path)
    second_document_line = path.read_text().splitlines().index("---", 1) + 1
    assert f"pods.yaml:{second_document_line + 1}" in str(caught.value)


@pytest.mark.parametrize("change", [{"immediateNextStage": True}, {"selector": None}, {"selector": {}}, {"steps": []}])
def test_a_stage_that_races_or_has_no_effect_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    path = tmp_path / "pods.yaml"
    path.write_text(yaml.safe_dump(VALID_STAGE | {"spec": {**VALID_STAGE["spec"], **change}}))  # type: ignore[dict-item]
    with pytest.raises(UsageError, match=next(iter(change))):
        stages.load_file(path)


def test_an_unknown_set_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match="fast"):
        stages.load("slow")


def test_no_stage_applies_to_a_pod_whose_node_is_lost() -> None:
    lost_selector = f'select(.type == "{LOST}")'
    for stage in stages.load("fast"):
        keys = [expression["jq"]["key"] for expression in stage["spec"]["selector"]["matchExpressions"]]
        assert (stage["spec"]["resourceRef"]["kind"] == "Node") != any(lost_selector in key for key in keys)
