"""Tests that the recipes in CONTRIBUTING.md work: they are applied to a copy of the tree, and their quick checks pass
in that copy.

The first line of a block says what the block contains: a new file, an addition to a file, a replacement in a file, or
commands. Commands that start a cluster are not run. The changes of all recipes accumulate, so a command that several
recipes contain runs only in the last of these recipes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from conformance.data import PROJECT

PAGE = PROJECT / "CONTRIBUTING.md"
IGNORED_FILES = shutil.ignore_patterns(".git", ".venv", "reports", ".hypothesis", ".*_cache")
RECIPES = {
    "Add a requirement",
    "Add a conformance test",
    "Add a mutant",
    "Add a variant",
    "Add a node profile",
    "Add a pod behavior",
    "Add a descriptor",
    "Add an admission manifest",
}


@dataclass(frozen=True)
class Block:
    """A fenced block: the recipe that contains it, its language, its first line, and its other lines."""

    recipe: str
    language: str
    first_line: str
    body: str


def blocks() -> Iterator[Block]:
    """Yield the fenced blocks of the recipes in the order of the page."""
    for section in re.split(r"^### ", PAGE.read_text("utf-8").split("\n## Recipes\n")[1], flags=re.M)[1:]:
        recipe = section.partition("\n")[0]
        for language, text in re.findall(r"^```(\w+)\n(.*?)^```$", section, re.M | re.S):
            first_line, _, body = text.partition("\n")
            yield Block(
                recipe, language, first_line, text if language == "sh" and not first_line.startswith("#") else body
            )


def commands(block: Block) -> list[str]:
    """Return the commands of a block that need no cluster."""
    is_quick = block.language == "sh" and block.first_line != "# starts a cluster"
    return block.body.splitlines() if is_quick else []


def apply(block: Block, tree: Path) -> None:
    """Apply a block to the file in the tree that the block names."""
    verb, _, name = block.first_line.removeprefix("# ").partition(" ")
    match block.language:
        case "sh":
            return
        case "diff":
            substitute(tree / block.first_line.removeprefix("--- "), block.body)
        case _ if verb == "create":
            assert not (tree / name).exists(), f"{name} exists already"
            (tree / name).write_text(block.body, "utf-8")
        case _:
            assert block.first_line.startswith("# append to "), block.first_line
            path = tree / block.first_line.removeprefix("# append to ")
            path.write_text(path.read_text("utf-8") + block.body, "utf-8")


def substitute(path: Path, lines: str) -> None:
    """Replace each run of `-` lines, which must occur exactly once in the file, with the `+` lines that follow it."""
    text = path.read_text("utf-8")
    for old, new in re.findall(r"((?:^-.*\n)+)((?:^\+.*\n)+)", lines, re.M):
        text_before, text_after = (re.sub(r"^[-+]", "", part, flags=re.M).removesuffix("\n") for part in (old, new))
        assert text.count(f"\n{text_before}") == 1, f"{path.name} has {text_before!r} {text.count(text_before)} times"
        text = text.replace(f"\n{text_before}", f"\n{text_after}")
    path.write_text(text, "utf-8")


def run(command: str, tree: Path, recipe: str) -> None:
    """Run a command in the tree, with the tree's packages instead of the installed ones."""
    if command.startswith("make "):
        command = command.replace("make ", "make -s -o .venv/.ready ", 1)
    result = subprocess.run(
        command, shell=True, cwd=tree, env=os.environ | {"PYTHONPATH": str(tree)}, capture_output=True, text=True
    )
    assert result.returncode == 0, f"{recipe}: {command}\n{result.stdout[-3000:]}{result.stderr[-2000:]}"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the project that uses its virtual environment."""
    project_copy = tmp_path / "project"
    shutil.copytree(PROJECT, project_copy, ignore=IGNORED_FILES)
    (project_copy / ".venv").symlink_to(sys.prefix)
    return project_copy


def test_every_recipe_can_be_applied_and_leaves_modules_that_can_be_imported(tree: Path) -> None:
    created = []
    for block in blocks():
        apply(block, tree)
        created += re.findall(r"^# create ((?:conformance|mutants)/\S+)\.py$", block.first_line)
    assert created
    imports = "; ".join(f"import {name.replace('/', '.')}" for name in created)
    run(f".venv/bin/python -c '{imports}' && .venv/bin/grove-conformance validate", tree, "all recipes")
    run(".venv/bin/ruff check . && .venv/bin/ruff format --check .", tree, "all recipes")


@pytest.mark.thorough
@pytest.mark.timeout(900)  # takes 46 s alone, and more than 300 s alongside a run of the suite
def test_every_recipe_works_and_leaves_a_tree_that_passes_the_quick_checks(tree: Path) -> None:
    all_blocks = list(blocks())
    assert {block.recipe for block in all_blocks} == RECIPES
    for number, block in enumerate(all_blocks):
        apply(block, tree)
        later_commands = {command for next_block in all_blocks[number + 1 :] for command in commands(next_block)}
        for command in commands(block):
            if command not in later_commands:
                run(command, tree, block.recipe)
    run(".venv/bin/ruff check . && .venv/bin/ruff format --check .", tree, "all recipes")
