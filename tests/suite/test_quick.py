"""Tests that `run --quick` plays a few short scenes of the profiles on which the other profiles build."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conformance import cli
from conformance.data import PROJECT
from conformance.run import launch, preparation
from conformance.suite.registry import quick, requirement
from conformance.suite.session import shards
from conformance.suite.settings import RunSettings

PROFILES = {"core", "gang", "startup", "scaling", "termination"}


def plan(tmp_path: Path, **settings: object) -> launch.LaunchPlan:
    """Return the plan of a quick run with these settings."""
    base = RunSettings(run="r", directory=str(tmp_path), implementation="reference", only=tuple(quick.TESTS))
    return launch.collect(preparation.with_changes(base, **settings))


@pytest.mark.parametrize("features", [(), ("coherent", "topology")])
def test_every_listed_test_exists_and_judges_its_listed_requirements(tmp_path: Path, features: tuple[str, ...]) -> None:
    selected = plan(tmp_path, features=features).selected
    assert {test: ids[0] for test, ids in selected.items()} == quick.TESTS
    registry = requirement.load()
    assert {registry.get(id).profile for id in quick.TESTS.values()} == PROFILES
    assert all(registry.get(id).level == "MUST" for id in quick.TESTS.values())


def test_the_scenes_take_less_than_a_minute(tmp_path: Path) -> None:
    scenes = set(plan(tmp_path).groups.values())
    assert scenes <= set(shards.costs()), "measured ones only"
    assert sum(shards.prices(scenes, shards.costs()).values()) <= quick.MAX_SECONDS


@pytest.mark.parametrize("role", ["operator", "gang-scheduler"])
def test_there_is_something_for_each_role(tmp_path: Path, role: str) -> None:
    assert plan(tmp_path, roles=(role,)).selected


class Planned(Exception):
    """Raised at the point where the run would start."""


def test_the_option_selects_these_tests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def collect(settings: RunSettings) -> launch.LaunchPlan:
        assert quick.is_quick(settings.only)
        raise Planned

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(launch, "collect", collect)
    monkeypatch.setattr(sys, "argv", ["grove-conformance", "run", "--quick"])
    with pytest.raises(Planned):
        cli.app(standalone_mode=False)


@pytest.mark.parametrize("page", ["README.md", "docs/running.md"])
def test_the_pages_state_that_a_quick_run_has_no_verdict(page: str) -> None:
    paragraphs = [" ".join(text.split()) for text in (PROJECT / page).read_text("utf-8").split("\n\n")]
    assert any("`--quick`" in text and "says nothing of conformance" in text for text in paragraphs)
