"""The results of the laboratory as a picture (SVG): availability over time, with a panel for each update.

Lines differ not only in color but also in their dashes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from conformance.drawing import BLUE, GREEN, INK, ORANGE, RED, document, figure
from conformance.lab.experiment import COURSES, LAYOUTS, WORKLOADS, Disturbance, Workload

COLUMN_WIDTH, ROW_HEIGHT, HEADER_HEIGHT, NAMES_WIDTH = 4.1, 1.6, 0.8, 2.4
"""In inches: the width and height of a panel with its labels, the height of title and legend, and the width of the row
names."""
LINES = {
    "f": ("standalone clique f", INK, "-"),
    "p": ("scaling group p", ORANGE, "--"),
    "d": ("scaling group d", GREEN, ":"),
}
LINE_OFFSET = 0.03
"""Vertical offset between the lines of two components that are both fully available."""
BAND_BOTTOM, BAND_TOP = -0.35, -0.15
"""The band that shows the serving units, in units of the axis of the shares above it."""

Trial = Mapping[str, Any]


def draw(experiment: Mapping[str, Any]) -> str:
    """Return the picture of the first run of each update. Raises UsageError if matplotlib is not installed."""
    trials = {(t["workload"], t["course"], t["layout"]): t for t in reversed(experiment["trials"])}
    layouts = [layout.name for layout in LAYOUTS if any(key[2] == layout.name for key in trials)]
    rows = [(w, c) for c in COURSES for w in WORKLOADS if any(key[:2] == (w.name, c.name) for key in trials)]
    size = HEADER_HEIGHT + ROW_HEIGHT * len(rows), NAMES_WIDTH + COLUMN_WIDTH * len(layouts)
    widths = [NAMES_WIDTH, *[COLUMN_WIDTH] * len(layouts)]
    picture, grid = figure(*size, nrows=len(rows), ncols=len(widths), width_ratios=widths, squeeze=False)
    for axes, name in zip(grid[0, 1:], layouts, strict=True):
        axes.set_title(name)
    for (workload, course), (name_axes, *row) in zip(rows, grid, strict=True):
        _write_row_name(name_axes, workload, course)
        for axes, name in zip(row, layouts, strict=True):
            _draw_panel(axes, trials.get((workload.name, course.name, name)), workload)
        end = max(axes.dataLim.x1 for axes in row)
        for axes in row:
            axes.set_xlim(0, end)
    return document(picture, "Availability during a coherent update, by gang layout")


def _write_row_name(axes: Any, workload: Workload, course: Disturbance) -> None:
    """Write the name of a row and the sizes of its components."""
    sizes = [f"{name}: {size}, minAvailable {minimum}" for name, (size, minimum) in workload.sizes.items()]
    axes.set_axis_off()
    axes.text(0, 1, f"{course.name}, {workload.name}", fontweight="bold", in_layout=False)
    axes.text(0, 0.9, "\n".join(sizes), fontsize=9, va="top", in_layout=False)


def _draw_panel(axes: Any, trial: Trial | None, workload: Workload) -> None:
    """Draw one update: a line for each component, as the share of its members that are available, and below the lines a
    band with the number of whole serving units."""
    axes.set_ylim(BAND_BOTTOM, 1.05)
    axes.set_yticks([0, 1], ["0 %", "100 %"])
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_formatter("{x:g} s")
    axes.set_xlabel(_caption(trial, workload) if trial else "not played", loc="left", fontsize=9)
    if trial is None:
        return
    for number, (name, (size, _)) in enumerate(workload.sizes.items()):
        label, color, dashes = LINES[name]
        shares = [point[1][name] / size - number * LINE_OFFSET for point in trial["curve"]]
        axes.stairs(*_steps(trial, shares), baseline=None, color=color, linestyle=dashes, linewidth=1.5, label=label)
    units = [point[2] for point in trial["curve"]]
    whole_heights = [BAND_BOTTOM + (BAND_TOP - BAND_BOTTOM) * count / (max(units) or 1) for count in units]
    band = {"baseline": BAND_BOTTOM, "fill": True}
    axes.stairs([BAND_TOP], [0, trial["seconds"]], **band, color=RED, alpha=0.3, label="units that are not whole")
    axes.stairs(*_steps(trial, whole_heights), **band, color=BLUE, label="whole serving units")


def _steps(trial: Trial, values: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return the values of a curve without repetitions, the times at which these values start, and the end time."""
    times = [point[0] for point in trial["curve"]]
    steps = [next(group) for _, group in groupby(zip(values, times, strict=True), key=itemgetter(0))]
    return [value for value, _ in steps], [*(time for _, time in steps), trial["seconds"]]


def _caption(trial: Trial, workload: Workload) -> str:
    lowest = ", ".join(f"{name} {trial['lowestAvailable'][name]}" for name in workload.sizes)
    text = f"{trial['seconds']:.1f} s; lowest {lowest}; whole units ≥ {trial['wholeUnits']['lowest']}"
    for field, word in (("evicted", "evicted"), ("orphans", "orphans")):
        if trial[field] is not None:
            text += f"; {len(trial[field])} {word}"
    return text
