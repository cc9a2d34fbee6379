"""Tests that a run needs neither a home, nor many file descriptors, nor standard input."""

from __future__ import annotations

import os
import resource
import subprocess
from pathlib import Path

import pytest
from faked import LONGEST, Faked

from conformance.run.preparation import suite_digest
from conformance.suite.registry import requirement


def _bare() -> None:
    """Limit this process to 64 file descriptors, and close standard input."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    os.close(0)


def test_a_run_works_without_a_home_many_descriptors_or_standard_input(faked: Faked) -> None:
    faked.write(
        """
        @requirements("AA-001")
        def test_one(case):
            case.expect("AA-001", "x", 1, 1)
        """,
        ids=1,
    )
    environment = {name: value for name, value in faked.environment().items() if name != "HOME"}
    result = subprocess.run(
        faked.command(workers=1),
        env=environment,
        preexec_fn=_bare,
        cwd=faked.folder,
        capture_output=True,
        timeout=LONGEST,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_an_edited_level_shows_in_the_digest_of_the_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    edited, read, before = requirement.FOLDER / "core.yaml", Path.read_bytes, suite_digest()

    def changed(path: Path) -> bytes:
        content = read(path)
        return content.replace(b"level: MUST", b"level: MAY", 1) if path.resolve() == edited.resolve() else content

    monkeypatch.setattr(Path, "read_bytes", changed)
    assert suite_digest() != before
