"""Tests that the name of a public class has only one meaning within a root package."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("conformance", "reference_impl", "mutants", "kube")
SCENES = ROOT / "conformance" / "tests"
"""Scenes may share a name, because the id of a test contains both the module and the name of the scene."""
SAME_MEANING = {
    "conformance.ExpectedFailure": "The ledger repeats the entry of the descriptor.",
    "reference_impl.Condition": "A condition of the API: of Grove's objects, and of a pod for the scheduler.",
    "reference_impl.ContainerStatus": "The API type: the fields that the operator reads, and those of the scheduler.",
    "reference_impl.NodeAffinity": "The API type, and the plugin with the name that kube-scheduler gives it in events.",
    "reference_impl.Pod": "The API type: the fields that the operator reads, and those of the scheduler.",
}


def find_duplicates(root: Path) -> dict[str, list[str]]:
    """Return the public classes that are defined in several modules of one root package, with the paths of these
    modules."""
    modules = defaultdict(list)
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            if not path.is_relative_to(SCENES):
                for node in ast.parse(path.read_text(encoding="utf-8")).body:
                    if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                        modules[f"{package}.{node.name}"].append(str(path.relative_to(root)))
    return {name: paths for name, paths in modules.items() if len(paths) > 1}


def test_the_name_of_a_public_class_has_one_meaning() -> None:
    duplicates = find_duplicates(ROOT)
    ambiguous_names = {name: modules for name, modules in duplicates.items() if name not in SAME_MEANING}
    assert not ambiguous_names
    assert set(SAME_MEANING) <= set(duplicates), "listed in SAME_MEANING, and defined once or not at all"
