"""A comparison as one HTML page that needs no network: verdict, tables and pictures. The pictures are the ratios
of every round with their intervals, and the phases of both sides over time."""

from __future__ import annotations

import re
import statistics
from pathlib import Path
from typing import Any

from conformance.drawing import BLUE, FAINT, GROUND, INK, ORANGE, element, figure
from conformance.pages.render import render
from conformance.scale.compare import tables
from conformance.scale.compare.verdicts import TimeVerdict

Document = dict[str, Any]

TEMPLATE = Path(__file__).with_name("page.html")
KINDS = {TimeVerdict.FASTER: "good", TimeVerdict.NO_DIFFERENCE: "good", TimeVerdict.SLOWER: "bad"}
"""The CSS classes of verdicts on the page. All other verdicts have the class `unsure`."""
ROW_HEIGHT = 0.3
"""The height of a row of a picture in inches."""
MARKER_NAME = re.compile(r"[^/]+/(?!cpu-|created-to-)[^×]+")
"""Matches the names of times that are markers in seconds."""


def page(document: Document, command: str) -> str:
    """Return the page of a comparison. Raises UsageError if matplotlib is not installed."""
    metric_names = [
        document["question"]["metric"],
        *(name for name in document["times"] if name.endswith(tables.SHOWN_TIMES)),
    ]
    values = {
        "title": tables.title(document),
        "kind": "bad" if document["gate"] else KINDS.get(TimeVerdict(document["verdict"]), "unsure"),
        "headline": tables.headline(document),
        "why": document["why"],
        "gate": document["gate"],
        "ratios": _ratios(document, metric_names),
        "timeline": _timeline(document),
        "header": tables.HEADER,
        "rows": list(tables.rows(document)),
        "notes": list(tables.notes(document)),
        "command": command,
    }
    return render(TEMPLATE, values)


def _ratios(document: Document, names: list[str]) -> str:
    """Return a strip plot with, for each metric, a point per round, the median and its interval; the range of the
    minimum effect is shaded. Empty if there are no rounds."""
    rows = [(name, metric) for name in names if (metric := _metric(document, name))["estimate"] is not None]
    if not rows:
        return ""
    chart, axes = figure(1.0 + ROW_HEIGHT * len(rows))
    minimum = document["question"]["minimum_effect"]
    axes.axvspan(1 / (1 + minimum), 1 + minimum, color=GROUND, linewidth=0)
    axes.axvline(1, color=FAINT, linewidth=1)
    for row, (_, metric) in enumerate(rows):
        interval = metric["estimate"]
        points = [head / base for base, head in zip(metric["base"], metric["head"], strict=True)]
        axes.plot(points, [row] * len(points), "o", color=FAINT, markersize=4, markerfacecolor="none", zorder=3)
        axes.plot([interval["low"], interval["high"]], [row, row], color=ORANGE, linewidth=3, solid_capstyle="butt")
        axes.plot([interval["ratio"]], [row], "D", color=INK, markersize=5, zorder=4)
    axes.set_xscale("log")
    _label_rows(axes, [name for name, _ in rows])
    _format_ratio_axis(axes)
    axes.set_xlabel("head / base; left of 1: the head takes less")
    return element(chart)


def _timeline(document: Document) -> str:
    """Return a chart with one row for each marker of each phase: the medians of both sides, in seconds since the
    request. Empty if there are no rounds."""
    marks: dict[str, list[tuple[str, float, float]]] = {}
    for name in [document["question"]["metric"], *document["times"]]:
        if MARKER_NAME.fullmatch(name):
            metric, (phase, marker) = _metric(document, name), name.split("/", 1)
            if metric["base"]:
                medians = statistics.median(metric["base"]), statistics.median(metric["head"])
                marks.setdefault(phase, []).append((marker, *medians))
    rows = [(phase, mark) for phase, entries in marks.items() for mark in sorted(entries, key=lambda mark: mark[1])]
    if not rows:
        return ""
    chart, axes = figure(1.0 + ROW_HEIGHT * len(rows))
    names = tables.names(document)
    for row, (_, (_, *values)) in enumerate(rows):
        axes.plot(values, [row, row], color=FAINT, linewidth=2)
        for value, name, color, shape in zip(values, names, (BLUE, ORANGE), "oD", strict=True):
            label = name if row == 0 else None
            axes.plot([value], [row], shape, color=color, markersize=6, label=label, clip_on=False)
    _label_rows(axes, [f"{phase}/{marker}" for phase, (marker, _, _) in rows])
    axes.set_xlim(left=0)
    axes.set_xlabel("seconds since the request of the phase, median of the rounds")
    axes.legend(loc="lower right")
    return element(chart)


def _metric(document: Document, name: str) -> Document:
    metric: Document = document["primary"] if name == document["question"]["metric"] else document["times"][name]
    return metric


def _label_rows(axes: Any, names: list[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.4, -0.6)


def _format_ratio_axis(axes: Any) -> None:
    """Label a logarithmic axis with 0.8 and 1.25 instead of powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

    low, high = axes.get_xlim()
    low, high = min(low, 0.9), max(high, 1.11)
    axes.set_xlim(low, high)
    is_wide = high > 3 * low
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)) if is_wide else MaxNLocator(7, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
