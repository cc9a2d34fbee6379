"""Tests that a full or read-only disk causes a one-line error, and that no file is written partly."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from conformance import disk
from conformance.errors import UsageError


def test_a_folder_that_cannot_be_created_or_written_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/nowhere")):
        with pytest.raises(UsageError, match=r"^here: cannot be written: .* — do this$"):
            disk.require_space(folder, 0, location="here", hint="do this")


def test_only_errors_that_the_user_can_fix_are_usage_errors(tmp_path: Path) -> None:
    usage_error = pytest.raises(
        UsageError, match=r"^here: cannot be written: No space left on device \(/x\) — do this$"
    )
    with usage_error, disk.usage_errors("here", "do this"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/x")
    with pytest.raises(ConnectionResetError), disk.usage_errors("here", "do this"):
        raise ConnectionResetError(errno.ECONNRESET, "reset")


def test_a_file_is_written_completely_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    disk.write(path, "old")
    assert path.read_text() == "old" and path.stat().st_mode & 0o777 == 0o600

    def raise_disk_full(self: Path, text: str, **options: str) -> int:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(Path, "write_text", raise_disk_full)
    with pytest.raises(OSError, match="full"):
        disk.write(path, "new")
    assert path.read_text() == "old" and [file.name for file in tmp_path.iterdir()] == ["file"]


def test_the_size_of_a_folder_is_the_size_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    size_before = disk.used_bytes(tmp_path)
    (tmp_path / "a" / "b" / "c").write_bytes(bytes(1000))
    (tmp_path / "d").write_bytes(bytes(10))
    assert disk.used_bytes(tmp_path) - size_before == 1010
    assert disk.used_bytes(tmp_path / "none") == 0
