"""Helpers for tests of the wheel: a separate environment for it, and commands that see nothing of this checkout."""

from __future__ import annotations

import os
import subprocess
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def needed(name: str, extra: str = "") -> set[str]:
    """Return the distributions of this environment on which the distribution `name` depends, directly or indirectly."""
    distributions, todo = set(), {(name, extra)}
    while todo:
        of, extra = todo.pop()
        requirements = [Requirement(text) for text in metadata.requires(of) or ()]
        requirements = [
            requirement
            for requirement in requirements
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra})
        ]
        new = {
            (canonicalize_name(requirement.name), extra)
            for requirement in requirements
            for extra in ("", *requirement.extras)
        } - distributions
        distributions |= new
        todo |= new
    return {name for name, _ in distributions}


def link(distributions: set[str], packages: Path) -> None:
    """Link the files of distributions of this environment into `packages`, the site-packages folder of another
    environment."""
    for name in distributions:
        distribution = metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")}:
            (packages / top).symlink_to(Path(str(distribution.locate_file(top))))


def packages_of_theirs(folder: Path, *names: str) -> None:
    """Create packages that terminate every process that imports them."""
    for name in names:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text('raise SystemExit("a package of theirs was imported: " + __file__)')


def call(command: list[str | Path], folder: Path, codes: tuple[int, ...] = (0,), **variables: str) -> str:
    """Run a command and return its output. The command sees nothing of this checkout except what its command line
    names."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        command, cwd=folder, env=environment | variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode in codes, done.stdout
    return done.stdout
