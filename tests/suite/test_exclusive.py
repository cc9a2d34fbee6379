"""Tests that each scene declares whether its code can affect other tests on the cluster."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from pathlib import Path

from reach import names

import conformance.tests
from conformance.suite.scenes.scene import Exclusive, Scene

CONTROL_METHODS = {
    *("kill", "pause", "stop", "restart"),
    *("elect", "start_second_operator", "hand_over", "downgrade", "upgrade", "without_hooks"),
}
"""The methods of `env.roles` that affect the judgment of other scenes."""


@functools.cache
def scenes() -> list[type[Scene]]:
    """Return every scene of the conformance tests."""
    (root,) = map(Path, conformance.tests.__path__)
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        importlib.import_module(".".join(["conformance.tests", *(part for part in parts if part != "__init__")]))
    return sorted(_subclasses(Scene), key=lambda scene: (scene.__module__, scene.__name__))


def _subclasses(parent_class: type[Scene]) -> Iterator[type[Scene]]:
    for subclass in parent_class.__subclasses__():
        yield from _subclasses(subclass)
        if subclass.__module__.startswith("conformance.tests."):
            yield subclass


def changes_in_code(scene: type[Scene]) -> Exclusive | None:
    """Return what the code of a scene may change for other scenes; None if it changes nothing."""
    used = [set(function_names) for function_names in names(scene)]
    if any("roles" in function_names and function_names & CONTROL_METHODS for function_names in used):
        return Exclusive.ROLES
    return Exclusive.NODES if any("fail_node" in function_names for function_names in used) else None


def test_a_scene_declares_its_changes_for_other_scenes() -> None:
    all_scenes = [scene for scene in scenes() if scene.exclusive is not Exclusive.CLASSES]  # no call shows those
    assert {scene: scene.exclusive for scene in all_scenes} == {scene: changes_in_code(scene) for scene in all_scenes}


def test_most_scenes_change_nothing_for_others() -> None:
    all_scenes = scenes()
    assert 0 < sum(scene.exclusive is not None for scene in all_scenes) < len(all_scenes) / 5
