"""Tests that etcd's data are copied and replaced completely or not at all, even if the operation is interrupted."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from conformance.cluster import etcd_data


class Killed(BaseException):
    """Raised instead of sending SIGKILL to this process."""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace whose etcd has the data `now`, next to a snapshot with the data `then`."""
    for folder, data in (("workspace/etcd", "now"), ("then", "then")):
        (tmp_path / folder / "member").mkdir(parents=True)
        (tmp_path / folder / "member" / "db").write_text(data)
    return tmp_path / "workspace"


def etcd_content(workspace: Path) -> str:
    """Return the data that etcd would start with."""
    return (workspace / "etcd/member/db").read_text()


def kill_at(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make renames and removals raise Killed after `step` successful ones."""
    remaining_calls = step

    def interrupt(function):  # type: ignore[no-untyped-def]
        def call(*arguments, **options):  # type: ignore[no-untyped-def]
            nonlocal remaining_calls
            remaining_calls -= 1
            if remaining_calls < 0:
                raise Killed
            return function(*arguments, **options)

        return call

    monkeypatch.setattr(Path, "rename", interrupt(Path.rename))
    monkeypatch.setattr(shutil, "rmtree", interrupt(shutil.rmtree))


def test_staged_data_replace_the_data_of_the_workspace_and_the_snapshot_remains(workspace: Path) -> None:
    etcd_data.stage(workspace.parent / "then", workspace / "etcd")
    assert etcd_content(workspace) == "now"
    etcd_data.replace(workspace / "etcd")
    assert etcd_content(workspace) == "then" and [path.name for path in workspace.iterdir()] == ["etcd"]
    assert (workspace.parent / "then/member/db").read_text() == "then"


@pytest.mark.parametrize("step", range(6))
def test_an_interrupted_replacement_is_completed_or_has_no_effect(
    workspace: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    etcd_data.stage(workspace.parent / "then", workspace / "etcd")
    with monkeypatch.context() as patch:
        kill_at(step, patch)
        with pytest.raises(Killed):
            etcd_data.replace(workspace / "etcd")
    etcd_data.finish_replacement(workspace / "etcd")
    assert etcd_content(workspace) == ("now" if step < 2 else "then")
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
