"""Helpers for tests of the wheel: a separate environment, and commands that cannot access this checkout."""

from __future__ import annotations

import os
import subprocess
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def required_distributions(name: str, extra: str = "") -> set[str]:
    """Return the names of the distributions on which the distribution `name` depends, directly or indirectly."""
    distributions, pending = set(), {(name, extra)}
    while pending:
        distribution_name, extra = pending.pop()
        requirements = [Requirement(text) for text in metadata.requires(distribution_name) or ()]
        requirements = [
            requirement
            for requirement in requirements
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra})
        ]
        new_distributions = {
            (canonicalize_name(requirement.name), extra)
            for requirement in requirements
            for extra in ("", *requirement.extras)
        } - distributions
        distributions |= new_distributions
        pending |= new_distributions
    return {name for name, _ in distributions}


def link_files(distributions: set[str], packages: Path) -> None:
    """Link the files of this environment's distributions into `packages`, the site-packages folder of another
    environment."""
    for name in distributions:
        distribution = metadata.distribution(name)
        for top_level_name in {
            file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")
        }:
            (packages / top_level_name).symlink_to(Path(str(distribution.locate_file(top_level_name))))


def create_foreign_packages(folder: Path, *names: str) -> None:
    """Create packages that terminate every process that imports them."""
    for name in names:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text('raise SystemExit("a package of theirs was imported: " + __file__)')


def run_command(command: list[str | Path], folder: Path, codes: tuple[int, ...] = (0,), **variables: str) -> str:
    """Run a command and return its output. The command can access only the files of this checkout that its command line
    names."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    result = subprocess.run(
        command, cwd=folder, env=environment | variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert result.returncode in codes, result.stdout
    return result.stdout
