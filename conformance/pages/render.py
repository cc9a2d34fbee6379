"""Render an HTML page, one file that needs no network, or a part of somebody else's page.

A page extends `base.html`. Every value is escaped. In addition, the page forbids the browser whatever it does not
contain: only its own scripts run, by their digests, and nothing is loaded but pictures that lie beside it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from conformance.drawing import SCHEMES

BASE = Path(__file__).parent
"""The folder of `base.html`, of `parts.html` with the macros, and of their style and script."""
COLORS, STYLE, SCRIPT = "colors.css", "base.css", "base.js"


def render(
    template: Path, values: Mapping[str, object], *, styles: Sequence[str] = (), scripts: Sequence[str] = ()
) -> str:
    """Return a page. `styles` and `scripts` are the names of files beside the template that are added to those of the
    base; the colors are those of our pictures. Raises jinja2.UndefinedError if a value is missing."""
    code = [_text(BASE / SCRIPT), *_texts(template, scripts)]
    page_values = {
        "style": Markup("".join([SCHEMES, _text(BASE / COLORS), _text(BASE / STYLE), *_texts(template, styles)])),  # noqa: S704
        "scripts": [Markup(text) for text in code],  # noqa: S704 - files of this package
        "digests": [_digest(text) for text in code],
    }
    return _render(template, {**values, **page_values})


def part(template: Path, values: Mapping[str, object], *, styles: Sequence[str] = ()) -> str:
    """Return a part of a page that has a style of its own: our colors, which follow the color-scheme of the page, the
    named styles, and what the template makes of the values. Raises jinja2.UndefinedError if a value is missing."""
    style = "".join([_text(BASE / COLORS), *_texts(template, styles)])
    return f"<style>\n{style}</style>\n{_render(template, values)}"


def _render(template: Path, values: Mapping[str, object]) -> str:
    environment = Environment(
        loader=FileSystemLoader([template.parent, BASE]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(template.name).render(values)


def _texts(template: Path, names: Sequence[str]) -> list[str]:
    return [_text(template.parent / name) for name in names]


def _text(path: Path) -> str:
    return path.read_text("utf-8")


def _digest(script: str) -> str:
    """Return a script's digest as a Content Security Policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
