"""Tests that the reference's filters agree with kube-scheduler, both with recorded responses and with a live scene."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reference_impl.scheduler.filters import node_ports, pod_topology_spread, taint_toleration, volume_zone
from reference_impl.scheduler.filters.cluster_state import ClusterState
from reference_impl.scheduler.filters.dynamic_resources import DynamicResources
from reference_impl.scheduler.filters.feasibility import FILTERS
from reference_impl.scheduler.filters.node_name import NodeName
from reference_impl.scheduler.model import Pod
from tests.conftest import THOROUGH
from tests.kube_scheduler import play
from tests.kube_scheduler.answers import FOLDER, read
from tests.kube_scheduler.comparison import Difference, compare, report
from tests.kube_scheduler.nodes import ZONE
from tests.kube_scheduler.scenes import scene
from tests.kube_scheduler.stored import difference

RECORDINGS = sorted(FOLDER.glob("*.txt"))
SCENE_STEP = 1 if THOROUGH else 5
"""The interval of the recorded scenes that are compared."""
CONSTRAINT = pod_topology_spread._Constraint
DEFECTS: dict[str, tuple[Any, str, Any]] = {
    # NodeName is not among them, because kube-scheduler does not try pods whose spec names a node, and DynamicResources
    # is not, because its responses are recorded separately (tests/reference/devices).
    **{
        filter_class.__name__: (filter_class, "refusal", lambda *_: "")
        for filter_class in FILTERS
        if filter_class not in (NodeName, DynamicResources)
    },
    "resizes are ignored": (Pod, "usage", property(lambda pod: pod.requests)),
    "terminated pods hold resources": (Pod, "holds_resources", True),
    "numbers in taints are ignored": (taint_toleration, "_number", lambda _: None),
    "addresses of ports are ignored": (node_ports, "_conflicts", lambda one, its: one.host_port == its.host_port),
    "policies of constraints are ignored": (CONSTRAINT, "includes", lambda *_: True),
    "minDomains is ignored": (CONSTRAINT, "fewest", property(lambda it: min(it.counts.values(), default=0))),
    "former labels of zones are ignored": (volume_zone, "KEYS", (ZONE,)),
    "capacities are ignored": (ClusterState, "csi_drivers_by_name", {}),
    "labels of namespaces are ignored": (ClusterState, "namespace_labels", {}),
}


def differences(path: Path, share: int) -> Iterator[Difference]:
    for answers in list(read(path))[::share]:
        drawn_scene = scene(answers.seed)
        assert drawn_scene.digest == answers.digest, f"scene {answers.seed} has changed: record it by make filters"
        yield from compare(drawn_scene, answers.feasible, path.stem)


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_the_filters_agree_with_recorded_responses(path: Path) -> None:
    observed = list(differences(path, SCENE_STEP))
    assert not observed, "\n" + report(observed)


@pytest.mark.parametrize("defect", DEFECTS)
def test_the_recorded_responses_reveal_a_defect(defect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*DEFECTS[defect], raising=True)
    first = next(differences(RECORDINGS[0], 1))
    place = f"pod {first.pod['metadata']['name']}, node {first.node}: expected "
    assert place + ("feasible" if first.feasible else "not feasible, observed feasible") in report([first])


def test_a_differently_stored_object_is_reported() -> None:
    assert not difference({"spec": {"ports": [1]}, "labels": {}}, {"spec": {"ports": [1], "hostIP": ""}})
    assert difference({"spec": {"ports": [1, 2]}}, {"spec": {"ports": [1, 3]}}) == (
        ".spec.ports[1]: 2 expected, 3 observed"
    )
    assert difference({"spec": {"ports": [1]}}, {"spec": {}}) == ".spec.ports: [1] expected, None observed"


@pytest.mark.cluster
async def test_the_filters_agree_with_kube_scheduler(capsys: pytest.CaptureFixture[str]) -> None:
    assert await play.play(seed=1, pods=1, kubernetes="", write=False) == 0, capsys.readouterr().out
