"""Tests that each mistake in a data file is reported in one line with file, line and field."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance import documents
from conformance.documents import suggestion
from conformance.errors import UsageError

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z]+$", "description": "lower-case letters"},
        "count": {"type": "integer"},
        "colour": {"enum": ["red", "green"]},
        "day": {"type": "string", "format": "date"},
        "size": {"type": "object", "required": ["height"], "properties": {"height": True}},
        "items": {
            "type": "array",
            "items": {"type": "object", "additionalProperties": False, "properties": {"size": {"type": "number"}}},
        },
    },
}


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))

    def read(text: str) -> documents.Document:
        (tmp_path / "data.yaml").write_text(text)
        return documents.read(tmp_path / "data.yaml", tmp_path / "schema.json")

    return read


@pytest.mark.parametrize(
    ("text", "expected_message"),
    [
        ("name: a\nconut: 1\n", 'data.yaml:2: conut: unknown field — did you mean "count"?'),
        ("name: a\ncount: many\n", "data.yaml:2: count: holds a text — give a whole number"),
        ("count: 1\n", 'data.yaml:1: the field "name" is missing — add it (lower-case letters)'),
        ("name: a\ncolour: gren\n", 'data.yaml:2: colour: "gren" is not known here — did you mean "green"?'),
        ("name: A1\n", 'data.yaml:1: name: "A1" has the wrong form — lower-case letters'),
        (
            "name: a\nitems:\n- size: 1\n- sise: 2\n",
            'data.yaml:4: items[1].sise: unknown field — did you mean "size"?',
        ),
        ("name: a\ncount: 1\ncount: 2\n", "data.yaml:3: count: duplicate key — keep one of them"),
        ("- a\n", "data.yaml:1: holds a list — its root must be a mapping"),
        ("", "data.yaml:1: holds nothing — its root must be a mapping"),
        ("name: a\nsize: {}\n", 'data.yaml:2: size: the field "height" is missing — add it'),
        ("name: a\n1: 2\n", "data.yaml:2: the key 1 is not text — put it in quotes"),
        ("name: a\nday: 2026-13-45x\n", "data.yaml:2: day: '2026-13-45x' is not a 'date' — fix the value"),
    ],
)
def test_a_mistake_is_reported_in_one_line_with_its_location(read, text: str, expected_message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(text)
    assert str(caught.value) == expected_message


def test_invalid_yaml_is_reported_with_its_line(read) -> None:
    with pytest.raises(UsageError, match=r"^data\.yaml:3: is not YAML: .* — fix the syntax there$"):
        read("name: a\ncount: [1\n")


def test_a_value_that_contains_itself_is_refused(read) -> None:
    with pytest.raises(UsageError, match="holds itself"):
        read("name: a\nitems: &loop\n- *loop\n")


def test_two_documents_in_a_file_are_refused(read) -> None:
    with pytest.raises(UsageError, match="is not YAML"):
        read("name: a\n---\nname: b\n")


def test_the_first_of_several_mistakes_is_reported(read) -> None:
    with pytest.raises(UsageError, match=r"^data\.yaml:2: "):
        read("name: a\nfoo: 1\nitems:\n- bar: 1\n")


def test_some_of_many_known_names_are_listed() -> None:
    names = [f"thing-{number:03d}" for number in range(500)]
    hint = suggestion("xyz", names)
    assert hint.startswith("known are 500, among them thing-000, ") and len(hint) < 100
    assert suggestion("xyz", names[:3]) == "known: thing-000, thing-001, thing-002"
    assert suggestion("thing-4O0", names).startswith('did you mean "thing-4')


def test_a_missing_file_and_a_binary_file_are_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.yaml: no such file"):
        documents.parse(tmp_path / "none.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not UTF-8"):
        documents.parse(tmp_path / "binary.yaml")


def test_dates_are_texts_and_locations_are_kept(read) -> None:
    document = read("name: a\nday: 2026-01-31\nitems:\n- size: 1\n- size: 2\n")
    assert document.value["day"] == "2026-01-31"
    assert document.location("items", 1, "size") == "data.yaml:5: items[1].size"
    assert document.location("items", 1, "colour") == "data.yaml:5: items[1].colour"
    assert list(document.strings()) == [(("name",), "a"), (("day",), "2026-01-31")]
