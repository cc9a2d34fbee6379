"""Tests that a full disk is reported in one line, both before a cluster starts and if it makes the start fail."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from conformance.cluster import controlplane
from conformance.cluster.assets import Assets
from conformance.cluster.controlplane import Cluster
from conformance.cluster.state import CLUSTER_BYTES, StateRoot
from conformance.errors import HarnessError, UsageError


@pytest.fixture
def disk_space(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list with the number of free bytes that the disk reports, which tests change. The cluster's programs do not
    exist."""
    free_bytes = [CLUSTER_BYTES]
    missing_program = Path("/nonexistent")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(1 << 40, 0, free_bytes[0]))
    monkeypatch.setattr(controlplane, "resolve_all", lambda *_: Assets(*[missing_program] * 7))
    return free_bytes


def test_a_full_disk_is_noticed_before_the_start(state: StateRoot, disk_space: list[int]) -> None:
    disk_space[0] = CLUSTER_BYTES - 1
    with pytest.raises(UsageError, match=r"state folder .*: no space: 255 MiB are free, 256 MiB are needed"):
        Cluster.up("full", state=state)
    assert not state.names()


@pytest.mark.parametrize(
    ("free_bytes", "error"),
    [(controlplane.MIN_FREE_BYTES - 1, UsageError), (controlplane.MIN_FREE_BYTES, HarnessError)],
)
def test_a_start_that_fails_because_of_a_full_disk_says_so(
    state: StateRoot, disk_space: list[int], monkeypatch: pytest.MonkeyPatch, free_bytes: int, error: type[Exception]
) -> None:
    def fail_start(*arguments: object) -> None:
        disk_space[0] = free_bytes
        raise HarnessError("kwokctl create cluster failed: goroutine 1 [running]")

    monkeypatch.setattr(Cluster, "_start", fail_start)
    with pytest.raises(error, match="no space" if error is UsageError else "goroutine"):
        Cluster.up("full", state=state)
    assert not state.names()
