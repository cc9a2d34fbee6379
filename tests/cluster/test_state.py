"""Tests of the records of clusters and the claims of ports that are stored on disk."""

from __future__ import annotations

import errno
import os
import socket
import stat
import sys
from pathlib import Path

import psutil
import pytest

from conformance.cluster.ports import BLOCK_SIZE, END_PORT, FIRST_PORT, Port, Ports, is_free
from conformance.cluster.state import RECORD_FILE, ClusterRecord, Owner, StateRoot, known_roots, state_root
from conformance.errors import UsageError
from tests.cluster.waiting import Spawn

CLAIM_SOURCE = """
import pathlib, sys
from conformance.cluster.ports import Ports
folder, clusters = map(pathlib.Path, sys.argv[1:3])
first, count = map(int, sys.argv[3:])
for number in range(first, first + count):
    (clusters / str(number)).mkdir()
    print(Ports(folder).claim(clusters / str(number)))
"""


def record(name: str = "one", owner: bool = True) -> ClusterRecord:
    this_process = Owner.this_process()
    return ClusterRecord(name=name, uid="abc", creator=this_process, owner=this_process if owner else None)


def test_a_record_survives_writing_and_reading(state: StateRoot) -> None:
    state.add(record())
    updated_record = state.update(record(), phase="ready", ports=20016, versions={"etcd": "3"})
    assert state.read("one") == updated_record
    assert updated_record.owner is not None and updated_record.owner.is_alive()


def test_only_the_user_can_read_the_state(state: StateRoot) -> None:
    folder = state.add(record())
    for path in (state.root, state.clusters, folder):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_a_name_cannot_be_used_twice(state: StateRoot) -> None:
    state.add(record())
    with pytest.raises(UsageError, match="cluster down one"):
        state.add(record())


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a_b", "a/b", "..", "a" * 41])
def test_an_invalid_name_is_refused(state: StateRoot, name: str) -> None:
    with pytest.raises(UsageError):
        state.add(record(name))


@pytest.mark.parametrize("name", ["a/../one", "../clusters/one", "./one", "/one", "one/"])
def test_a_path_is_not_a_name(state: StateRoot, name: str) -> None:
    state.add(record())
    assert state.read("one") is not None and state.read(name) is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "1", "[" * 100_000, '{"name": "one"}', '{"owner": null, "creator": {"pid": "x"}}']
)
def test_an_unreadable_record_is_ignored(state: StateRoot, text: str) -> None:
    folder = state.add(record())
    (folder / RECORD_FILE).write_text(text)
    assert state.read("one") is None and state.names() == ["one"]


def test_a_state_root_that_cannot_be_written_is_a_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    for root in (tmp_path / "file", tmp_path / "file" / "state", Path("/proc/nowhere")):
        with pytest.raises(UsageError, match=f"state folder {root}: cannot be written: .*GROVE_CONFORMANCE_STATE"):
            StateRoot(root).add(record())

    state = StateRoot(tmp_path / "state")
    new_record = record()
    state.add(new_record)
    monkeypatch.setattr(Path, "write_text", fail_for_lack_of_space)
    with pytest.raises(UsageError, match="cannot be written: No space left on device"):
        state.update(new_record, phase="ready")
    assert state.read("one") == new_record


def test_a_cluster_can_be_removed_on_a_full_disk(state: StateRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    state.add(record())
    monkeypatch.setattr(Path, "write_text", fail_for_lack_of_space)
    with state.lock():
        state.remove("one")
    assert not state.names()


def test_a_removed_cluster_leaves_nothing_and_can_be_removed_again(state: StateRoot) -> None:
    state.add(record())
    state.remove("one")
    state.remove("one")
    assert not state.names() and not state.leftovers()


def test_an_owner_with_another_start_time_is_dead() -> None:
    assert not Owner(os.getpid(), 1.0).is_alive()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere psutil alone knows when a process began")
def test_a_process_counts_as_alive_after_the_clock_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    this_process, boot_time = Owner.this_process(), psutil.boot_time()
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: boot_time + 60)
    assert this_process.is_alive()


def test_an_owner_in_a_record_of_an_earlier_version_is_recognized() -> None:
    start_time = psutil.Process().create_time()
    assert Owner(os.getpid(), start_time).is_alive()
    assert not Owner(os.getpid(), start_time - 1).is_alive()


def test_two_checkouts_have_two_roots(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GROVE_CONFORMANCE_STATE", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("conformance.cluster.state.PROJECT", tmp_path / "a")
    first_root = state_root()
    monkeypatch.setattr("conformance.cluster.state.PROJECT", tmp_path / "b")
    assert first_root != state_root() and first_root.parent == tmp_path / "grove-conformance"


def test_claimed_blocks_are_below_the_ports_of_outgoing_connections(tmp_path: Path) -> None:
    ports = Ports(tmp_path / "ports")
    first_block, second_block = ports.claim(tmp_path), ports.claim(tmp_path)
    assert (
        FIRST_PORT <= first_block < second_block <= END_PORT - BLOCK_SIZE and second_block - first_block >= BLOCK_SIZE
    )
    assert Port.FIRST_DRIVER_PORT + 8 == BLOCK_SIZE


def test_a_block_with_a_port_in_use_is_skipped(tmp_path: Path) -> None:
    ports = Ports(tmp_path / "ports")
    first_block = ports.claim(tmp_path)
    ports.release(tmp_path)
    with socket.create_server(("127.0.0.1", first_block + 7)):
        assert not is_free(first_block + 7)
        assert ports.claim(tmp_path) != first_block


def test_a_claim_of_a_deleted_folder_is_void(tmp_path: Path) -> None:
    ports = Ports(tmp_path / "ports")
    folder = tmp_path / "cluster"
    folder.mkdir()
    block = ports.claim(folder)
    folder.rmdir()
    assert ports.claim(tmp_path) == block
    assert ports.claims() == {block: tmp_path}


@pytest.mark.parametrize("text", [b"", b"relative", b"/nowhere/at/all", b"/\xff\xfe", b"a\0b"])
def test_a_claim_that_does_not_name_a_folder_is_void(
    tmp_path: Path, text: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    ports = Ports()
    block = ports.claim(tmp_path)
    (tmp_path / "grove-conformance" / "ports" / str(block)).write_bytes(text)
    assert known_roots() == []
    assert block in ports.claims()
    assert ports.claim(tmp_path) == block


@pytest.mark.timeout(20)
def test_a_claim_that_is_not_a_regular_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "ports").mkdir()
    os.mkfifo(claim := tmp_path / "ports" / "20016")
    with pytest.raises(UsageError, match=rf"^{claim}: cannot be read: not a regular file — delete it$"):
        Ports(tmp_path / "ports").claim(tmp_path)


def test_a_full_disk_leaves_no_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ports = Ports(tmp_path / "ports")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", fail_for_lack_of_space)
        with pytest.raises(UsageError, match=r"claims of ports .*: cannot be written: No space left on device"):
            ports.claim(tmp_path)
    assert ports.claims() == {}


def fail_for_lack_of_space(path: Path, text: str, **arguments: str) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def test_processes_that_claim_concurrently_never_share_a_block(tmp_path: Path, spawn: Spawn) -> None:
    workers = [spawn(CLAIM_SOURCE, tmp_path / "ports", tmp_path, 10 * number, 5) for number in range(3)]
    outputs = [worker.communicate(timeout=60)[0].split() for worker in workers]
    blocks = [block for output in outputs for block in output]
    assert len(blocks) == len(set(blocks)) == 15, outputs
