"""Downloads against a loopback server that plays the release sites."""

from __future__ import annotations

import hashlib
import io
import json
import socket
import tarfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from conformance.cluster import pins
from conformance.cluster.download import PATIENCE, ChecksumMismatch, Sites, Unavailable, fetch
from conformance.cluster.pins import Program

PLATFORM = "linux-amd64"
BINARY = b"#!/bin/sh\necho a program\n"
SUM = hashlib.sha256(BINARY).hexdigest()


class ReleaseSite:
    """A server on loopback with the files of `files` (path → bytes)."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.asked.append(self.path)
                body = site.files.get(self.path)
                self.send_response(404 if body is None else 200)
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body or b"")

            do_HEAD = do_GET  # noqa: N815 - the name is the library's

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[ReleaseSite]:
    site = ReleaseSite()
    use(site.url, monkeypatch)
    yield site
    site.close()


def use(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    for group in ("KUBERNETES", "KWOK", "ETCD"):
        monkeypatch.setenv(f"GROVE_CONFORMANCE_RELEASES_{group}", url)
    monkeypatch.setenv("GROVE_CONFORMANCE_RELEASES_KWOK_DIGESTS", f"{url}/release.json")


def program(name: str) -> Program:
    return next(program for program in pins.load(PLATFORM) if program.name == name)


def path_of(name: str) -> str:
    return "/" + program(name).file


def test_a_checksum_file_beside_the_program_is_enough(site: ReleaseSite, tmp_path: Path) -> None:
    site.files = {path_of("kubectl"): BINARY, path_of("kubectl") + ".sha256": SUM.encode()}
    source = fetch(program("kubectl"), tmp_path / "kubectl", Sites())
    assert source == site.url + path_of("kubectl")
    assert (tmp_path / "kubectl").read_bytes() == BINARY
    assert [entry.name for entry in tmp_path.iterdir()] == ["kubectl"]


def test_the_digest_of_the_release_api_is_used(site: ReleaseSite, tmp_path: Path) -> None:
    release = {
        "assets": [{"name": "other", "digest": None}, {"name": "kwokctl-linux-amd64", "digest": f"sha256:{SUM}"}]
    }
    site.files = {path_of("kwokctl"): BINARY, "/release.json": json.dumps(release).encode()}
    fetch(program("kwokctl"), tmp_path / "kwokctl", Sites())
    assert (tmp_path / "kwokctl").read_bytes() == BINARY


def test_the_program_is_taken_out_of_a_verified_archive(site: ReleaseSite, tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        member = tarfile.TarInfo(program("etcd").member)
        member.size = len(BINARY)
        tar.addfile(member, io.BytesIO(BINARY))
    archive = buffer.getvalue()
    folder, _, name = path_of("etcd").rpartition("/")
    listing = f"{'0' * 64}  other.tar.gz\n{hashlib.sha256(archive).hexdigest()}  {name}\n"
    site.files = {path_of("etcd"): archive, f"{folder}/SHA256SUMS": listing.encode()}
    fetch(program("etcd"), tmp_path / "etcd", Sites())
    assert (tmp_path / "etcd").read_bytes() == BINARY


def test_a_wrong_checksum_is_refused_with_both_sums_and_the_file(site: ReleaseSite, tmp_path: Path) -> None:
    site.files = {path_of("kubectl"): BINARY + b"changed", path_of("kubectl") + ".sha256": SUM.encode()}
    with pytest.raises(ChecksumMismatch) as caught:
        fetch(program("kubectl"), tmp_path / "kubectl", Sites())
    message = str(caught.value)
    assert SUM in message and hashlib.sha256(BINARY + b"changed").hexdigest() in message
    assert path_of("kubectl") in message and "\n" not in message
    assert not list(tmp_path.iterdir())


def test_a_pinned_checksum_wins_over_the_published_one(
    site: ReleaseSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.files = {path_of("kubectl"): BINARY, path_of("kubectl") + ".sha256": SUM.encode()}
    plain = program("kubectl")
    pinned = Program(plain.name, plain.group, plain.file, plain.member, plain.package, sha256="1" * 64)
    with pytest.raises(ChecksumMismatch, match="1" * 64):
        fetch(pinned, tmp_path / "kubectl", Sites())


@pytest.mark.parametrize("published", [None, b"", b"not a checksum"])
def test_without_a_checksum_nothing_is_downloaded(site: ReleaseSite, tmp_path: Path, published: bytes | None) -> None:
    site.files = {path_of("kubectl"): BINARY}
    if published is not None:
        site.files[path_of("kubectl") + ".sha256"] = published
    with pytest.raises(Unavailable):
        fetch(program("kubectl"), tmp_path / "kubectl", Sites())
    assert path_of("kubectl") not in site.asked


def test_a_file_that_is_not_there_is_unavailable_and_the_site_stays_good(site: ReleaseSite, tmp_path: Path) -> None:
    site.files = {path_of("kubectl") + ".sha256": SUM.encode()}
    sites = Sites()
    with pytest.raises(Unavailable, match="404"):
        fetch(program("kubectl"), tmp_path / "kubectl", sites)
    sites.require(site.url)


def test_a_server_that_never_answers_costs_one_patience_and_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"http://127.0.0.1:{mute.getsockname()[1]}"
        use(url, monkeypatch)
        sites = Sites()
        begin = time.monotonic()
        for name in ("kubectl", "kwok", "etcd"):
            sites.probe([program(name).url])
            with pytest.raises(Unavailable):
                fetch(program(name), tmp_path / name, sites)
        assert time.monotonic() - begin < PATIENCE + 1


def test_a_server_that_is_not_there_is_known_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    use(f"http://127.0.0.1:{port}", monkeypatch)
    begin = time.monotonic()
    with pytest.raises(Unavailable, match="refused"):
        fetch(program("kubectl"), tmp_path / "kubectl", Sites())
    assert time.monotonic() - begin < 1
