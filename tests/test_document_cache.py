"""Tests of the cache of data files: a file is parsed only once, entries are never out of date, and damaged entries are
replaced."""

from __future__ import annotations

import json
import os
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conformance import data, document_cache, documents
from conformance.documents import Document
from conformance.errors import UsageError

DOCUMENT_TEXT = "name: ä\nitems:\n- size: 1\n- size: 2.5\n"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(data, "PROJECT", tmp_path / "project")
    (tmp_path / "project").mkdir()
    write_files(tmp_path / "project")
    return tmp_path / "project"


def write_files(folder: Path, text: str = DOCUMENT_TEXT, name: str = "string") -> None:
    (folder / "data.yaml").write_text(text, encoding="utf-8")
    schema = {"type": "object", "properties": {"name": {"type": name}}}
    (folder / "schema.json").write_text(json.dumps(schema), encoding="utf-8")


def read_document(folder: Path) -> Document:
    return documents.read(folder / "data.yaml", folder / "schema.json")


def cache_entries() -> list[Path]:
    folder = data.cache() / "documents"
    return sorted(folder.iterdir()) if folder.is_dir() else []


@pytest.fixture
def parsed_paths(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that have been parsed, in order."""
    paths: list[Path] = []
    parse = documents._parse

    def parse_and_record(path: Path, text: str) -> Document:
        paths.append(path)
        return parse(path, text)

    monkeypatch.setattr(documents, "_parse", parse_and_record)
    return paths


def test_a_file_is_parsed_once(project: Path, parsed_paths: list[Path]) -> None:
    first_document, second_document = read_document(project), read_document(project)
    assert first_document == second_document and second_document.value["items"] == [{"size": 1}, {"size": 2.5}]
    assert second_document.location("items", 1, "size").endswith("data.yaml:4: items[1].size")
    assert len(parsed_paths) == 1
    [entry] = cache_entries()
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600


def test_a_changed_file_is_read_again(project: Path) -> None:
    read_document(project)
    write_files(project, "name: b\n")
    assert read_document(project).value == {"name": "b"}


def test_a_changed_schema_is_applied(project: Path) -> None:
    read_document(project)
    write_files(project, name="integer")
    with pytest.raises(UsageError, match="give a whole number"):
        read_document(project)


def test_a_file_is_read_again_after_a_change_to_the_code(
    project: Path, parsed_paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    read_document(project)
    monkeypatch.setattr(document_cache, "_code", lambda: ("other",))
    read_document(project)
    assert len(parsed_paths) == 2


def test_an_invalid_file_is_not_stored(project: Path) -> None:
    write_files(project, name="integer")
    for _ in range(2):
        with pytest.raises(UsageError, match="give a whole number"):
            read_document(project)
    assert cache_entries() == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda entry: entry.write_bytes(b""),
        lambda entry: entry.write_bytes(entry.read_bytes()[:-1]),
        lambda entry: entry.write_bytes(entry.read_bytes().replace(b"2.5", b"2.6")),
        lambda entry: entry.write_bytes(b"\xff" + entry.read_bytes()),
        lambda entry: entry.write_text(f"{document_cache._digest('[]')}\n[]"),
        lambda entry: entry.chmod(0o660),
    ],
    ids=["empty", "truncated", "changed", "no text", "another form", "writable by others"],
)
def test_a_damaged_entry_is_replaced(project: Path, parsed_paths: list[Path], damage) -> None:
    first_document = read_document(project)
    [entry] = cache_entries()
    original_content = entry.read_bytes()
    damage(entry)
    assert read_document(project) == first_document and len(parsed_paths) == 2
    assert entry.read_bytes() == original_content and stat.S_IMODE(entry.stat().st_mode) == 0o600


def test_concurrent_readers_share_one_entry(project: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: read_document(project), range(32)))
    assert all(result == results[0] for result in results) and len(cache_entries()) == 1


def test_a_cache_that_cannot_be_written_is_not_an_error(project: Path) -> None:
    data.cache().parent.write_text("a file")
    assert read_document(project) == read_document(project)


def test_a_user_without_a_home_has_no_cache(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_runtime_error() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", raise_runtime_error)
    assert read_document(project).value["name"] == "ä"


def test_values_that_json_cannot_represent_are_not_stored(project: Path) -> None:
    document_cache.save("key", {"bytes": b"hello"}, {})
    assert cache_entries() == []


def test_files_of_users_are_not_stored(project: Path, tmp_path: Path) -> None:
    write_files(tmp_path)
    read_document(tmp_path)
    assert cache_entries() == []


def test_old_entries_are_removed(project: Path) -> None:
    read_document(project)
    [old_entry] = cache_entries()
    os.utime(old_entry, (0, time.time() - document_cache.LIFETIME_SECONDS - 60))
    write_files(project, "name: b\n")
    read_document(project)
    assert len(cache_entries()) == 1 and not old_entry.exists()
