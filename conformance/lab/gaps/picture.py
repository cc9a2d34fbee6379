"""The outcomes of all instances as a picture (SVG): each pod is a square, which is filled if the pod is bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.drawing import FAINT, GREEN, RED, document, figure
from conformance.lab.gaps import results
from conformance.lab.gaps.forms import Form
from conformance.lab.gaps.instances import Gap, GapInstance

UNIT = 0.15
"""Distance between two squares in inches. All other lengths are multiples of it."""
NAMES_WIDTH, COLUMN_WIDTH, TITLE_HEIGHT, LEGEND_HEIGHT, MARGIN = 21.0, 22.0, 6.0, 4.0, 1.0
"""Width of the names and of a column, height of the titles and of the legend, and the margin."""
ROW_GAP = 0.6
"""Gap between two replicas and between two rows."""
MARKS: dict[str, dict[str, Any]] = {
    "bound": {"marker": "s", "color": GREEN},
    "waiting": {"marker": "s", "color": FAINT, "markerfacecolor": "none"},
    "unexpected": {"marker": "x", "color": RED, "markeredgewidth": 2},
}

Mark = tuple[str, float, float]
"""Kind, x and y of a mark."""


def draw(experiment: Mapping[str, Any], gaps: Sequence[Gap]) -> str:
    """Return the picture of the first run. Raises UsageError if matplotlib is not installed."""
    forms = results.forms_of(dict(experiment))
    rows = list(_rows(gaps))
    width, height = (
        NAMES_WIDTH + COLUMN_WIDTH * len(forms),
        max((y for y, _ in rows), default=TITLE_HEIGHT) + 1 + LEGEND_HEIGHT,
    )
    picture, axes = figure(height * UNIT, width * UNIT)
    picture.set_layout_engine("none")
    axes.set(position=(0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    for y, row in rows:
        label, weight = (row.title, "bold") if isinstance(row, Gap) else (f"{row.name} ({row.expect})", "normal")
        axes.text(MARGIN, y, label, fontsize=9, fontweight=weight, va="center")
    marks: list[Mark] = []
    for x, form in enumerate(forms):
        x_of_form = NAMES_WIDTH + COLUMN_WIDTH * x
        axes.text(x_of_form - 0.5, TITLE_HEIGHT - 2, form.title, fontsize=10, fontweight="bold")
        marks += [
            mark
            for y, row in rows
            if isinstance(row, GapInstance)
            for mark in _marks(experiment, form, row, x_of_form, y)
        ]
    for mark_name, style in MARKS.items():
        xs, ys = ([mark[axis] for mark in marks if mark[0] == mark_name] for axis in (1, 2))
        axes.plot(xs, ys, linestyle="", markersize=8, label=mark_name, gid=mark_name, **style)
    return document(picture, "Bound pods of each instance, by component and replica")


def _rows(gaps: Sequence[Gap]) -> Iterator[tuple[float, Gap | GapInstance]]:
    """Yield the gaps and their instances, each with the y coordinate of its first line."""
    y = TITLE_HEIGHT
    for gap in gaps:
        if gap.instances:
            yield y, gap
            y += 1 + ROW_GAP
        for instance in gap.instances:
            yield y, instance
            y += len(instance.components) + ROW_GAP
        y += ROW_GAP


def _marks(
    experiment: Mapping[str, Any], form: Form, instance: GapInstance, x_of_form: float, y: float
) -> Iterator[Mark]:
    """Yield the squares that show the pods of an instance, preceded by a cross if the outcome is unexpected."""
    for outcome in results.outcomes(dict(experiment), form, instance)[:1]:
        if outcome["wrong"]:
            yield "unexpected", x_of_form - 1.5, y
        for row, component in enumerate(instance.components):
            pods = component.replicas if component.is_single_pod else component.pods
            for replica, count in enumerate(outcome["bound"][component.name]):
                for pod in range(pods):
                    yield "bound" if pod < count else "waiting", x_of_form + replica * (pods + ROW_GAP) + pod, y + row
