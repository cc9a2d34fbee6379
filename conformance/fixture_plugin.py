"""The pytest plugin of a session whose tests use the fixture `grove_cluster` (docs/pytest.md).

Nodes are removed at the end of the test or fixture that added them. A failed test leaves its logs and, with
`--grove-keep-cluster`, its cluster.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Generator
from functools import partial
from pathlib import Path

import pytest

from conformance.documents import display_path
from conformance.evidence.bundle import copy_log
from conformance.grove_cluster import GroveCluster

FIXTURE = "grove_cluster"


class FixturePlugin:
    """Removes nodes and collects logs for the tests that use one cluster, on which `implementation` runs."""

    def __init__(self, cluster: GroveCluster, folder: Path, keep: bool, implementation: str) -> None:
        self._cluster, self._folder, self._keep = cluster, folder / cluster.name, keep
        self._implementation = implementation
        self._initial_log_sizes: dict[str, int] = {}
        """Log → its size when the test started."""
        self._logs_exported = False

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        """Keep the nodes that a fixture adds until the fixture is torn down."""
        cluster, outer_nodes, new_nodes = self._cluster, self._cluster.added_nodes, list[str]()
        fixturedef.addfinalizer(partial(cluster.discard, new_nodes))
        cluster.added_nodes = new_nodes
        try:
            return (yield)
        finally:
            cluster.added_nodes = outer_nodes

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        """Remember the sizes of the logs at the start of a test."""
        self._logs_exported = False
        self._initial_log_sizes = {
            name: log.stat().st_size for name, log in self._cluster.all_logs().items() if log.exists()
        }

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        """Fail a test for which a different implementation was chosen, because the cluster already runs the
        implementation of an earlier test."""
        requested = getattr(item, "funcargs", {}).get("grove_implementation", self._implementation)
        if requested != self._implementation:
            pytest.fail(
                f"the cluster of this session runs {self._implementation or 'no implementation'}, and the fixture "
                f"grove_implementation says {requested or 'none'} for this test: override it in the conftest.py of the "
                "root alone, or run these tests in a session of their own",
                pytrace=False,
            )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self) -> Generator[None, None, None]:
        """Remove the nodes of a test after its fixtures have been torn down."""
        try:
            return (yield)
        finally:
            self._cluster.discard(self._cluster.added_nodes)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Export the logs of a failed test, and keep its cluster if `--grove-keep-cluster` is set."""
        report = yield
        if report.failed and not self._logs_exported and not self._cluster.is_down and FIXTURE in _fixture_names(item):
            self._logs_exported = True
            report.sections.append((FIXTURE, "\n".join(self._export_logs(item))))
        return report

    def _export_logs(self, item: pytest.Item) -> list[str]:
        """Export the logs and keep the cluster if requested; return lines for the report that say where both are."""
        cluster = self._cluster
        folder = self._folder / (re.sub(r"[^A-Za-z0-9.]+", "-", item.nodeid).strip("-")[-100:] or "test")
        for name, log in cluster.all_logs().items():
            if log.exists():
                copy_log(log, self._initial_log_sizes.get(name, 0), folder / f"{name}.log")
        lines = [f"logs of the implementation and of the control plane during the test: {display_path(folder)}"]
        if self._keep:
            cluster.keep()
            item.session.shouldfail = f"cluster {cluster.name} was kept (--grove-keep-cluster)"
            namespace_note = f", with the namespace {', '.join(cluster.namespaces)}" if cluster.namespaces else ""
            lines += [
                f"cluster {cluster.name} was kept{namespace_note}:",
                f"  export KUBECONFIG={shlex.quote(str(cluster.kubeconfig))}",
                f"  grove-conformance cluster down {cluster.name}    # when you have seen enough",
            ]
        return lines


def _fixture_names(item: pytest.Item) -> list[str]:
    """Return the names of the fixtures that a test uses, directly or not."""
    return list(getattr(item, "fixturenames", ()))
