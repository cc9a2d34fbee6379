"""The results of the laboratory as a picture (SVG): who was available when, a panel for each update.

The file refers to nothing outside and contains no script; it is readable on light and dark backgrounds. Lines never
differ in colour alone but also in their dashes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

from conformance.lab.experiment import COURSES, LAYOUTS, WORKLOADS, Course, GangLayout, Workload

LEFT, TOP, GAP, MARGIN = 190.0, 78.0, 24.0, 16.0
PANEL_WIDTH, PANEL_HEIGHT, UNITS, LABEL = 330.0, 84.0, 9.0, 34.0
ROW = PANEL_HEIGHT + UNITS + LABEL
APART = 2.5
"""Distance of the lines of two components of which everything is available."""
LINES = {"f": "", "p": "6 3", "d": "2 2"}
"""The dashes of each component."""
LIGHT = {"ground": "#ffffff", "text": "#1d2329", "faint": "#5d6873", "line": "#d5dbe1",
         "f": "#4a5a86", "p": "#c2541b", "d": "#1f8f4e", "whole": "#5b9ee6", "none": "#f3c6c4"}  # fmt: skip
DARK = {"ground": "#14181d", "text": "#e8ecf0", "faint": "#98a4b0", "line": "#333c46",
        "f": "#9db1e8", "p": "#f0914f", "d": "#4cc27f", "whole": "#3f83cd", "none": "#6b2320"}  # fmt: skip

Trial = Mapping[str, Any]


def draw(found: Mapping[str, Any]) -> str:
    """Return the picture of the first run of each update."""
    trials = {(t["workload"], t["course"], t["layout"]): t for t in reversed(found["trials"])}
    layouts = [each for each in LAYOUTS if any(key[2] == each.name for key in trials)]
    pairs = [(w, c) for c in COURSES for w in WORKLOADS if any(key[:2] == (w.name, c.name) for key in trials)]
    width = LEFT + len(layouts) * (PANEL_WIDTH + GAP) + MARGIN
    height = TOP + len(pairs) * ROW + MARGIN
    parts = [*_head(layouts)]
    for number, (workload, course) in enumerate(pairs):
        y = TOP + number * ROW
        row = [trials.get((workload.name, course.name, layout.name)) for layout in layouts]
        end = max((trial["seconds"] for trial in row if trial), default=1.0) or 1.0
        parts += _row_name(workload, course, y)
        for column, trial in enumerate(row):
            if trial is not None:
                parts += _panel(trial, workload, LEFT + column * (PANEL_WIDTH + GAP), y, end)
    title = "Availability during a coherent update, by gang layout"
    body = _text(MARGIN, 26, title, "title") + "".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" role="img">\n<title>{title}</title>\n{_style()}'
        f'<rect class="ground" width="100%" height="100%"/>\n{body}</svg>\n'
    )


def _head(layouts: Sequence[GangLayout]) -> Iterator[str]:
    """The legend and the names of the columns."""
    x = MARGIN
    for name, words in (("f", "standalone clique f"), ("p", "scaling group p"), ("d", "scaling group d")):
        yield _path(f"M{x:.1f} 44h26", name)
        yield _text(x + 32, 48, words, "small")
        x += 175
    for kind, words in (("whole", "whole serving units"), ("none", "units that are not whole")):
        yield _rect(x, 38, 18, UNITS, kind)
        yield _text(x + 24, 48, words, "small")
        x += 165
    for column, layout in enumerate(layouts):
        yield _text(LEFT + column * (PANEL_WIDTH + GAP), TOP - 8, layout.name, "strong")


def _row_name(workload: Workload, course: Course, y: float) -> Iterator[str]:
    yield _text(MARGIN, y + 14, course.name, "strong")
    yield _text(MARGIN, y + 32, workload.name, "")
    for number, (name, (size, least)) in enumerate(workload.sizes.items()):
        yield _text(MARGIN, y + 49 + 14 * number, f"{name}: {size}, minAvailable {least}", "small")


def _panel(trial: Trial, workload: Workload, x: float, y: float, end: float) -> Iterator[str]:
    """One update: a line for each component, in shares of its members; below, the serving units that are whole."""
    yield _rect(x, y, PANEL_WIDTH, PANEL_HEIGHT, "frame")
    scale, height = PANEL_WIDTH / end, PANEL_HEIGHT - len(LINES) * APART
    curve = trial["curve"]
    ends = [point[0] for point in curve[1:]] + [trial["seconds"]]
    for number, (name, (size, _)) in enumerate(workload.sizes.items(), 1):
        heights = [y + number * APART + height * (1 - point[1][name] / size) for point in curve]
        steps = "".join(f"V{height:.1f}H{x + until * scale:.1f}" for height, until in zip(heights, ends, strict=True))
        yield _path(f"M{x + curve[0][0] * scale:.1f} {heights[0]:.1f}{steps}", name)
    most = max(point[2] for point in curve) or 1
    for (at, _, whole), until in zip(curve, ends, strict=True):
        span, top = max(0.0, until - at) * scale, y + PANEL_HEIGHT + 2
        yield _rect(x + at * scale, top, span, UNITS, "none")
        part = UNITS * whole / most
        yield _rect(x + at * scale, top + UNITS - part, span, part, "whole")
    yield _text(x, y + PANEL_HEIGHT + UNITS + 15, _caption(trial, workload), "small")


def _caption(trial: Trial, workload: Workload) -> str:
    lowest = ", ".join(f"{name} {trial['lowestAvailable'][name]}" for name in workload.sizes)
    words = f"{trial['seconds']:.1f} s; lowest {lowest}; whole units ≥ {trial['wholeUnits']['lowest']}"
    for field, word in (("evicted", "evicted"), ("orphans", "orphans")):
        if trial[field] is not None:
            words += f"; {len(trial[field])} {word}"
    return words


def _style() -> str:
    def colours(of: Mapping[str, str]) -> str:
        fills = "".join(f".{kind}{{fill:{of[kind]}}}" for kind in ("ground", "whole", "none"))
        lines = "".join(f"path.{kind}{{stroke:{of[kind]}}}" for kind in LINES)
        return f"text{{fill:{of['text']}}}.small{{fill:{of['faint']}}}.frame{{stroke:{of['line']}}}{fills}{lines}"

    dashes = "".join(f"path.{kind}{{stroke-dasharray:{dash}}}" for kind, dash in LINES.items() if dash)
    return (
        "<style>text{font:13px system-ui,sans-serif}.title{font-size:17px;font-weight:600}.strong{font-weight:600}"
        ".small{font-size:11.5px}rect{shape-rendering:crispEdges}.frame{fill:none;stroke-width:1}path{fill:none;stroke-width:2}"
        f"{dashes}{colours(LIGHT)}@media (prefers-color-scheme:dark){{{colours(DARK)}}}</style>\n"
    )


def _text(x: float, y: float, words: str, kind: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{escape(words)}</text>\n'


def _rect(x: float, y: float, width: float, height: float, kind: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.2f}" height="{height:.1f}" class="{kind}"/>\n'


def _path(line: str, kind: str) -> str:
    return f'<path d="{line}" class="{kind}"/>\n'
