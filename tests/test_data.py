"""Tests that the suite uses its own data folders, both in a checkout and in an installed wheel."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance import data
from conformance.errors import UsageError


def test_a_wheel_uses_its_own_data_and_not_the_folder_of_another_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fixtures").mkdir()
    packed_folder = tmp_path / "conformance" / "_data"
    monkeypatch.setattr(data, "PROJECT", tmp_path)
    monkeypatch.setattr(data, "_WHEEL_DATA", packed_folder)
    assert data.folder("fixtures") == tmp_path / "fixtures"
    assert data.page("a.md") == tmp_path / "docs" / "a.md"

    (packed_folder / "fixtures").mkdir(parents=True)
    assert data.folder("fixtures") == packed_folder / "fixtures"
    with pytest.raises(UsageError, match="belongs to a checkout"):
        data.page("a.md")
