"""Tests of the suggestions for names and files that do not exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.suggestions import explain_missing, find_nearest, suggestion

IDS = ["CORE-001", "CORE-010", "CORE-031", "GANG-001"]
FILES = ["gang/test_orders.py", "gang_maps/test_order.py", "gang_maps/test_x.py"]


@pytest.mark.parametrize(
    ("unknown_name", "names", "expected_name"),
    [
        ("CORE-01", IDS, "CORE-001"),
        ("CORE-1", IDS, "CORE-001"),
        ("core-10", IDS, "CORE-010"),
        ("CORE-03", IDS, "CORE-031"),
        ("GAN-001", IDS, "GANG-001"),
        ("must", ["COMPAT", "MUST"], "MUST"),
        ("coh", ["core", "coherent"], "coherent"),
        ("gang/test_order.py", FILES, "gang/test_orders.py"),
        ("zz", IDS, ""),
        ("", IDS, ""),
    ],
)
def test_a_common_prefix_takes_precedence_over_edit_distance(
    unknown_name: str, names: list[str], expected_name: str
) -> None:
    assert find_nearest(unknown_name, names) == expected_name
    assert suggestion(unknown_name, names) == (
        f'did you mean "{expected_name}"?' if expected_name else f"known: {', '.join(sorted(names))}"
    )


def test_a_missing_folder_is_named_and_a_similar_file_is_suggested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ci").mkdir()
    (tmp_path / "ci" / "mine.yaml").touch()
    monkeypatch.chdir(tmp_path)
    assert explain_missing(Path("ci/mine.yml")) == ("no such file", 'did you mean "ci/mine.yaml"?')
    assert explain_missing(Path("ci/other.json")) == ("no such file", "")
    assert explain_missing(Path("c/mine.yaml")) == ("no such folder: c", 'did you mean "ci"?')
    assert explain_missing(tmp_path / "no" / "such" / "mine.yaml") == (f"no such folder: {tmp_path / 'no'}", "")
    assert explain_missing(Path("ci/mine.yaml/x")) == ("ci/mine.yaml is no folder", "")
