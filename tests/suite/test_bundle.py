"""Tests of the bundle of a failed test: it has everything that explains the failure, and an index of its files."""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from conformance.evidence import bundle
from conformance.evidence.values import one_line
from conformance.suite.outcomes.ledger import Check
from tests import irregular
from tests.history.story import Story

TEST = "gang/test_services_torn_apart.py::test_one"
COMMAND = "grove-conformance run --implementation mine --id SCHED-007"


@pytest.fixture
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The bundle of a test in which a pod was bound that had to stay pending."""
    story = Story()
    story.owned("podcliquesets", "s", None, replicas=1)
    story.gang("s-0", {"s-0-a": (1, ["a1"]), "s-0-b": (1, ["b1"])})
    for name in ("a1", "b1"):
        story.pod(name, gang="s-0", clique=f"s-0-{name[0]}")
    bound = story.pod("a1", gang="s-0", clique="s-0-a", node="n1")
    event = {"type": "Warning", "reason": "FailedScheduling", "note": "0/1 nodes\nare available"}
    event |= {"regarding": {"kind": "Pod", "name": "b1"}, "reportingController": "kube-scheduler"}
    story.record("events", "b1.1", event)
    log = tmp_path / "gang-scheduler.log"
    log.write_text("long before\nduring the test\n")
    checks = [
        Check(test=TEST, id="SCHED-005", what="a later gang", outcome="passed", at=1.0),
        Check(
            test=TEST,
            id="SCHED-007",
            what="bound [pods]",
            outcome="failed",
            expected={"s-0-a": 0},
            seen={"s-0-a": 1},
            at=bound.at,
        ),
        Check(test=TEST, id="GANG-006", what="no instant", outcome="failed", expected="x", seen="y | z"),
    ]
    bundle.write(
        tmp_path / "one",
        test=TEST,
        checks=checks,
        history=story.history,
        acts=[("create", {"kind": "PodCliqueSet", "metadata": {"name": "s"}})],
        logs={
            "gang-scheduler": (log, len("long before\n")),
            "cluster/kube-scheduler": (log, 0),
            "operator": (tmp_path / "absent.log", 0),
        },
        reproduce=["# Runs this test again:", COMMAND],
        include_large_files=getattr(request, "param", True),
    )
    return tmp_path / "one"


def test_the_index_names_every_file_and_the_failures(folder: Path) -> None:
    index = (folder / bundle.INDEX).read_text()
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} - {bundle.INDEX}
    rows = dict(re.findall(r"^\| \[.*\]\((.*)\) \| (.*) \|$", index, re.MULTILINE))
    assert set(rows) == files and all(rows.values())
    assert next(iter(rows)) == bundle.PICTURE
    assert index.startswith(f"# {TEST}\n")
    assert r'SCHED-007 failed: bound \[pods\]: expected {"s-0-a":0}, seen {"s-0-a":1}' in index
    assert r"seen y \| z" in index and "SCHED-005" not in index
    assert f"```sh\n# Runs this test again:\n{COMMAND}\n```" in index


def test_there_are_objects_picture_logs_of_the_window_and_the_command(folder: Path) -> None:
    objects = list(yaml.safe_load_all((folder / "objects.yaml").read_text()))
    assert {document["metadata"]["name"] for document in objects} == {"s", "s-0", "a1", "b1"}
    words = ["".join(t.itertext()) for t in ElementTree.parse(folder / bundle.PICTURE).iter() if "text" in t.tag]
    assert "TORN: b has 0 of 1 bound" in words and TEST in words
    assert any(word.startswith("SCHED-007 failed: bound [pods]") for word in words)
    assert (folder / "logs" / "gang-scheduler.log").read_text() == "during the test\n"
    assert (folder / "logs" / "cluster" / "kube-scheduler.log").is_file()
    assert not (folder / "logs" / "operator.log").exists()
    assert (folder / "reproduce.txt").read_text() == f"# Runs this test again:\n{COMMAND}\n"
    assert len(gzip.decompress((folder / bundle.HISTORY).read_bytes()).splitlines()) >= 7


def test_each_event_is_one_line(folder: Path) -> None:
    [line] = (folder / "events.txt").read_text().splitlines()
    assert line.endswith("Warning FailedScheduling Pod/b1: 0/1 nodes are available (kube-scheduler)")


@pytest.mark.parametrize("folder", [False], indirect=True)
def test_only_small_files_are_kept_beyond_the_limit(folder: Path) -> None:
    """The index says that large files were left out."""
    names = {path.relative_to(folder).parts[0] for path in folder.rglob("*")}
    assert names >= {bundle.PICTURE, "timeline.txt", "checks.yaml", "reproduce.txt", "manifests", "events.txt"}
    assert not names & {bundle.HISTORY, "objects.yaml", "logs"}
    assert bundle.LEFT_OUT_NOTE in (folder / bundle.INDEX).read_text()


def test_many_objects_are_compressed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "MAX_TEXT_BYTES", 100)
    story = Story()
    story.pod("a1", gang="s-0", clique="s-0-a")
    bundle.write(tmp_path / "b", test=TEST, checks=[], history=story.history, acts=[], logs={}, reproduce=[])
    objects = yaml.safe_load(gzip.decompress((tmp_path / "b" / "objects.yaml.gz").read_bytes()))
    assert objects["metadata"]["name"] == "a1" and not (tmp_path / "b" / "objects.yaml").exists()
    index = (tmp_path / "b" / bundle.INDEX).read_text()
    assert "| [objects.yaml.gz](objects.yaml.gz) | all objects" in index and bundle.LEFT_OUT_NOTE not in index


def test_a_long_log_is_copied_in_full(tmp_path: Path) -> None:
    log, copy = tmp_path / "it.log", tmp_path / "logs" / "it.log"
    lines = [f"line {number}\n" for number in range(300_000)]
    log.write_text("before\n" + "".join(lines))
    bundle.copy_log(log, len("before\n"), copy)
    assert copy.stat().st_size == bundle.MAX_LOG_BYTES and copy.read_text().endswith(lines[-1])
    assert gzip.decompress(copy.with_name("it.log.gz").read_bytes()).decode() == "".join(lines)
    bundle.copy_log(log, log.stat().st_size - 20, short_log := tmp_path / "short.log")
    assert short_log.read_text() == log.read_text()[-20:] and not short_log.with_name("short.log.gz").exists()


def test_only_the_end_of_a_huge_log_is_copied(tmp_path: Path) -> None:
    log, copy = tmp_path / "it.log", tmp_path / "copy.log"
    log.write_text("x" * 1000 + "the end")
    bundle.copy_log(log, 10, copy, 100)
    assert copy.read_text() == "x" * 93 + "the end"


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", irregular.KINDS)
def test_an_irregular_file_in_place_of_a_log_is_not_read(tmp_path: Path, kind: str) -> None:
    log, copy = tmp_path / "it.log", tmp_path / "copy.log"
    irregular.create(kind, log)
    bundle.copy_log(log, 10, copy)
    assert copy.read_text().startswith("(it.log cannot be read any more: ")


def test_a_failure_that_quotes_a_log_is_cut_before_its_end() -> None:
    text = "mine: the operator exited with code 2; its log ends with: " + "usage | " * 100 + "the reason"
    shortened = one_line(text, 120)
    assert len(shortened) == 120 and shortened.startswith("mine: the operator exited with code 2; its log ends with: …")
    assert shortened.endswith("usage | the reason")
    assert one_line("x" * 200, 120) == "x" * 119 + "…"


@pytest.mark.timeout(20)
def test_a_pipe_in_the_place_of_a_file_of_a_bundle_is_an_error(tmp_path: Path) -> None:
    for write in (
        lambda path: bundle._save(path, "text"),
        lambda path: bundle._dump(path, {}),
        lambda path: bundle.copy_log(Path(__file__), 0, path),
        lambda path: Story().history.save(path),
    ):
        os.mkfifo(path := tmp_path / "it")
        with pytest.raises(OSError):
            write(path)
        path.unlink()
