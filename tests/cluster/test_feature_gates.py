"""Tests of the Kubernetes features that a cluster enables by presets, feature gates and API versions (`--features`,
`--feature-gates`, `--runtime-config`), and of invalid values of these options."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.cluster import features
from conformance.cluster.features import COMPONENTS, FeatureRequest, Features
from conformance.data import folder
from conformance.errors import UsageError

GATES = {
    "kube-apiserver": frozenset({"GenericWorkload", "CompositePodGroup", "APIServerTracing"}),
    "kube-controller-manager": frozenset({"GenericWorkload", "CompositePodGroup"}),
    "kube-scheduler": frozenset({"GenericWorkload", "CompositePodGroup"}),
}


def resolve(*gates: str, presets: tuple[str, ...] = (), apis: tuple[str, ...] = (), minor: str = "1.37") -> Features:
    return features.resolve(FeatureRequest(presets, gates, apis), minor, GATES.__getitem__)


def test_no_flags_are_set_unless_requested() -> None:
    assert resolve().flags() == {} and not FeatureRequest()


def test_the_workload_api_is_flat_in_one_version_and_a_tree_in_the_next() -> None:
    flat_features, tree_features = (resolve(presets=("workload-api",), minor=minor) for minor in ("1.36", "1.37"))
    assert flat_features.flags()["kube-apiserver"]["runtime-config"] == "scheduling.k8s.io/v1alpha2=true"
    assert flat_features.is_on("GangScheduling") and not flat_features.is_on("CompositePodGroup")
    runtime_config = "scheduling.k8s.io/v1beta1=true,scheduling.k8s.io/v1alpha3=true"
    assert tree_features.flags()["kube-apiserver"]["runtime-config"] == runtime_config
    assert not tree_features.is_on("GangScheduling")  # WL37-E06: a component of 1.37 exits if it is given this gate
    for component in ("kube-apiserver", "kube-scheduler"):
        assert tree_features.gates[component].keys() == {
            "GenericWorkload",
            "TopologyAwareWorkloadScheduling",
            "CompositePodGroup",
        }
    for gates in (flat_features, tree_features):
        assert gates.flags()["kube-controller-manager"] == {"feature-gates": "GenericWorkload=true"}


def test_a_gate_without_a_component_is_set_for_all_components_that_know_it() -> None:
    assert resolve("GenericWorkload=true").gates == {name: {"GenericWorkload": True} for name in COMPONENTS}
    assert resolve("APIServerTracing=false").gates == {"kube-apiserver": {"APIServerTracing": False}}


def test_a_component_may_be_named_and_later_values_take_precedence() -> None:
    result = resolve("kube-scheduler:CompositePodGroup=false,GenericWorkload=true", presets=("workload-api",))
    assert result.gates["kube-scheduler"]["CompositePodGroup"] is False
    assert result.gates["kube-apiserver"]["CompositePodGroup"] is True and result.is_on("CompositePodGroup")
    result = resolve(presets=("workload-api",), apis=("scheduling.k8s.io/v1alpha3=false",))
    assert result.runtime_config == {"scheduling.k8s.io/v1beta1": True, "scheduling.k8s.io/v1alpha3": False}


def test_a_gate_that_no_help_lists_is_set_for_a_named_component() -> None:
    assert resolve("kube-scheduler:Settled=true").gates == {"kube-scheduler": {"Settled": True}}


@pytest.mark.parametrize(
    ("requested_features", "message"),
    [
        (
            FeatureRequest(("workload-apis",)),
            "--features: unknown features 'workload-apis' — did you mean \"workload-api\"?",
        ),
        (
            FeatureRequest(gates=("GenericWorkload",)),
            "--feature-gates: 'GenericWorkload' is not a switch — give NAME=true, ",
        ),
        (
            FeatureRequest(gates=("A=1",)),
            "--feature-gates: 'A=1' is not a switch — give NAME=true, or COMPONENT:NAME=true",
        ),
        (
            FeatureRequest(gates=("kube-schedule:A=true",)),
            "unknown component 'kube-schedule' — did you mean \"kube-scheduler",
        ),
        (
            FeatureRequest(gates=("CompositPodGroup=true",)),
            'lists the feature gate CompositPodGroup — did you mean "Composite',
        ),
        (
            FeatureRequest(runtime_config=("v1beta1",)),
            "--runtime-config: 'v1beta1' is not a switch — give GROUP/VERSION=true",
        ),
        (FeatureRequest(runtime_config=("kube-scheduler:a/v1=true",)), "only kube-apiserver has it — give a/v1=true"),
    ],
)
def test_an_invalid_option_is_reported_in_one_line(requested_features: FeatureRequest, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        features.resolve(requested_features, "1.37", GATES.__getitem__)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_unsupported_features_are_reported_with_the_versions_that_support_them() -> None:
    with pytest.raises(
        UsageError, match=r"--features workload-api: Kubernetes 1.35 does not have them — it is for 1.36"
    ):
        resolve(presets=("workload-api",), minor="1.35")


@pytest.mark.parametrize(
    ("log", "message"),
    [
        (
            "E1124 run.go:72] unrecognized feature gate: GangScheduling\n",
            "--feature-gates: kube-scheduler does not know the feature gate GangScheduling — leave it out",
        ),
        (
            'E1 "err"="CompositePodGroup is enabled, but depends on features that are disabled: [GenericWorkload '
            'TopologyAwareWorkloadScheduling]"',
            "--feature-gates kube-scheduler:GenericWorkload=true,kube-scheduler:TopologyAwareWorkloadScheduling=true",
        ),
    ],
)
def test_the_exit_of_a_component_is_explained_in_one_line(log: str, message: str) -> None:
    explanation = features.explanation("kube-scheduler", log)
    assert explanation is not None and message in str(explanation) and "\n" not in str(explanation)
    assert features.explanation("kube-scheduler", "panic: something else") is None


def test_known_gates_are_read_from_a_programs_help(tmp_path: Path) -> None:
    program = tmp_path / "kube-scheduler"
    program.write_text(
        "#!/bin/sh\necho '--feature-gates  kube:GenericWorkload=true|false (BETA - default=false)'\n"
        "echo '   APIServerTracing=true|false (BETA - default=true)'\n"
    )
    program.chmod(0o755)
    assert features.known_gates(program) == {"GenericWorkload", "APIServerTracing"}


def test_requested_features_can_be_converted_to_options() -> None:
    requested_features = FeatureRequest(("workload-api",), ("kube-scheduler:A=true",), ("a/v1=true",))
    options = [
        "--features",
        "workload-api",
        "--feature-gates",
        "kube-scheduler:A=true",
        "--runtime-config",
        "a/v1=true",
    ]
    assert requested_features.options() == options


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("kube-scheduler: {", "kube-schedulr: {", 'featureGates.kube-schedulr: unknown field — did you mean "kube-sch'),
        ("GangScheduling: true", "gangScheduling: true", '"gangScheduling" has the wrong form — the name of a gate'),
        ("facts: [WL37-E02, WL37-E03, WL37-E04, WL37-E05]", "facts: []", "kubernetes.1.37.facts: is empty — rows of"),
    ],
)
def test_a_mistake_in_a_set_of_features_is_reported(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = (folder("fixtures") / "features" / "workload-api.yaml").read_text("utf-8")
    assert old in text
    (tmp_path / "own.yaml").write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(UsageError, match=message):
        features.read(tmp_path / "own.yaml")
