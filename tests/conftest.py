"""Settings for all tests: generated examples, the order of tests, and the cluster that the tests of a module share.

Generated examples are the same in every run, so that CI fails only if a change causes a failure.
`HYPOTHESIS_PROFILE=search pytest …` searches for new examples.
"""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from conformance.cluster.controlplane import Cluster
    from conformance.suite.scenes.api import Api

# The time for drawing and running an example is not limited, because it depends on the machine.
UNTIMED_SETTINGS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", UNTIMED_SETTINGS, derandomize=True)
settings.register_profile("search", UNTIMED_SETTINGS, derandomize=False)
settings.register_profile("thorough", UNTIMED_SETTINGS, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# A shell makes its background jobs ignore Ctrl-C, and all processes that the tests start would inherit this.
signal.signal(signal.SIGINT, signal.default_int_handler)

WORKER_MEMORY_BYTES = 3 * 2**30
"""Maximum memory in bytes that a worker and its clusters need."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return the number of workers for `-n auto`: two per core, because tests spend half of their time waiting, but at
    most as many as fit into memory. With more workers, API servers respond too slowly."""
    cores, memory = os.cpu_count() or 1, psutil.virtual_memory().total
    return max(1, min(2 * cores, memory // WORKER_MEMORY_BYTES))


THOROUGH = os.environ.get("THOROUGH", "") not in ("", "0")
"""Whether cases with the mark `thorough` also run: slow cases, and cases that repeat another one with other values."""
TIMEOUT_SECONDS = 300
"""Maximum duration of a test in seconds, unless its file sets another limit. pyproject.toml has the same value."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect thorough cases unless they are requested, and sort files that start a control plane to the front, by
    descending time limits.

    `make test` distributes whole files to its workers in this order. Therefore, tests that share a cluster run on one
    worker, and no worker has to run a long file after the other workers have finished.
    """
    if not THOROUGH:
        thorough_items = [item for item in items if item.get_closest_marker("thorough")]
        config.hook.pytest_deselected(items=thorough_items)
        items[:] = [item for item in items if not item.get_closest_marker("thorough")]
    limits: Counter[Path] = Counter()
    for item in items:
        if item.get_closest_marker("cluster"):
            limit = item.get_closest_marker("timeout")
            limits[item.path] += limit.args[0] if limit else TIMEOUT_SECONDS
    items.sort(key=lambda item: -limits[item.path])


def pytest_collection_finish() -> None:
    """Exclude the collected objects from garbage collection, because they live as long as the session."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module")
def bare_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with Grove's CRDs, but without an operator or a gang scheduler; each test runs its own. The cluster has
    no webhooks, because an operator in this process would have to serve them."""
    from conformance.cluster.controlplane import Cluster
    from conformance.cluster.settings import ClusterSettings
    from conformance.implementation import loading
    from conformance.implementation.driver import ClusterFacts, Driver

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GROVE_CONFORMANCE_STATE", str(tmp_path_factory.mktemp("state")))
        cluster = Cluster.up("bare", settings=ClusterSettings(audit=False), owner=True)
        try:
            Driver(
                loading.load("blank"),
                ClusterFacts(cluster.kubeconfig, cluster.directory, cluster.marker(), cluster.port),
            ).install()
            cluster.learn_new_kinds()
            yield cluster
        finally:
            cluster.down()


@pytest.fixture
def api(cluster: Cluster) -> Iterator[Api]:
    """A client of the cluster that the module's fixture `cluster` starts."""
    from conformance.suite.scenes.api import Api, Loop

    loop = Loop()
    client = Api(loop, cluster.kubeconfig, "test")
    yield client
    client.close()
    loop.close()
