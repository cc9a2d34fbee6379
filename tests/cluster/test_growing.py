"""Tests that a growing file is read in time proportional to its length, however long its lines are."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from conformance.cluster.growing import MAX_LINE_BYTES, PIECE_BYTES, GrowingFile
from conformance.errors import HarnessError


def test_lines_are_complete_wherever_pieces_end(tmp_path: Path) -> None:
    lines = [b"x" * length + b"\n" for length in (1, PIECE_BYTES - 3, 1, 3 * PIECE_BYTES, PIECE_BYTES, 7)]
    path = tmp_path / "log"
    path.write_bytes(b"".join(lines) + b"incomplete")
    file = GrowingFile(path)
    assert [line for line, _ in file.lines(0)] == lines
    end_offsets = [end for _, end in file.lines(0)]
    assert [line for line, _ in file.lines(end_offsets[2])] == lines[3:]
    assert [line for line, _ in file.lines(end_offsets[2] + 1)] == lines[4:]
    assert end_offsets[-1] == path.stat().st_size - len(b"incomplete")


def test_a_long_line_takes_time_proportional_to_its_length(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * (MAX_LINE_BYTES - 2) + b"\n")
    file = GrowingFile(path)
    start = time.process_time()
    [(line, _)] = file.lines(0)
    assert len(line) == MAX_LINE_BYTES - 1 and time.process_time() - start < 1


def test_a_line_without_an_end_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * (MAX_LINE_BYTES + PIECE_BYTES))
    with pytest.raises(HarnessError, match="has a line of more than 32 MiB"):
        list(GrowingFile(path).lines(0))
