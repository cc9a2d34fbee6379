"""Tests that docs/operator.md names every setting with its default, and every metric."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest

from conformance.data import PROJECT
from reference_impl.control.metrics import OperatorMetrics
from reference_impl.runtime.configuration import Configuration
from reference_impl.runtime.metrics import Metrics
from reference_impl.scheduler.metrics import SchedulerMetrics

PAGE = (PROJECT / "docs" / "operator.md").read_text(encoding="utf-8")


def settings(value: Any, path: str = "") -> dict[str, str]:
    """Return the default of each key as the table shows it."""
    if isinstance(value, dict):
        return {k: v for name, item in value.items() for k, v in settings(item, f"{path}.{name}").items()}
    return {path.lstrip("."): value if isinstance(value, str) and value else json.dumps(value)}


def test_every_setting_is_in_the_table() -> None:
    rows = dict(re.findall(r"^\| `([A-Za-z.]+)` \| `([^`]*)` \|", PAGE, re.M))
    assert rows == settings(msgspec.to_builtins(Configuration()))


@pytest.mark.parametrize("metrics", [OperatorMetrics(), SchedulerMetrics()])
def test_every_metric_is_on_the_page(metrics: Metrics) -> None:
    names = {
        f"{family.name}_total" if family.type == "counter" else family.name for family in metrics.registry.collect()
    }
    documented = set(re.findall(r"`([a-z_]+)`", PAGE))
    assert {name for name in names if not name.startswith("process_")} <= documented


def test_the_page_names_only_existing_metrics() -> None:
    served_names = {
        f"{family.name}_total" if family.type == "counter" else family.name
        for metrics in (OperatorMetrics(), SchedulerMetrics())
        for family in metrics.registry.collect()
    }
    assert set(re.findall(r"`((?:workqueue|controller_runtime|grove|rest|leader)_[a-z_]+)`", PAGE)) <= served_names
