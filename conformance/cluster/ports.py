"""Ports on loopback, which are claimed in blocks, so that clusters that start at the same time never use the same port.

Claims are files in a folder that all of the user's checkouts share. A claim names the folder of its cluster, and is
void once that folder is gone. The range is below the ports that the system uses for outgoing connections.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path

from conformance import disk
from conformance.cluster import locks
from conformance.cluster.progress import ProgressReporter, report_notice
from conformance.cluster.state import claimed_folder, user_state
from conformance.errors import HarnessError, UsageError

FIRST_PORT, END_PORT, BLOCK_SIZE = 20000, 32000, 16


class Port(IntEnum):
    """Positions in the first block of a cluster. `FIRST_DRIVER_PORT` and the positions after it are for the drivers of
    implementations."""

    APISERVER = 0
    ETCD = 1
    ETCD_PEER = 2
    CONTROLLER_MANAGER = 3
    SCHEDULER = 4
    KWOK = 5
    METRICS = 6
    GPU_METRICS = 7
    FIRST_DRIVER_PORT = 8


DRIVER_PORT_COUNT = BLOCK_SIZE - Port.FIRST_DRIVER_PORT
"""The number of ports in the first block that are for drivers. Additional ports come from blocks that drivers claim."""


class Ports:
    """The claims in `folder`."""

    def __init__(self, folder: Path | None = None, report: ProgressReporter = report_notice) -> None:
        self._folder, self._report = folder or user_state() / "ports", report

    def claim(self, directory: Path) -> int:
        """Return the first port of a free block. The block belongs to `directory` until it is released or the folder is
        gone."""
        with self._lock():
            claimed_blocks = self._valid_claims()
            for first_port in range(FIRST_PORT, END_PORT - BLOCK_SIZE + 1, BLOCK_SIZE):
                if first_port not in claimed_blocks and all(
                    is_free(first_port + offset) for offset in range(BLOCK_SIZE)
                ):
                    disk.write(self._folder / str(first_port), str(directory))
                    return first_port
        raise HarnessError(
            f"no {BLOCK_SIZE} free ports in a row between {FIRST_PORT} and {END_PORT - 1} on 127.0.0.1",
            hint="run: grove-conformance cluster prune",
        )

    def release(self, directory: Path) -> list[int]:
        """Release the claims of `directory`. Return the first ports of the released blocks."""
        with self._lock():
            blocks = [first_port for first_port, owner in self._claims().items() if owner == directory]
            for first_port in blocks:
                (self._folder / str(first_port)).unlink()
        return blocks

    def claims(self) -> dict[int, Path]:
        """Map the first port of each claimed block to the folder of the cluster that has claimed it."""
        with self._lock():
            return self._claims()

    @contextmanager
    def _lock(self) -> Iterator[None]:
        location, hint = (
            f"claims of ports {self._folder}",
            "make room or make it writable, or move it with XDG_STATE_HOME",
        )
        disk.make_folder(self._folder, location=location, hint=hint, mode=0o700)
        with disk.usage_errors(location, hint), locks.hold(self._folder / "lock", self._report):
            yield

    def _claims(self) -> dict[int, Path]:
        claims = {}
        for file in self._folder.iterdir():
            if file.name.isdecimal():
                try:
                    claims[int(file.name)] = claimed_folder(file)
                except OSError as error:
                    raise UsageError(f"cannot be read: {error.strerror}", where=str(file), hint="delete it") from error
        return claims

    def _valid_claims(self) -> dict[int, Path]:
        claims = self._claims()
        for first_port, directory in list(claims.items()):
            if not directory.is_absolute() or not directory.is_dir():  # a full disk may have left empty claims
                (self._folder / str(first_port)).unlink()
                del claims[first_port]
        return claims


class DriverPorts:
    """The ports of a cluster for drivers of implementations: the ports of its first block, then the ports of additional
    blocks, which are claimed when they are needed, and released together with the first block."""

    def __init__(self, directory: Path) -> None:
        self._directory, self._additional_blocks = directory, list[int]()

    def port(self, first_port: int, index: int) -> int:
        """Return the `index`-th port (from 0). `first_port` is the first port of the first block. Raises HarnessError
        if none is left."""
        if index < DRIVER_PORT_COUNT:
            return first_port + Port.FIRST_DRIVER_PORT + index
        block, offset = divmod(index - DRIVER_PORT_COUNT, BLOCK_SIZE)
        while len(self._additional_blocks) <= block:
            self._additional_blocks.append(Ports().claim(self._directory))
        return self._additional_blocks[block] + offset


def is_free(port: int) -> bool:
    """Return whether a server could listen on this port of 127.0.0.1 now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
