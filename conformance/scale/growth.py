"""Growth with the number of pods: fits to results of several sizes, and predictions for a larger size.

Times, CPU and counts are fitted by a power of the number of pods, whose exponent shows whether the growth is linear.
Memory and storage are partly independent of the pods, so they are fitted by a line.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from conformance.errors import UsageError
from conformance.scale.compare.metrics import PRIMARY_MARKER
from conformance.scale.compare.validity import Limits, disturbances, summary
from conformance.scale.results import Result

STORAGE_QUANTITIES: Mapping[str, tuple[str, Callable[[Iterable[float]], float]]] = {
    "apiServerLiveMiB": ("memory in use in kube-apiserver", max),
    "etcdMiB": ("database of etcd", max),
    "auditLogMiB": ("audit log of the phases", sum),
    "recordedMiB": ("watch events of the phases", sum),
}
"""The storage quantities of the phases, each with its title and the function (sum or maximum) that combines the
phases."""
LISTING_THRESHOLD = {"s": 0.2, "MiB": 1.0, "": 1}
"""Threshold by unit: a quantity is listed only if its value at the largest size reaches it."""


class Fit(StrEnum):
    """The dependence of a quantity on the number of pods."""

    POWER = "power"
    LINE = "line"


@dataclass(frozen=True)
class Quantity:
    """A quantity that was measured at several sizes. `values` maps the number of pods to the value."""

    name: str
    unit: str
    values: Mapping[int, float]

    @property
    def fit(self) -> Fit:
        """Return the kind of the fit. A line that is negative at zero pods would be meaningless, so a power is used
        instead."""
        _, base_value = self._line()
        return Fit.LINE if self.unit == "MiB" and base_value >= 0 else Fit.POWER

    @property
    def law(self) -> str:
        """Return the fit as readable text."""
        if self.fit is Fit.POWER:
            return f"pods^{exponent(self.values):.2f}"
        per_pod, base_value = self._line()
        return f"{base_value:.0f} MiB + {per_pod * 1024:.1f} KiB a pod"

    def predict(self, pods: int) -> float:
        """Return the value that the fit predicts for another number of pods."""
        if self.fit is Fit.LINE:
            per_pod, base_value = self._line()
            return base_value + per_pod * pods
        largest_size = max(self.values)
        return self.values[largest_size] * math.pow(pods / largest_size, exponent(self.values))

    def _line(self) -> tuple[float, float]:
        """Return the increase per pod, and the value without pods."""
        return statistics.linear_regression(list(self.values), list(self.values.values()))


def exponent(values: Mapping[int, float]) -> float:
    """Return the slope on logarithmic scales (1 for linear growth) of positive values at two or more sizes."""
    logs = [math.log(size) for size in values], [math.log(value) for value in values.values()]
    return float(statistics.linear_regression(*logs).slope)


def quantities(results: Iterable[Result]) -> list[Quantity]:
    """Return the measured quantities whose growth with the number of pods can be judged, in the order of the largest
    result. Only complete results count; several results of one size count as their median. Raises UsageError for
    results of different implementations or machines, and if there are fewer than two sizes."""
    sizes: dict[int, list[dict[tuple[str, str], float]]] = {}
    complete_results = [result for result in results if result["complete"]]
    if len(series_names := {_series_name(result) for result in complete_results}) > 1:
        raise UsageError(f"the results are of {' and '.join(sorted(series_names))}", hint="give those of one")
    for result in complete_results:
        sizes.setdefault(result["scenario"]["pods"], []).append(dict(_measurements(result)))
    if len(sizes) < 2:
        raise UsageError(f"growth takes complete results of two sizes, there are {len(sizes)}", hint="give more")
    medians = {
        pods: {key: statistics.median(run[key] for run in runs if key in run) for key in runs[0]}
        for pods, runs in sorted(sizes.items())
    }
    largest_size = max(medians)
    return [
        Quantity(name, unit, {pods: values[name, unit] for pods, values in medians.items()})
        for (name, unit), value in medians[largest_size].items()
        if value >= LISTING_THRESHOLD[unit] and all(values.get((name, unit), 0) > 0 for values in medians.values())
    ]


def table(results: Sequence[Result], pods: int) -> str:
    """Return a Markdown table: for each quantity a row with its values, its fit, and its prediction for `pods` pods."""
    listed_quantities = quantities(results)
    sizes = list(listed_quantities[0].values) if listed_quantities else []
    header = ["", *(f"{size:,} pods" for size in sizes), "grows with", f"at {pods:,}"]
    rows = [
        [quantity.name, *(_format_value(value, quantity.unit) for value in quantity.values.values()), quantity.law,
         _format_value(quantity.predict(pods), quantity.unit)]
        for quantity in listed_quantities
    ]  # fmt: skip
    lines = [" | ".join(row) for row in (header, ["---"] * len(header), *rows)]
    notes = [f"- {line}" for line in _disturbance_notes(results)]
    return "\n".join([*(f"| {line} |" for line in lines), *(["", *notes] if notes else [])])


def _measurements(result: Result) -> Iterator[tuple[tuple[str, str], float]]:
    """Yield (name, unit) and the value of each quantity: the costs of each phase, and the maxima of memory and
    storage."""
    phases = result["phases"]
    for marker, seconds in result["floors"]["mean"].items():
        yield (f"raw floor: {marker}", "s"), seconds
    for phase in phases:
        name = phase["name"]
        if ready_seconds := phase["markers"].get(PRIMARY_MARKER):
            yield (f"{name}: {PRIMARY_MARKER}", "s"), ready_seconds
        yield (f"{name}: until it is over", "s"), phase["seconds"]
        for process, cost in phase["processes"].items():
            yield (f"{name}: CPU of {process}", "s"), cost["cpuSeconds"]
        yield (f"{name}: CPU of the recorder, in suite", "s"), phase["machine"].get("recorderCpuSeconds", 0.0)
        yield (f"{name}: writes of the implementation", ""), phase["writes"]["total"]
    for process in phases[0]["processes"]:
        peak = max(phase["processes"].get(process, {}).get("memoryMiB", 0) for phase in phases)
        yield (f"memory of {process}", "MiB"), peak
    for key, (label, combine) in STORAGE_QUANTITIES.items():
        if sizes_stored := [phase["storage"][key] for phase in phases if key in phase.get("storage", {})]:
            yield (label, "MiB"), combine(sizes_stored)


def _series_name(result: Result) -> str:
    machine = result["environment"]
    return f"{result['implementation']['name']} by {result['binder']} on {machine['cpus']} × {machine['cpuModel']}"


def _format_value(value: float, unit: str) -> str:
    if unit == "MiB" and value >= 1024:
        return f"{value / 1024:,.1f} GiB"
    digits = 1 if value < 100 and unit else 0
    return f"{value:,.{digits}f} {unit}".strip()


def _disturbance_notes(results: Sequence[Result]) -> Iterator[str]:
    for result in results:
        if reasons := disturbances(result, Limits()):
            yield f"{result['scenario']['name']}: times and CPU are not to be relied on: {summary(reasons)}"
