"""Tests that drivers use the ports in a cluster's first block, and claim more blocks when they need them."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.cluster.ports import BLOCK_SIZE, DRIVER_PORT_COUNT, DriverPorts, Port, Ports


def test_more_blocks_are_claimed_when_they_are_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    cluster = tmp_path / "cluster"
    cluster.mkdir()
    first_block = Ports().claim(cluster)
    ports = DriverPorts(cluster)
    assert [ports.port(first_block, index) for index in (0, DRIVER_PORT_COUNT - 1)] == [
        first_block + Port.FIRST_DRIVER_PORT,
        first_block + BLOCK_SIZE - 1,
    ]
    assert list(Ports().claims()) == [first_block]
    driver_ports = [ports.port(first_block, index) for index in range(DRIVER_PORT_COUNT + BLOCK_SIZE + 1)]
    assert len(set(driver_ports)) == len(driver_ports)
    assert driver_ports == [ports.port(first_block, index) for index in range(DRIVER_PORT_COUNT + BLOCK_SIZE + 1)]
    assert len(Ports().claims()) == 3 and set(Ports().claims().values()) == {cluster}
    assert len(Ports().release(cluster)) == 3
