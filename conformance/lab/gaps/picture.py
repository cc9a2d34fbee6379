"""The outcomes of all instances as a picture (SVG): a square for each pod, filled if it is bound.

The file refers to nothing outside and contains no script; it is readable on light and dark backgrounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

from conformance.lab.gaps import results
from conformance.lab.gaps.forms import Form
from conformance.lab.gaps.instances import Component, Gap, Instance

LEFT, TOP, MARGIN = 250.0, 64.0, 16.0
COLUMN, ROW, SQUARE, GAP = 260.0, 34.0, 9.0, 2.0
STYLE = """<style>text{font:12px system-ui,sans-serif;fill:#1d2329}.strong{font-weight:600}.title{font-size:16px;
font-weight:600}.ground{fill:#fff}.bound{fill:#1f8f4e;stroke:#1f8f4e}.waiting{fill:none;stroke:#98a4b0}
.wrong{fill:#b3261e}@media (prefers-color-scheme:dark){text{fill:#e8ecf0}.ground{fill:#14181d}
.bound{fill:#4cc27f;stroke:#4cc27f}.wrong{fill:#f2938c}}</style>
"""


def draw(found: Mapping[str, Any], gaps: Sequence[Gap]) -> str:
    """Return the picture of the first run."""
    forms = results.forms_of(dict(found))
    rows = [(gap, instance) for gap in gaps for instance in gap.instances]
    heads = [gap for gap in gaps if gap.instances]
    width = LEFT + len(forms) * COLUMN + MARGIN
    height = TOP + len(rows) * ROW + len(heads) * 22 + MARGIN
    body = "".join(_body(found, heads, forms))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" role="img">\n<title>Bound pods of each instance</title>\n{STYLE}'
        f'<rect class="ground" width="100%" height="100%"/>\n{body}</svg>\n'
    )


def _body(found: Mapping[str, Any], gaps: Sequence[Gap], forms: Sequence[Form]) -> Iterator[str]:
    yield _text(MARGIN, 24, "Bound pods of each instance, by component and replica", "title")
    for column, form in enumerate(forms):
        yield _text(LEFT + column * COLUMN, TOP - 12, form.title, "strong")
    y = TOP
    for gap in gaps:
        yield _text(MARGIN, y + 14, gap.title, "strong")
        y += 22
        for instance in gap.instances:
            yield _text(MARGIN, y + 13, f"{instance.name} ({instance.expect})", "")
            for column, form in enumerate(forms):
                yield from _cell(found, form, instance, LEFT + column * COLUMN, y)
            y += ROW


def _cell(found: Mapping[str, Any], form: Form, instance: Instance, x: float, y: float) -> Iterator[str]:
    seen = results.outcomes(dict(found), form, instance)
    if not seen:
        return
    for line, component in enumerate(instance.components):
        yield from _squares(component, seen[0]["bound"][component.name], x, y + line * (SQUARE + GAP))
    if seen[0]["wrong"]:
        yield _text(x + COLUMN - 30, y + 13, "✗", "wrong strong")


def _squares(component: Component, bound: Sequence[int], x: float, y: float) -> Iterator[str]:
    of_each = component.replicas if component.single else component.pods
    for count in bound:
        for index in range(of_each):
            kind = "bound" if index < count else "waiting"
            yield f'<rect x="{x:.1f}" y="{y:.1f}" width="{SQUARE:g}" height="{SQUARE:g}" class="{kind}"/>\n'
            x += SQUARE + GAP
        x += 2 * GAP


def _text(x: float, y: float, words: str, kind: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{escape(words)}</text>\n'
