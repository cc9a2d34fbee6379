"""The settings of one run. They are written to `run.json` in the run's folder; workers receive them from the process
that starts them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from conformance.cluster.features import NO_FEATURES, FeatureRequest
from conformance.cluster.state import Owner
from conformance.suite.registry import requirement
from conformance.suite.registry.declarations import TESTS


class RunSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a run. `directory` is the run's own folder. `roles` and `features` are the implementation's, and
    determine the selection."""

    run: str
    directory: str
    implementation: str
    parameters: dict[str, str] = {}
    earlier: str = ""
    """The implementation from which the judged one takes over, if it is not an earlier version of itself."""
    earlier_parameters: dict[str, str] = {}
    roles: tuple[str, ...] = ("operator", "gang-scheduler")
    features: tuple[str, ...] = ()
    release: str = ""
    """The release of Grove whose requirements are judged; empty for the requirements of all releases."""
    profiles: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    """Requirements that are not judged."""
    only: tuple[str, ...] = ()
    """Tests by pytest's node ids; empty for all tests that judge a selected requirement."""
    with_invariants: bool = False
    """Whether the invariants of selected profiles are judged in the scenes of all profiles."""
    shard: str = ""
    """The shard of the selected tests that is run, as i/n; empty for all tests."""
    part: tuple[str, ...] = ()
    """The tests of the shard; empty if the run is not a shard."""
    pytest_options: tuple[str, ...] = ()
    """The user's options for pytest itself."""
    workers: int = 1
    time_scale: float = 1.0
    fail_fast: bool = False
    repeat: int = 1
    until_fail: bool = False
    """Whether the run ends with the first test that fails, unless that is expected."""
    baseline: str = ""
    """The file of expected failures in addition to the descriptor's, if there is one."""
    expected: dict[str, str] = {}
    """Requirements that are expected to fail, with the reason."""
    keep_cluster: bool = False
    """Whether a worker keeps its cluster for inspection once a test has failed."""
    keep_passed: bool = False
    """Whether evidence is also kept for tests that passed."""
    bundle_limit: int = 200
    """Total size of failure bundles in MiB beyond which later bundles omit large files."""
    verbose: bool = False
    as_json: bool = False
    seed: int = 0
    hosted: bool = False
    """Whether the run is part of the user's own pytest session."""
    cluster: Literal["own", "existing"] = "own"
    kubeconfig: str = ""
    shared: bool = False
    """Whether several workers share the existing cluster."""
    kubeconfig_options: tuple[str, ...] = ()
    """The command line options that select the existing cluster."""
    unplayed: dict[str, str] = {}
    """Abilities that an existing cluster lacks (`abilities.Ability`), each with what was seen instead."""
    install_stages: bool = False
    """Whether our Stages are installed for the KWOK of an existing cluster during the run."""
    simulator: Owner | None = None
    """The process that the run has started alongside the KWOK of an existing cluster with our Stages."""
    kubernetes: str = ""
    """The Kubernetes version of the run's own clusters; empty for an existing cluster."""
    cluster_features: FeatureRequest = NO_FEATURES
    """The features of clusters in addition to the defaults; for an existing cluster, the features that must be
    proved."""
    policies: tuple[str, ...] = ()
    """The policies that the run's own clusters enforce: names, and absolute paths of files and folders."""
    reproduce: str = ""
    tests: str = str(TESTS)
    registry: str = str(requirement.FOLDER)

    @property
    def folder(self) -> Path:
        """Return the run's own folder."""
        return Path(self.directory)

    @property
    def ledger(self) -> Path:
        """Return the folder of the ledger."""
        return self.folder / "ledger"

    @property
    def log(self) -> Path:
        """Return the file of pytest's own output and of tracebacks."""
        return self.folder / "pytest.log"

    def save(self) -> Path:
        """Write the settings to the run's folder and return the file."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # the folder contains logs of an unknown program
        path = self.folder / "run.json"
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=2))
        return path


def decoded(content: bytes) -> RunSettings:
    """Return settings from their JSON."""
    return msgspec.json.decode(content, type=RunSettings)
