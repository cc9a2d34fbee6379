"""Tests of the attacks as data; `make attacks` runs the attacks."""

from __future__ import annotations

from collections import Counter

from conformance.suite.registry import requirement
from mutants.registry import MUTANTS
from tests.attacks import (  # noqa: F401 - modes, and modules that only `make attacks` and `make signals` run
    environments,
    files,
    hostile,
    machines,
    overload,
    signals,
    whole_runs,
)
from tests.attacks.attack import load_attacks
from tests.attacks.helpers import MODES


def test_each_attack_can_be_run() -> None:
    requirements = requirement.load().requirements
    for attack in load_attacks():
        assert attack.mode in MODES, attack.name
        assert set(attack.outcomes) <= set(requirements), attack.name
        if mutant := attack.set.get("mutant"):
            assert mutant in MUTANTS.all(), attack.name


def test_names_are_unique_and_each_mode_is_used() -> None:
    names = Counter(attack.name for attack in load_attacks())
    assert [name for name, count in names.items() if count > 1] == []
    assert MODES.keys() - {attack.mode for attack in load_attacks()} == set()
