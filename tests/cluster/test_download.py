"""Downloads against a loopback server that plays the release sites."""

from __future__ import annotations

import hashlib
import io
import re
import socket
import tarfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from conformance.cluster import download, pins
from conformance.cluster.download import PATIENCE, ChecksumMismatch, Sites, Unavailable, fetch
from conformance.cluster.pins import Program

PLATFORM = "linux-amd64"
BINARY = b"#!/bin/sh\necho a program\n"
SUM = hashlib.sha256(BINARY).hexdigest()


class ReleaseSite:
    """A server on loopback with the files of `files` (path → bytes); its first answers are `faults`."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.faults: list[str] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.asked.append(self.path)
                body = site.files.get(self.path)
                fault = site.faults.pop(0) if site.faults else ""
                self.send_response(404 if body is None else 503 if fault == "503" else 200)
                self.send_header("Content-Length", str(len(body or b"") + (fault == "cut")))
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


def program(name: str) -> Program:
    return next(program for program in pins.load(PLATFORM) if program.name == name)


def path_of(name: str) -> str:
    return "/" + program(name).file


def pinned(name: str, content: bytes = BINARY) -> Program:
    return replace(program(name), sha256=hashlib.sha256(content).hexdigest())


def test_what_is_pinned_is_downloaded_and_verified(site: ReleaseSite, tmp_path: Path) -> None:
    site.files = {path_of("kubectl"): BINARY}
    source = fetch(pinned("kubectl"), tmp_path / "kubectl", Sites())
    assert source == site.url + path_of("kubectl")
    assert (tmp_path / "kubectl").read_bytes() == BINARY
    assert [entry.name for entry in tmp_path.iterdir()] == ["kubectl"]
    assert site.asked == [path_of("kubectl")]


def test_what_is_not_pinned_is_not_even_asked_for(site: ReleaseSite, tmp_path: Path) -> None:
    site.files = {path_of("kubectl"): BINARY, path_of("kubectl") + ".sha256": SUM.encode()}
    with pytest.raises(Unavailable, match="no digest of an official file is pinned"):
        fetch(replace(program("kubectl"), sha256=""), tmp_path / "kubectl", Sites())
    assert site.asked == []


@pytest.mark.parametrize("platform", ["linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64"])
def test_every_pin_is_a_digest_and_no_two_files_share_one(platform: str) -> None:
    digests = [each.sha256 for each in pins.load(platform) if each.sha256]
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in digests)
    assert len(set(digests)) == len(digests)


def test_what_passes_is_tried_again(site: ReleaseSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "PAUSE", 0.01)
    site.files = {path_of("kubectl"): BINARY}
    site.faults = ["503", "cut"]
    fetch(pinned("kubectl"), tmp_path / "kubectl", Sites())
    assert (tmp_path / "kubectl").read_bytes() == BINARY and len(site.asked) == 3


def test_what_does_not_pass_is_given_up_for_good(
    site: ReleaseSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "PAUSE", 0.01)
    site.files = {path_of("kubectl"): BINARY}
    site.faults = ["cut"] * 9
    sites = Sites()
    with pytest.raises(Unavailable, match=r"cut off after|IncompleteRead"):
        fetch(pinned("kubectl"), tmp_path / "kubectl", sites)
    assert len(site.asked) == download.ATTEMPTS
    with pytest.raises(Unavailable):
        fetch(pinned("kubectl"), tmp_path / "kubectl", sites)
    assert len(site.asked) == download.ATTEMPTS


def test_the_program_is_taken_out_of_a_verified_archive(site: ReleaseSite, tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        member = tarfile.TarInfo(program("etcd").member)
        member.size = len(BINARY)
        tar.addfile(member, io.BytesIO(BINARY))
    archive = buffer.getvalue()
    site.files = {path_of("etcd"): archive}
    fetch(pinned("etcd", archive), tmp_path / "etcd", Sites())
    assert (tmp_path / "etcd").read_bytes() == BINARY


def test_a_wrong_checksum_is_refused_with_both_sums_and_the_file(site: ReleaseSite, tmp_path: Path) -> None:
    site.files = {path_of("kubectl"): BINARY + b"changed"}
    with pytest.raises(ChecksumMismatch) as caught:
        fetch(pinned("kubectl"), tmp_path / "kubectl", Sites())
    message = str(caught.value)
    assert SUM in message and hashlib.sha256(BINARY + b"changed").hexdigest() in message
    assert path_of("kubectl") in message and "\n" not in message
    assert not list(tmp_path.iterdir()) and len(site.asked) == 1


def test_a_file_that_is_not_there_is_unavailable_and_the_site_stays_good(site: ReleaseSite, tmp_path: Path) -> None:
    sites = Sites()
    with pytest.raises(Unavailable, match="404"):
        fetch(pinned("kubectl"), tmp_path / "kubectl", sites)
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
                fetch(pinned(name), tmp_path / name, sites)
        assert time.monotonic() - begin < PATIENCE + 1


def test_a_server_that_is_not_there_is_known_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    use(f"http://127.0.0.1:{port}", monkeypatch)
    begin = time.monotonic()
    with pytest.raises(Unavailable, match="refused"):
        fetch(pinned("kubectl"), tmp_path / "kubectl", Sites())
    assert time.monotonic() - begin < 1
