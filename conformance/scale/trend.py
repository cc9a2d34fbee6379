"""Stored results over time and over size, as one HTML page: a trend per scenario, and the growth with its exponent."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from conformance import drawing
from conformance.pages.render import render
from conformance.scale import growth as growths
from conformance.scale.compare import metrics
from conformance.scale.results import Result
from conformance.scale.upstream import PublishedRun

COLORS = (drawing.BLUE, drawing.ORANGE, drawing.INK, drawing.FAINT)
SHAPES = "oDs^vPX*"

TEMPLATE = Path(__file__).with_name("trend.html")


class TrendPoint(NamedTuple):
    """One run: its time as text, and its value."""

    at: str
    value: float


@dataclass(frozen=True)
class Growth:
    """A time as a function of the number of pods. `exponent` is the slope on logarithmic scales; 1 means linear
    growth."""

    sizes: Mapping[int, float]
    exponent: float


class Section(NamedTuple):
    """A part of the page: a picture, or lines, or both."""

    title: str
    picture: Markup
    lines: Sequence[str]


def series(results: Iterable[Result], metric: str) -> dict[str, dict[str, list[TrendPoint]]]:
    """Map each scenario to its series, and each series to its points in order of time. Incomplete results have no
    point."""
    series_by_scenario: dict[str, dict[str, list[TrendPoint]]] = {}
    for result in sorted(results, key=lambda entry: entry["startedAt"]):
        value = metrics.times(result).get(metric)
        if value is not None and result["complete"]:
            name = f"{result['scenario']['name']}, {result['binder']}"
            series_by_scenario.setdefault(name, {}).setdefault(_series_name(result), []).append(
                TrendPoint(result["startedAt"], value)
            )
    return series_by_scenario


def published_series(runs: Iterable[PublishedRun], metric: str) -> dict[str, dict[str, list[TrendPoint]]]:
    """Map each test in upstream's history to its series, and the series to its points."""
    series_by_test: dict[str, dict[str, list[TrendPoint]]] = {}
    for run in sorted(runs, key=lambda entry: entry.at):
        if metric in run.seconds:
            points = series_by_test.setdefault(f"{run.test}, published by Grove", {}).setdefault("Grove", [])
            points.append(TrendPoint(run.at, run.seconds[metric]))
    return series_by_test


def growth(results: Iterable[Result], metric: str) -> dict[str, Growth]:
    """Map each series with at least two sizes to its growth."""
    values: dict[str, dict[int, list[float]]] = {}
    for result in results:
        value = metrics.times(result).get(metric)
        if value is not None and result["complete"]:
            sizes = values.setdefault(f"{_series_name(result)}, {result['binder']}", {})
            sizes.setdefault(result["scenario"]["pods"], []).append(value)
    growth_by_series = {}
    for name, sizes in values.items():
        medians = {pods: statistics.median(seconds) for pods, seconds in sorted(sizes.items())}
        if len(medians) > 1:
            growth_by_series[name] = Growth(medians, growths.exponent(medians))
    return growth_by_series


def page(results: Sequence[Result], runs: Sequence[PublishedRun], metric: str) -> str:
    """Return the page. Raises UsageError if matplotlib is not installed."""
    all_series = {**series(results, metric), **published_series(runs, metric)}.items()
    sections = [_section(name, lines, metric) for name, lines in all_series]
    if growth_by_series := growth(results, metric):
        growth_lines = [
            f"{name}: {metric} grows with pods to the power of {curve.exponent:z.2f}"
            for name, curve in growth_by_series.items()
        ]
        sections.insert(0, Section("Growth", _growth(growth_by_series, metric), growth_lines))
    return render(TEMPLATE, {"metric": metric, "sections": sections})


def _series_name(result: Result) -> str:
    machine = result["environment"]
    return f"{result['implementation']['name']}, {machine['cpus']} × {machine['cpuModel']}"


def _section(name: str, lines: Mapping[str, Sequence[TrendPoint]], metric: str) -> Section:
    """Return the picture of a scenario, or a list if none of its series has more than one run."""
    if any(len(points) > 1 for points in lines.values()):
        return Section(name, _trend(lines, metric), ())
    items = [
        f"{series_name}, {point.at[:10]}: {_digits(point.value)} {_unit(metric)}"
        for series_name, points in lines.items()
        for point in points
    ]
    return Section(name, Markup(), items)


def _trend(lines: Mapping[str, Sequence[TrendPoint]], metric: str) -> Markup:
    chart, axes = drawing.figure(3.0)
    days = sorted({point.at for points in lines.values() for point in points})
    for index, (name, points) in enumerate(lines.items()):
        positions = [days.index(point.at) for point in points]
        color, shape = COLORS[index % len(COLORS)], SHAPES[index % len(SHAPES)]
        axes.plot(positions, [point.value for point in points], f"-{shape}", color=color, markersize=5, label=name)
    ticks = sorted({round(position * (len(days) - 1) / 5) for position in range(6)})
    axes.set_xticks(ticks, [days[position][:10] for position in ticks])
    _finish(axes, "", metric)
    return drawing.element(chart)


def _growth(growth_by_series: Mapping[str, Growth], metric: str) -> Markup:
    chart, axes = drawing.figure(3.5)
    for index, (name, curve) in enumerate(growth_by_series.items()):
        color, shape = COLORS[index % len(COLORS)], SHAPES[index % len(SHAPES)]
        label = f"{name} (exponent {curve.exponent:.2f})"
        axes.plot(list(curve.sizes), list(curve.sizes.values()), f"-{shape}", color=color, markersize=5, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    sizes = sorted({pods for curve in growth_by_series.values() for pods in curve.sizes})
    axes.set_xticks(sizes, [f"{pods:,}" for pods in sizes])
    values = sorted(value for curve in growth_by_series.values() for value in curve.sizes.values())
    ticks = values if len(growth_by_series) == 1 else [values[0], values[-1]]
    axes.set_yticks(ticks, [_digits(value) for value in ticks])
    axes.minorticks_off()
    _finish(axes, "pods", metric)
    return drawing.element(chart)


def _digits(value: float) -> str:
    """Return a number with three digits and without an exponent."""
    return f"{float(f'{value:.3g}'):g}"


def _unit(metric: str) -> str:
    return "× raw floor" if metric.endswith("×floor") else "seconds"


def _finish(axes: Any, x: str, metric: str) -> None:
    axes.spines["left"].set_visible(True)
    axes.set_ylabel(_unit(metric))
    axes.set_xlabel(x)
    if axes.get_yscale() == "linear":
        axes.set_ylim(0, axes.get_ylim()[1] * 1.05)
    axes.legend(fontsize=9)
