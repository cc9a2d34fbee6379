"""Tests that pictures follow the color scheme of the user and need no other file."""

from __future__ import annotations

import re
import sys
from typing import Any
from xml.etree import ElementTree

import pytest

from conformance import drawing
from conformance.errors import UsageError

SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"


def sample_figure() -> Any:
    figure, axes = drawing.figure(1.0)
    axes.plot([1, 2], [3, 4], "o", color=drawing.BLUE, label="a $x^2$ line")
    return figure


def text_elements(root: ElementTree.Element) -> list[str]:
    return ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]


def test_a_document_has_colors_for_both_color_schemes() -> None:
    text = drawing.document(sample_figure(), "a title")
    light_rules, dark_rules = text.split("@media (prefers-color-scheme: dark)")
    used_variables = set(re.findall(r"var\((--[a-z]+)\)", text))
    assert {"--ink", "--blue", "--paper"} <= used_variables
    for variable, light_color, dark_color in drawing.COLORS.values():
        assert f"{variable}: {light_color};" in light_rules and f"{variable}: {dark_color};" in dark_rules
    assert not any(placeholder in text for placeholder in drawing.COLORS)


def test_a_document_refers_to_no_other_file() -> None:
    text = drawing.document(sample_figure(), "a <b> & more")
    root = ElementTree.fromstring(text)
    assert all(element.get(LINK, "#").startswith("#") for element in root.iter())
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", text))
    assert set(re.findall(r"\w+://[^\"]*", text)) == {"http://www.w3.org/1999/xlink", "http://www.w3.org/2000/svg"}
    assert not list(root.iter(f"{SVG}script"))


def test_a_document_has_a_title_a_legend_and_a_size() -> None:
    root = ElementTree.fromstring(drawing.document(sample_figure(), "a <b> & more"))
    assert root.findtext(f"{SVG}title") == "a <b> & more"
    assert {"a <b> & more", "a $x^2$ line"} <= set(text_elements(root))
    assert root.get("width") == "432pt" and root.get("height") == "72pt"


def test_an_element_has_the_size_and_the_background_of_its_page() -> None:
    text = drawing.element(sample_figure())
    root = ElementTree.fromstring(text)
    assert root.get("width") is None and root.get("viewBox") == "0 0 432 72"
    assert "--paper" not in text and "@media" not in text


def test_a_picture_is_the_same_each_time() -> None:
    assert drawing.document(sample_figure(), "a title") == drawing.document(sample_figure(), "a title")


def test_a_missing_matplotlib_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UsageError, match="pictures need matplotlib, which is not installed") as error:
        drawing.figure(1.0)
    assert error.value.hint == "pip install 'grove-conformance[scale]'"
