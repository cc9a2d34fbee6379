"""The pytest plugin of the package (entry point `pytest11`): it runs conformance tests with the `pytest` command, and
provides a fake cluster for other projects' tests.

pytest loads the plugin in every session of an environment in which the package is installed. The plugin therefore
imports none of our packages until it is used: conformance tests are selected, or a test requests one of its fixtures.
From then on, our packages take precedence over other packages of the same names.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from grove_conformance import precedence

if TYPE_CHECKING:
    from conformance.grove_cluster import GroveCluster

TESTS = precedence.FOLDER / "conformance" / "tests"
PACKAGE = "conformance.tests"
DEFAULT_IMPLEMENTATION = "reference"
_SETTINGS = "conformance_settings"
"""The value of `suite.plugin.SETTINGS`, copied because `suite.plugin` is imported only when it is needed."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, all with the prefix `--grove`."""
    group = parser.getgroup("grove", "conformance with the Grove API")
    group.addoption("--grove-implementation", metavar="NAME", help="implementation: name or path of a descriptor")
    group.addoption("--grove-set", metavar="NAME=VALUE", action="append", help="set a parameter of the descriptor")
    group.addoption("--grove-baseline", metavar="FILE", default="", help="expect these failures, too")
    group.addoption("--grove-profile", metavar="PROFILE", action="append", help="judge only this profile")
    group.addoption("--grove-id", metavar="ID", action="append", help="judge only this requirement")
    group.addoption("--grove-skip", metavar="ID", action="append", help="do not judge this requirement")
    group.addoption("--grove-shard", metavar="I/N", default="", help="run the I-th of N parts, by their cost")
    group.addoption("--grove-seed", metavar="N", type=int, help="repeat the random choices of an earlier run")
    group.addoption("--grove-report-dir", metavar="FOLDER", default="reports", help="parent folder of the report")
    group.addoption(
        "--grove-keep-cluster",
        action="store_true",
        help="grove_cluster: end with the first failed test, and leave its cluster as it is",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Turn this session into a conformance run if the command line names conformance tests, or into a worker of such a
    run if it is a pytest-xdist worker."""
    worker_input = getattr(config, "workerinput", None)
    if worker_input is not None:
        if _SETTINGS in worker_input:
            _take_precedence()
            from conformance.suite import plugin

            config.option.conformance_run = worker_input[_SETTINGS]
            config.pluginmanager.register(plugin)
    elif _selects_conformance_tests(config):
        if not config.getoption("grove_implementation"):
            raise pytest.UsageError(f"{PACKAGE} judge an implementation: give --grove-implementation NAME")
        _take_precedence()
        from conformance.run import hosted

        hosted.start_run(config)


def _selects_conformance_tests(config: pytest.Config) -> bool:
    """Return whether the command line names conformance tests, by their package or by a path."""
    for argument in config.args:
        name = argument.partition("::")[0]
        if config.getoption("pyargs") and f"{name}.".startswith(f"{PACKAGE}."):
            return True
        if (config.invocation_params.dir / name).resolve().is_relative_to(TESTS):
            return True
    return False


def _take_precedence() -> None:
    try:
        precedence.import_packages()
    except ImportError as error:
        raise pytest.UsageError(f"grove-conformance: {error}") from None


@pytest.fixture(scope="session")
def grove_implementation(request: pytest.FixtureRequest) -> str:
    """Return the implementation that runs on the cluster: the value of `--grove-implementation`, or the reference.
    Override this fixture to choose another implementation; an empty string starts none."""
    return request.config.getoption("grove_implementation") or DEFAULT_IMPLEMENTATION


@pytest.fixture(scope="session")
def grove_cluster(request: pytest.FixtureRequest, grove_implementation: str) -> Iterator[GroveCluster]:
    """Yield a fake cluster with an implementation of the Grove API, for all tests of the session. With pytest-xdist,
    each worker has its own cluster. The cluster is deleted when the session ends, for whatever reason."""
    try:
        precedence.import_packages()
    except ImportError as error:
        raise pytest.fail.Exception(f"grove-conformance: {error}", pytrace=False) from None
    from conformance.errors import HarnessError, UsageError
    from conformance.fixture_plugin import FixturePlugin
    from conformance.grove_cluster import GroveCluster

    option, plugins = request.config.getoption, request.config.pluginmanager
    settings = option("grove_set") or ()
    try:
        cluster = GroveCluster.up(grove_implementation, settings)
    except (UsageError, HarnessError) as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
    with cluster:
        folder, keep = Path(option("grove_report_dir")), option("grove_keep_cluster")
        plugin = FixturePlugin(cluster, folder, keep, grove_implementation)
        plugins.register(plugin)
        yield cluster
        plugins.unregister(plugin)


@pytest.fixture
def grove_namespace(grove_cluster: GroveCluster) -> Iterator[str]:
    """Yield the name of a namespace for this test alone. The namespace and its contents are deleted afterwards."""
    with grove_cluster.namespace() as name:
        yield name
