"""Tests that the data of etcd are copied and replaced completely or not at all, whenever this is interrupted."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from conformance.cluster import etcd_data


class Killed(BaseException):
    """Raised in place of a SIGKILL of this process."""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace whose etcd has the data `now`, next to a snapshot with the data `then`."""
    for place, content in (("workspace/etcd", "now"), ("then", "then")):
        (tmp_path / place / "member").mkdir(parents=True)
        (tmp_path / place / "member" / "db").write_text(content)
    return tmp_path / "workspace"


def content(workspace: Path) -> str:
    """Return the data that etcd would start with."""
    return (workspace / "etcd/member/db").read_text()


def kill_at(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make renames and removals raise Killed once `step` of them have succeeded."""
    remaining = step

    def killing(function):  # type: ignore[no-untyped-def]
        def call(*arguments, **options):  # type: ignore[no-untyped-def]
            nonlocal remaining
            remaining -= 1
            if remaining < 0:
                raise Killed
            return function(*arguments, **options)

        return call

    monkeypatch.setattr(Path, "rename", killing(Path.rename))
    monkeypatch.setattr(shutil, "rmtree", killing(shutil.rmtree))


def test_staged_data_replace_those_of_the_workspace_and_the_snapshot_stays(workspace: Path) -> None:
    etcd_data.stage(workspace.parent / "then", workspace / "etcd")
    assert content(workspace) == "now"
    etcd_data.replace(workspace / "etcd")
    assert content(workspace) == "then" and [path.name for path in workspace.iterdir()] == ["etcd"]
    assert (workspace.parent / "then/member/db").read_text() == "then"


@pytest.mark.parametrize("step", range(6))
def test_a_replacement_that_was_killed_is_finished_or_never_happened(
    workspace: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    etcd_data.stage(workspace.parent / "then", workspace / "etcd")
    with monkeypatch.context() as patch:
        kill_at(step, patch)
        with pytest.raises(Killed):
            etcd_data.replace(workspace / "etcd")
    etcd_data.finish(workspace / "etcd")
    assert content(workspace) == ("now" if step < 2 else "then")
    assert [path.name for path in workspace.iterdir()] == ["etcd"]


def test_a_copy_that_fails_leaves_nothing(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "rename", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        etcd_data.stage(workspace / "etcd", workspace.parent / "copy")
    assert sorted(path.name for path in workspace.parent.iterdir()) == ["then", "workspace"]


def test_preallocated_etcd_files_are_not_copied(workspace: Path) -> None:
    (workspace / "etcd/member/0.tmp").write_text("zeros")
    etcd_data.stage(workspace / "etcd", workspace.parent / "copy")
    etcd_data.replace(workspace.parent / "copy")
    assert [path.name for path in (workspace.parent / "copy/member").iterdir()] == ["db"]
    assert etcd_data.size(workspace.parent / "copy") == len("now")
