"""Render an HTML page, one file that needs no network, or a fragment for another site's page.

A page extends `base.html`. Every value is escaped. A Content Security Policy lets the browser run only the page's own
scripts, which it identifies by their digests, and load only images from the page's folder.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from conformance.drawing import SCHEMES

BASE = Path(__file__).parent
"""The folder that contains `base.html`, `parts.html` with the macros, and their style sheets and script."""
COLORS, STYLE, SCRIPT = "colors.css", "base.css", "base.js"


def render(
    template: Path, values: Mapping[str, object], *, styles: Sequence[str] = (), scripts: Sequence[str] = ()
) -> str:
    """Return a page. `styles` and `scripts` are the names of files in the template's folder; they are added to the
    base's own. The colors are the same as in our pictures. Raises jinja2.UndefinedError if a value is missing."""
    code = [_text(BASE / SCRIPT), *_texts(template, scripts)]
    page_values = {
        "style": Markup("".join([SCHEMES, _text(BASE / COLORS), _text(BASE / STYLE), *_texts(template, styles)])),  # noqa: S704
        "scripts": [Markup(text) for text in code],  # noqa: S704 - files of this package
        "digests": [_digest(text) for text in code],
    }
    return _render(template, {**values, **page_values})


def fragment(template: Path, values: Mapping[str, object], *, styles: Sequence[str] = ()) -> str:
    """Return a fragment for a page that has its own style: our colors, which follow the page's color scheme, the named
    styles, and the rendered template. Raises jinja2.UndefinedError if a value is missing."""
    style = "".join([_text(BASE / COLORS), *_texts(template, styles)])
    return f"<style>\n{style}</style>\n{_render(template, values)}"


def _render(template: Path, values: Mapping[str, object]) -> str:
    return load(template).render(values)


def load(template: Path) -> Template:
    """Return a template. It is compiled once per process, which takes longer than to render a small page."""
    return _environment(template.parent).get_template(template.name)


@functools.cache
def _environment(folder: Path) -> Environment:
    return Environment(
        loader=FileSystemLoader([folder, BASE]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _texts(template: Path, names: Sequence[str]) -> list[str]:
    return [_text(template.parent / name) for name in names]


def _text(path: Path) -> str:
    return path.read_text("utf-8")


def _digest(script: str) -> str:
    """Return a script's digest in the form that a Content Security Policy expects."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
