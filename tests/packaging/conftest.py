"""A fixture that installs the wheel."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from conformance.data import PROJECT
from tests.packaging.installed import link_files, required_distributions, run_command


@pytest.fixture(scope="session", params=["linked", pytest.param("installed", marks=pytest.mark.thorough)])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program `grove-conformance` in a virtual environment with the wheel, its declared dependencies, and PyPI's
    `fixtures`. Dependencies are linked by default, which is ten times as fast as installing them. The setup of
    every fresh checkout shows that pip can install them."""
    folder = tmp_path_factory.mktemp("installed")
    run_command([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], PROJECT)
    (wheel,) = folder.glob("*.whl")
    run_command([sys.executable, "-m", "venv", "--without-pip", "environment"], folder)
    programs = folder / "environment" / "bin"
    pip = [sys.executable, "-m", "pip", "--python", programs / "python", "--disable-pip-version-check"]
    pip += ["install", "-q", "--no-compile"]
    if request.param == "linked":
        run_command([*pip, "--no-deps", wheel, "fixtures==4.3.2"], folder)
        (packages,) = folder.glob("environment/lib/python*/site-packages")
        link_files(required_distributions("grove-conformance"), packages)
    else:
        # The lock file also names the development tools. As constraints, its versions apply only to what the wheel
        # requires.
        versions = folder / "constraints.txt"
        versions.write_text(re.sub(r" \\\n +--hash=\S+", "", (PROJECT / "requirements.lock").read_text()))
        run_command([*pip, "-c", versions, wheel, "fixtures==4.3.2"], folder)
    return programs / "grove-conformance"
