"""The settings of one run. They are written to `run.json` in the run's folder; workers get them from the process that
starts them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from conformance.cluster.features import NOTHING, Requested
from conformance.cluster.state import Owner
from conformance.suite.registry import requirement
from conformance.suite.registry.declarations import TESTS


class RunSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings. `directory` is the run's own folder. `roles` and `features` are those of the implementation, for
    selection."""

    run: str
    directory: str
    implementation: str
    parameters: dict[str, str] = {}
    earlier: str = ""
    """The implementation that it takes over from, if that is not an earlier version of itself."""
    earlier_parameters: dict[str, str] = {}
    roles: tuple[str, ...] = ("operator", "gang-scheduler")
    features: tuple[str, ...] = ()
    release: str = ""
    """The release of Grove whose requirements are judged; empty for those of all releases."""
    profiles: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    """Requirements that are not judged."""
    only: tuple[str, ...] = ()
    """Tests by pytest's node ids; empty for all that judge something of the selection."""
    with_invariants: bool = False
    """Whether the invariants of selected profiles are judged in the scenes of all profiles."""
    shard: str = ""
    """The part of the selected tests that is run, as i/n; empty for all."""
    part: tuple[str, ...] = ()
    """The tests of this shard; empty without shards."""
    pytest_options: tuple[str, ...] = ()
    """Options of the user for pytest itself."""
    workers: int = 1
    time_scale: float = 1.0
    fail_fast: bool = False
    repeat: int = 1
    until_fail: bool = False
    """Whether the run ends with the first test that fails, unless that is expected."""
    baseline: str = ""
    """The file of expected failures beside the descriptor, if there is one."""
    expected: dict[str, str] = {}
    """Requirements that are expected to fail, with the reason."""
    keep_cluster: bool = False
    """Whether a worker leaves its cluster as it is once a test has failed, for somebody to look at."""
    keep_passed: bool = False
    """Whether the evidence of scenes is kept whose tests all passed."""
    bundle_limit: int = 200
    """Mebibytes of failure bundles after which further ones leave out what is large."""
    verbose: bool = False
    as_json: bool = False
    seed: int = 0
    hosted: bool = False
    """Whether the run is part of a session of the user's own pytest."""
    cluster: Literal["own", "existing"] = "own"
    kubeconfig: str = ""
    shared: bool = False
    """Whether several workers share the existing cluster."""
    kubeconfig_options: tuple[str, ...] = ()
    """The options of the command line that choose it."""
    unplayed: dict[str, str] = {}
    """Abilities that an existing cluster lacks (`abilities.Ability`), each with what was seen instead."""
    install_stages: bool = False
    """Whether the KWOK of an existing cluster gets our Stages for the time of the run."""
    simulator: Owner | None = None
    """The process of the run beside the KWOK of an existing cluster that has our Stages."""
    kubernetes: str = ""
    """The version of Kubernetes of the run's own clusters; empty on an existing one."""
    cluster_features: Requested = NOTHING
    """The features of clusters beside the defaults; of an existing cluster, those that it is proved to have."""
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
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # it contains logs of a program that we do not know
        path = self.folder / "run.json"
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=2))
        return path


def decoded(content: bytes) -> RunSettings:
    """Return settings from their JSON."""
    return msgspec.json.decode(content, type=RunSettings)
