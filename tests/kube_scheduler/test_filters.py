"""The reference's filters against answers of kube-scheduler: recorded ones, and those of a few scenes played now."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reference_impl.scheduler.filters.feasibility import FILTERS
from reference_impl.scheduler.filters.node_name import NodeName
from reference_impl.scheduler.filters.plugin import Plugin
from tests.conftest import THOROUGH
from tests.kube_scheduler import play
from tests.kube_scheduler.answers import FOLDER, read
from tests.kube_scheduler.comparison import Difference, compare, report
from tests.kube_scheduler.scenes import scene

RECORDINGS = sorted(FOLDER.glob("*.txt"))
SHARE = 1 if THOROUGH else 5
"""One recorded scene of so many is tried."""


def differences(path: Path, share: int) -> Iterator[Difference]:
    for answers in list(read(path))[::share]:
        drawn = scene(answers.seed)
        assert drawn.digest == answers.digest, f"scene {answers.seed} has changed: record it by make filters"
        yield from compare(drawn, answers.feasible)


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_the_filters_agree_with_recorded_answers(path: Path) -> None:
    observed = list(differences(path, SHARE))
    assert not observed, "\n" + report(observed)


@pytest.mark.parametrize(
    "plugin", [each for each in FILTERS if each is not NodeName], ids=lambda plugin: plugin.__name__
)
def test_a_filter_that_refuses_nothing_differs(plugin: type[Plugin], monkeypatch: pytest.MonkeyPatch) -> None:
    """Only NodeName has no scene: kube-scheduler does not try pods that name their node."""
    monkeypatch.setattr(plugin, "refusal", lambda self, node: "")
    difference = next(differences(RECORDINGS[0], 1))
    assert not difference.feasible and not difference.reason
    assert f"pod {difference.pod['metadata']['name']}, node {difference.node}: expected not feasible" in report(
        [difference]
    )


@pytest.mark.cluster
async def test_the_filters_agree_with_kube_scheduler(capsys: pytest.CaptureFixture[str]) -> None:
    assert await play.play(seed=1, pods=1, kubernetes="", write=False) == 0, capsys.readouterr().out
