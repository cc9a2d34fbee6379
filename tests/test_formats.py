"""Tests that the schema of a format refuses what its type cannot hold, with the texts of data files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import pytest
from msgspec import Meta, field

from conformance import formats
from conformance.errors import UsageError
from conformance.formats import Format, Text
from tests.public_schemas import PUBLIC
from tests.public_schemas import text as schema_text


class Shelf(Format, frozen=True):
    """A shelf."""

    height: float
    """In metres."""


class Cupboard(Format, frozen=True):
    """A format with each kind of field."""

    api_version: Literal["furniture/v1"]
    about: Annotated[Text, Meta(description="what it is for")]
    door_count: int = 0
    shelf: Shelf | None = None
    shelves: dict[Annotated[str, Meta(pattern="^[a-z]+$", description="lower-case letters")], Shelf] = field(
        default_factory=dict
    )
    content: Shelf | list[Shelf] | None = None
    locks: Annotated[dict[str, str], Meta(extra_json_schema={"propertyNames": {"enum": ["left", "right"]}})] = field(
        default_factory=dict
    )


REQUIRED = "apiVersion: furniture/v1\nabout: Plates\n"


def read(tmp_path: Path, text: str) -> Cupboard:
    (tmp_path / "data.yaml").write_text(text)
    return formats.read(tmp_path / "data.yaml", Cupboard)[1]


def test_a_file_is_converted_to_its_type(tmp_path: Path) -> None:
    cupboard = read(tmp_path, REQUIRED + "doorCount: 2\nshelf: {height: 0.5}\nshelves: {top: {height: 1}}\n")
    assert cupboard == Cupboard("furniture/v1", "Plates", 2, Shelf(0.5), {"top": Shelf(1.0)})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("about: Plates\n", 'data.yaml:1: the field "apiVersion" is missing — add it'),
        ("apiVersion: furniture/v1\n", 'data.yaml:1: the field "about" is missing — add it (what it is for)'),
        ("apiVersion: v2\nabout: Plates\n", 'data.yaml:1: apiVersion: "v2" is wrong — write "furniture/v1"'),
        ("apiVersion: furniture/v1\nabout: ''\n", "data.yaml:2: about: is empty — what it is for"),
        (REQUIRED + "dorCount: 1\n", 'data.yaml:3: dorCount: unknown field — did you mean "doorCount"?'),
        (REQUIRED + "shelf: null\n", "data.yaml:3: shelf: holds nothing — give a mapping"),
        (
            REQUIRED + "shelves: {Top: {height: 1}}\n",
            'data.yaml:3: shelves: "Top" has the wrong form — lower-case letters',
        ),
        (
            REQUIRED + "shelves:\n  top: {height: low}\n",
            "data.yaml:4: shelves.top.height: holds a text — give a number",
        ),
        (REQUIRED + "content: 3\n", "data.yaml:3: content: holds a number — give a mapping or a list"),
        (REQUIRED + "content: {hight: 1}\n", 'data.yaml:3: content.hight: unknown field — did you mean "height"?'),
        (REQUIRED + "content: [{}]\n", 'data.yaml:3: content[0]: the field "height" is missing — add it'),
        (REQUIRED + "locks: {lft: brass}\n", 'data.yaml:3: locks.lft: unknown field — did you mean "left"?'),
    ],
)
def test_a_mistake_is_reported_with_its_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text)
    assert str(caught.value) == message


@pytest.mark.parametrize("path", PUBLIC, ids=lambda path: path.name)
def test_the_schema_for_editors_is_the_one_that_is_checked(path: Path) -> None:
    assert path.read_text("utf-8") == schema_text(PUBLIC[path]), "run `make docs`"
