"""SVG pictures, drawn by matplotlib: elements of a page, and standalone documents; colors and escaping of all pictures.

A picture is drawn in placeholder colors, which are replaced by CSS variables, so that it follows the reader's light or
dark scheme. matplotlib is imported when a picture is drawn.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from typing import Any
from xml.sax import saxutils

from markupsafe import Markup

from conformance.errors import UsageError


def schemes(colors: Iterable[tuple[str, str, str]]) -> str:
    """Return a style sheet that defines CSS variables, each with its color in the light and in the dark scheme."""
    variables = list(colors)
    light, dark = (" ".join(f"{color[0]}: {color[scheme]};" for color in variables) for scheme in (1, 2))
    return (
        f":root {{ color-scheme: light dark; {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
    )


INK, FAINT, BLUE, ORANGE, GREEN, RED, GROUND, PAPER = (f"#0{n}0{n}0{n}" for n in range(1, 9))
"""Placeholder colors. Text is INK, secondary lines are FAINT, areas are GROUND, the background is PAPER."""
COLORS = {
    INK: ("--ink", "#1f2328", "#e6edf3"),
    FAINT: ("--faint", "#8b949e", "#7d8590"),
    BLUE: ("--blue", "#0969da", "#58a6ff"),
    ORANGE: ("--orange", "#bc4c00", "#ff9a4d"),
    GREEN: ("--green", "#1a7f37", "#4cc27f"),
    RED: ("--red", "#b3261e", "#ff7b72"),
    GROUND: ("--ground", "#eef1f4", "#21262d"),
    PAPER: ("--paper", "#ffffff", "#0d1117"),
}
"""CSS variable of each placeholder, and its color in the light and in the dark scheme."""
SCHEMES = schemes(COLORS.values())
"""Style sheet that defines the variables."""
STYLE: dict[Any, Any] = {
    "axes.labelcolor": INK, "text.color": INK, "xtick.color": INK, "ytick.color": INK, "axes.edgecolor": FAINT,
    "axes.facecolor": "none", "figure.facecolor": PAPER, "legend.frameon": False,
    "axes.spines.left": False, "axes.spines.right": False, "axes.spines.top": False,
    "axes.titlelocation": "left", "axes.titlesize": 10, "axes.titleweight": "bold",
    "figure.titlesize": 13, "figure.titleweight": "bold", "figure.constrained_layout.use": True,
    "font.family": "sans-serif", "text.parse_math": False, "svg.fonttype": "none", "svg.hashsalt": "grove",
}  # fmt: skip
"""Parameters of matplotlib, for the whole process. Text stays text, including `$`, and the output is reproducible."""
WIDTH = 6.0
"""Width of a picture in inches; a page scales it."""


def figure(height: float, width: float = WIDTH, **grid: Any) -> tuple[Any, Any]:
    """Return a figure with this size in inches, and its axes as `Figure.subplots` returns them.

    Raises UsageError if matplotlib is not installed.
    """
    new_figure = require_matplotlib().figure.Figure(figsize=(width, height))
    return new_figure, new_figure.subplots(**grid)


def require_matplotlib() -> Any:
    """Import matplotlib and set the style of our pictures. Raises UsageError if it is not installed."""
    try:
        import matplotlib.figure
    except ImportError as error:
        raise UsageError(
            "pictures need matplotlib, which is not installed", hint="pip install 'grove-conformance[scale]'"
        ) from error
    matplotlib.rcParams.update(STYLE)
    return matplotlib


def element(picture: Any) -> Markup:
    """Return a figure as an SVG element for a page that includes the style sheet `SCHEMES`."""
    picture.patch.set_visible(False)
    return Markup(re.sub(r' width="[\d.]+pt" height="[\d.]+pt"', "", _svg(picture), count=1))  # noqa: S704 - matplotlib escapes


def document(picture: Any, title: str) -> str:
    """Return a figure as an SVG document, with its title and a legend of all labelled artists.

    The document has no external references and no script.
    """
    picture.suptitle(title, x=0.01, ha="left")
    handles = {handle.get_label(): handle for axes in picture.axes for handle in axes.get_legend_handles_labels()[0]}
    picture.legend(handles=handles.values(), loc="outside lower left", ncols=3)
    tag, body = _svg(picture).split(">", 1)
    return f"{tag}>\n <title>{escape(title)}</title>\n <style>{SCHEMES}</style>{body}"


def escape(text: str) -> str:
    """Escape text for an XML document and replace control characters."""
    return saxutils.escape("".join(c if c.isprintable() else "�" for c in text), {'"': "&quot;"})


def _svg(picture: Any) -> str:
    buffer = io.StringIO()
    picture.savefig(buffer, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    text = buffer.getvalue()
    for color, (variable, *_) in COLORS.items():
        text = text.replace(color, f"var({variable})")
    return text[text.index("<svg") :].replace("<svg", '<svg role="img"', 1)
