"""Pictures as SVG elements whose colors are variables of the page that they stand in.

A picture is drawn in placeholder colors, which become CSS variables, so that it follows the light or dark scheme of its
reader. matplotlib is imported when a picture is drawn.
"""

from __future__ import annotations

import io
import re
from typing import Any

from conformance.errors import UsageError

INK, FAINT, BASE, HEAD, GROUND = "#010101", "#020202", "#030303", "#040404", "#050505"
VARIABLES = {INK: "--ink", FAINT: "--faint", BASE: "--base", HEAD: "--head", GROUND: "--ground"}
WIDTH = 6.0
"""Width in inches; the page scales it."""


def figure(height: float) -> tuple[Any, Any]:
    """Return a figure of a height in inches, and its axes. Raises UsageError if matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError(
            "pictures need matplotlib, which is not installed", hint="pip install 'grove-conformance[scale]'"
        ) from error
    drawn = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = drawn.add_subplot()
    drawn.patch.set_visible(False)
    axes.patch.set_visible(False)
    axes.tick_params(colors=INK, labelsize=10)
    axes.xaxis.label.set_color(INK)
    for name, spine in axes.spines.items():
        spine.set_visible(name == "bottom")
        spine.set_color(FAINT)
    return drawn, axes


def element(drawn: Any) -> str:
    """Return a figure as an SVG element that can stand in a page."""
    import matplotlib

    written = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "grove", "font.family": "sans-serif"}):
        drawn.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    text = written.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r'width="[\d.]+pt" height="[\d.]+pt"', 'role="img"', text, count=1)
    for color, variable in VARIABLES.items():
        text = text.replace(color, f"var({variable})")
    return text
