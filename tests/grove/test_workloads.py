"""Tests that the suite's workload files are valid, and that an invalid file is reported with file, line and field."""

from __future__ import annotations

import pytest
import yaml

from conformance.errors import UsageError
from conformance.grove import workloads

GOOD = """\
about: a test
parameters:
  name: {type: text, default: a, about: its name}
  pods: {type: integer, default: 2, about: pods}
  gpus: {type: quantity, default: 1, about: GPUs}
manifest:
  metadata: {name: "${name}"}
  spec:
    replicas: 1
    template:
      cliques:
      - name: web
        spec:
          replicas: ${pods}
          podSpec: {containers: [{name: "c-${pods}", resources: {limits: {nvidia.com/gpu: "${gpus}"}}}]}
"""


def test_our_own_workloads_are_right():
    assert workloads.validate() == []
    assert "disaggregated" in workloads.names()
    for name in workloads.names():
        assert workloads.load(name)["kind"] == "PodCliqueSet"


def test_values_keep_their_type_and_defaults_fill_the_rest(tmp_path):
    (tmp_path / "x.yaml").write_text(GOOD)
    [clique] = workloads.load("x", {"pods": 5}, tmp_path)["spec"]["template"]["cliques"]
    assert clique["spec"]["replicas"] == 5
    [container] = clique["spec"]["podSpec"]["containers"]
    assert container["name"] == "c-5"
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "1"}


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("y", {}, "unknown workload 'y'"),
        ("x", {"pod": 1}, "no parameter 'pod' — did you mean \"pods\"?"),
        ("x", {"pods": "1"}, "parameter pods of workload x got '1' — give integer"),
        ("x", {"pods": True}, "give integer"),
    ],
)
def test_a_wrong_call_is_reported(tmp_path, name, values, message):
    (tmp_path / "x.yaml").write_text(GOOD)
    with pytest.raises(UsageError) as caught:
        workloads.load(name, values, tmp_path)
    assert message in str(caught.value)


def test_names_end_in_other_names_only_where_that_is_judged():
    """An operator that looks up templates by the suffix of a name must fail RES-050 and START-009 only, not every
    requirement."""
    documents = {file.stem: yaml.safe_load(file.read_text()) for file in workloads.folder().glob("*.yaml")}
    names = {
        workload: [clique["name"] for clique in document["manifest"]["spec"]["template"]["cliques"]]
        for workload, document in documents.items()
    }
    ends = {
        workload
        for workload, clique_names in names.items()
        for a in clique_names
        for b in clique_names
        if a != b and a.endswith(b)
    }
    assert ends == {"alike", "namesakes"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "${pods}\n",
            "${pod}\n",
            "x.yaml:14: manifest.spec.template.cliques[0].spec.replicas: unknown",
        ),
        ("default: 2", "default: two", "x.yaml:4: parameters.pods.default: the default is not of type integer"),
        ("about: a test\n", "", 'the field "about" is missing'),
        ("  metadata: {name", "  metadata: {nane", "x.yaml:7: manifest.metadata"),
        ("${gpus}", "1", "x.yaml:5: parameters.gpus: is used nowhere"),
    ],
)
def test_a_wrong_file_is_reported_by_line_and_field(tmp_path, old, new, message):
    assert old in GOOD
    (tmp_path / "x.yaml").write_text(GOOD.replace(old, new))
    [error] = workloads.validate(tmp_path)
    assert message in error


def test_a_group_of_an_unknown_clique_is_reported(tmp_path):
    group = "      podCliqueScalingGroups: [{name: g, cliqueNames: [wep]}]\n"
    (tmp_path / "x.yaml").write_text(GOOD + group)
    [error] = workloads.validate(tmp_path)
    assert "no clique is called 'wep' — did you mean \"web\"?" in error
