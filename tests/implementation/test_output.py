"""Tests that the output of processes is read only once, and that its size is limited."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest

from conformance.implementation import output
from conformance.implementation.output import Output, SlowPattern


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "it.log"
    path.write_text("ready, said an earlier process\n")
    return path


def append(log: Path, text: str) -> None:
    with log.open("a") as file:
        file.write(text)


def test_only_new_output_is_read(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process_output = Output(log)
    assert not process_output.has_line("ready")
    append(log, "one\n" * 1000)
    assert not process_output.has_line("ready")
    position = process_output._read_offset
    assert position == log.stat().st_size
    append(log, "now rea")
    assert not process_output.has_line("ready")
    append(log, "dy\nmore")
    assert process_output.has_line("ready")
    assert process_output.has_line("ready")  # and also at the next check
    assert process_output._read_offset >= position


def test_a_large_output_is_read_in_pieces(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "PIECE_BYTES", 10)
    process_output = Output(log)
    append(log, "x" * 35 + "\nshort\nready\n")
    assert process_output.has_line("^ready$")
    assert not process_output.has_line("never")


def test_the_last_lines_are_those_of_this_process(log: Path) -> None:
    process_output = Output(log)
    assert process_output.last_lines(3) == []
    append(log, "one\n\ntwo\n")
    assert process_output.last_lines(3) == ["one", "two"]
    append(log, "three\n" * output.TAIL_BYTES)
    assert process_output.last_lines(2) == ["three", "three"]


def test_a_file_that_grows_too_large_is_cut_and_still_read(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "MAX_BYTES", 1 << 20)
    monkeypatch.setattr(output, "KEPT_BYTES", 1000)
    process_output = Output(log)
    with log.open("ab") as process:  # opened in the same mode as by the process
        process.write(b"words\n" * 200_000)
        process.flush()
        assert not process_output.has_line("ready")
        process_output.limit_size()
        assert log.stat().st_size < 2000
        assert log.read_text().startswith("(more than 1 MiB of output")
        process.write(b"ready\n")
        process.flush()
        assert process_output.has_line("ready")
        assert process_output.last_lines(2) == ["words", "ready"]
        process_output.limit_size()
        assert log.read_text().endswith("words\nready\n")


@pytest.mark.parametrize(
    ("line", "is_reported"),
    [
        ("panic: runtime error: index out of range", True),
        ("F1123 03:00:00.000000 1 server.go:212] cannot listen", True),
        ('{"level":"fatal","msg":"no queue"}', True),
        ("2026-01-01T00:00:00Z\tFATAL\tmain.go:1\tno queue", True),
        ("flag provided but not defined: -x", True),
        ("Error: unknown flag: --x", True),
        ("I1123 03:00:00.000000 1 main.go:1] no panic: all is well", False),
    ],
)
def test_the_line_with_the_reason_is_found_above_a_stack_trace(log: Path, line: str, is_reported: bool) -> None:
    process_output = Output(log)
    append(log, f"panic: an older one\n{line}\n" + "goroutine 1 [running]:\n" * 100)
    assert process_output.reason() == (line if is_reported else "panic: an older one")


def test_a_reason_in_the_last_lines_is_not_repeated(log: Path) -> None:
    process_output = Output(log)
    append(log, "starting\npanic: no\n")
    assert process_output.reason() == ""
    assert process_output.last_lines(2) == ["starting", "panic: no"]


@pytest.mark.parametrize("is_repeated", [True, False])
def test_a_panic_of_a_go_program_names_its_innermost_frame(log: Path, is_repeated: bool) -> None:
    process_output = Output(log)
    repeated_frames = ["example.com/wait.handle({0x1})", "\t/home/me/wait/backoff.go:9 +0x1", "panic({0x2, 0x3})",
                    "\t/usr/lib/go/src/runtime/panic.go:859 +0x13a"]  # fmt: skip
    trace = [
        "panic: runtime error: invalid memory address or nil pointer dereference",
        "[signal SIGSEGV: segmentation violation code=0x1]",
        "",
        "goroutine 1 [running]:",
        *(repeated_frames if is_repeated else []),
        "runtime.sigpanic()",
        "\t/usr/lib/go/src/runtime/signal_unix.go:917 +0x285",
        "example.com/mine/solvers.(*Filter).New(0x0, 0x1)",
        "\t/home/me/mine/solvers/filter.go:56 +0x2a",
        "main.main()",
        "\t/home/me/mine/main.go:3 +0x1",
    ]
    append(log, "started\n" + "\n".join(trace) + "\n")
    assert process_output.reason() == trace[0] + " in solvers.(*Filter).New (filter.go:56)"


def test_output_without_a_newline_is_cut_by_bytes(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "MAX_BYTES", 10_000)
    monkeypatch.setattr(output, "KEPT_BYTES", 1000)
    process_output = Output(log)
    append(log, "x" * 20_000 + "the end")
    process_output.limit_size()
    assert log.read_text().endswith("x" * 993 + "the end")
    assert len(process_output.last_lines(1)[0]) >= 1000


def test_output_of_an_earlier_process_is_not_found_after_a_cut(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "MAX_BYTES", 1000)
    monkeypatch.setattr(output, "KEPT_BYTES", 900)
    append(log, "ready\n" * 140)
    process_output = Output(log)
    append(log, "starting\n" * 20)
    process_output.limit_size()
    assert "ready" in log.read_text()
    assert not process_output.has_line("ready")
    assert process_output.last_lines(30) == ["starting"] * 20


class GrowingFile:
    """A replacement for os.pread that makes the file grow with each read, like a file that is written faster than it is
    read."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, descriptor: int, size: int, offset: int) -> bytes:
        append(self._path, "x" * (1 << 16))
        return PREAD(descriptor, size, offset)


PREAD = os.pread


@pytest.mark.timeout(20)
def test_reading_a_growing_file_ends(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "PIECE_BYTES", 1 << 12)
    process_output = Output(log)
    append(log, "x\n" * (1 << 13))
    monkeypatch.setattr(os, "pread", GrowingFile(log))
    assert not process_output.has_line("ready")


def test_a_long_file_is_searched_in_several_checks(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "PIECE_BYTES", 10)
    monkeypatch.setattr(output, "SEARCH_SECONDS", 0.0)
    process_output = Output(log)
    append(log, "x\n" * 20 + "ready\n")
    checks = 0
    while not process_output.has_line("ready"):
        monkeypatch.setattr(output, "SEARCH_SECONDS", 0.0001)
        checks += 1
    assert checks


def test_a_flood_of_output_takes_little_memory(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "MAX_BYTES", 1 << 16)
    monkeypatch.setattr(output, "KEPT_BYTES", 1 << 14)
    process_output = Output(log)
    with log.open("ab") as file:
        file.truncate(1 << 30)  # sparse: a gigabyte without a newline
    tracemalloc.start()
    try:
        process_output.limit_size()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20
    assert log.stat().st_size < 1 << 15


@pytest.mark.timeout(60)
@pytest.mark.parametrize("pattern", ["^(a|aa)+$", "^(a+)+$", "(a|a)*b"])
def test_the_search_with_an_exponential_regular_expression_ends(
    log: Path, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "MATCH_SECONDS", 0.05)
    process_output = Output(log)
    append(log, "a" * 60 + "!\n")
    try:
        assert not process_output.has_line(pattern)
    except SlowPattern as error:
        assert "ready.log" in str(error)


@pytest.mark.parametrize("kind", ["fifo", "folder"])
def test_only_a_regular_file_is_a_log(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "it.log"
    os.mkfifo(path) if kind == "fifo" else path.mkdir()
    with pytest.raises(OSError):
        Output(path)


def test_a_file_that_replaces_the_log_is_not_read(log: Path) -> None:
    process_output = Output(log)
    append(log, "starting\n")
    log.unlink()
    os.mkfifo(log)
    assert not process_output.has_line("ready")
    assert process_output.last_lines(3) == ["starting"]


def test_a_quoted_key_is_redacted(log: Path) -> None:
    process_output = Output(log)
    key = "MHcCAQEEIIrYSSNQFaA2Hwf1duRSxKtLYX5CB04fSeQ6tF1aY/PuoAoGCCqGSM49"
    append(log, f"my key:\n-----BEGIN EC PRIVATE KEY-----\n{key}\n-----END EC PRIVATE KEY-----\nerror: no\nx\n")
    assert process_output.last_lines(9) == ["my key:", "REDACTED", "error: no", "x"]
