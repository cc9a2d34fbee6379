"""Tests of downloads from a loopback server that replaces the release sites."""

from __future__ import annotations

import hashlib
import re
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.cluster import pins, progress, transfer
from conformance.cluster.download import fetch
from conformance.cluster.pins import Program
from conformance.cluster.progress import report_nothing
from conformance.cluster.sites import Sites, Unavailable
from conformance.cluster.transfer import ChecksumMismatch
from tests.cluster.release_sites import ReleaseSite, archive, serve_release_site, sha256, use_site

PLATFORM = "linux-amd64"
BINARY = b"#!/bin/sh\necho a program\n"
PROGRAM_PATH = "usr/local/bin/kube-apiserver"


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[ReleaseSite]:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("platform.system", lambda: "Linux")
    with serve_release_site() as site:
        use_site(site.url, monkeypatch)
        yield site


def program(name: str) -> Program:
    return next(program for program in pins.load(PLATFORM) if program.name == name)


def url_path(name: str) -> str:
    return "/" + program(name).file


def pinned_program(name: str, content: bytes = BINARY) -> Program:
    return replace(program(name), digest=sha256(content))


def download(program: Program, folder: Path, sites: Sites | None = None) -> None:
    fetch([program], folder, sites or Sites(), report_nothing)


def test_a_pinned_program_is_downloaded_and_verified(site: ReleaseSite, tmp_path: Path) -> None:
    site.files = {url_path("kubectl"): BINARY}
    download(pinned_program("kubectl"), tmp_path)
    assert (tmp_path / "kubectl").read_bytes() == BINARY
    assert [entry.name for entry in tmp_path.iterdir()] == ["kubectl"]
    assert site.requests == [url_path("kubectl")]


def test_a_program_without_a_pinned_digest_is_not_requested(site: ReleaseSite, tmp_path: Path) -> None:
    site.files = {url_path("kubectl"): BINARY, url_path("kubectl") + ".sha256": sha256(BINARY).encode()}
    with pytest.raises(Unavailable, match="no digest of an official file is pinned"):
        download(replace(program("kubectl"), digest=""), tmp_path)
    assert site.requests == []


def test_a_file_may_be_pinned_by_sha512(site: ReleaseSite, tmp_path: Path) -> None:
    site.files = {url_path("kubectl"): BINARY}
    sha512 = f"sha512:{hashlib.sha512(BINARY).hexdigest()}"
    download(replace(program("kubectl"), digest=sha512), tmp_path)
    assert (tmp_path / "kubectl").read_bytes() == BINARY
    with pytest.raises(ChecksumMismatch, match=sha512):
        download(replace(program("kubectl"), digest="sha512:" + "0" * 128), tmp_path)


@pytest.mark.parametrize("platform", ["linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64"])
def test_every_pin_is_a_digest_and_no_two_files_share_one(platform: str) -> None:
    digests = {pin.url: pin.digest for pin in pins.load(platform) if pin.digest}
    assert all(re.fullmatch("sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}", digest) for digest in digests.values())
    assert len(set(digests.values())) == len(digests)


@pytest.mark.parametrize("platform", ["linux-amd64", "linux-arm64"])
def test_on_linux_every_program_has_an_official_release(platform: str) -> None:
    assert all(pin.digest for pin in pins.load(platform))


def test_a_download_is_retried_after_transient_errors(
    site: ReleaseSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "PAUSE_SECONDS", 0.01)
    site.files = {url_path("kubectl"): BINARY}
    site.faults = ["503", "cut"]
    download(pinned_program("kubectl"), tmp_path)
    assert (tmp_path / "kubectl").read_bytes() == BINARY and len(site.requests) == 3


def test_a_download_that_keeps_failing_is_abandoned(
    site: ReleaseSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "PAUSE_SECONDS", 0.01)
    site.files = {url_path("kubectl"): BINARY}
    site.faults = ["cut"] * 9
    sites = Sites()
    for _ in range(2):
        with pytest.raises(Unavailable, match=r"cut off after|IncompleteRead"):
            download(pinned_program("kubectl"), tmp_path, sites)
        assert len(site.requests) == transfer.ATTEMPTS


def test_the_program_is_extracted_from_a_verified_archive(site: ReleaseSite, tmp_path: Path) -> None:
    packed_archive = archive({"etcd/README": b"", program("etcd").member: BINARY})
    site.files = {url_path("etcd"): packed_archive}
    download(pinned_program("etcd", packed_archive), tmp_path)
    assert (tmp_path / "etcd").read_bytes() == BINARY
    assert [entry.name for entry in tmp_path.iterdir()] == ["etcd"]


def test_an_archive_without_the_program_is_unavailable(site: ReleaseSite, tmp_path: Path) -> None:
    for packed_archive in (archive({"README": b""}), BINARY):
        site.files = {url_path("etcd"): packed_archive}
        with pytest.raises(Unavailable):
            download(pinned_program("etcd", packed_archive), tmp_path)


def test_several_programs_are_extracted_from_one_download(site: ReleaseSite, tmp_path: Path) -> None:
    packed_archive = archive({"bin/a": BINARY, "bin/b": BINARY + b"b"})
    site.files = {"/server.tar.gz": packed_archive}
    pinned_programs = [
        replace(pinned_program("kubectl", packed_archive), name=name, file="server.tar.gz", member=f"bin/{name}")
        for name in "ab"
    ]
    fetch(pinned_programs, tmp_path, Sites(), report_nothing)
    assert (tmp_path / "a").read_bytes() + b"b" == (tmp_path / "b").read_bytes() == BINARY + b"b"
    assert site.requests == ["/server.tar.gz"]


def serve_image(site: ReleaseSite, *layers: dict[str, bytes], name: str = "kube-apiserver") -> Program:
    """Serve an image with these layers, lowest first, and return a program that is pinned to the image."""
    digest = site.add_image(name, [archive(layer) for layer in layers], ("linux-arm64", "linux-amd64"))
    return replace(program("kube-apiserver"), digest=digest)


@pytest.mark.parametrize("prefix", ["", "./"])
def test_the_program_is_extracted_from_the_uppermost_layer_that_contains_it(
    site: ReleaseSite, tmp_path: Path, prefix: str
) -> None:
    pin = serve_image(
        site, {"go-runner": b"r"}, {PROGRAM_PATH: b"an older one"}, {prefix + PROGRAM_PATH: BINARY}, {"etc/passwd": b""}
    )
    download(pin, tmp_path)
    assert (tmp_path / "kube-apiserver").read_bytes() == BINARY
    assert [entry.name for entry in tmp_path.iterdir()] == ["kube-apiserver"]
    url_parts = [path.split("/")[3] for path in site.requests]
    assert url_parts == ["manifests", "manifests", "blobs", "blobs"]


def test_a_registry_may_require_an_anonymous_token_and_redirect_to_other_hosts(
    site: ReleaseSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve_release_site() as store, serve_release_site() as registry:
        use_site(f"{site.url}/mirror", monkeypatch)
        registry.protected_prefix = "/v2/"
        pin = serve_image(registry, {PROGRAM_PATH: BINARY}, name="mirror/kube-apiserver")
        site.redirects = {path: registry.url + path for path in registry.files}
        (blob,) = (path for path in registry.files if "/blobs/" in path)
        store.files["/a-blob"] = registry.files.pop(blob)
        registry.redirects[blob] = f"{store.url}/a-blob"
        registry.protected_prefix = "/v2/mirror/kube-apiserver/manifests"
        download(pin, tmp_path)
        assert (tmp_path / "kube-apiserver").read_bytes() == BINARY
        assert "Bearer anonymous" in registry.authorizations
        assert any(path == "/token?service=a+registry&scope=pull" for path in registry.requests)
        assert not any(site.authorizations) and not any(store.authorizations)


def test_a_token_is_sent_only_to_the_host_that_asked_for_it(site: ReleaseSite, tmp_path: Path) -> None:
    with serve_release_site() as store:
        pin = serve_image(site, {PROGRAM_PATH: BINARY})
        (blob,) = (path for path in site.files if "/blobs/" in path)
        store.files["/a-blob"] = site.files.pop(blob)
        site.protected_prefix, site.redirects = "/v2/kube-apiserver/manifests", {blob: f"{store.url}/a-blob"}
        download(pin, tmp_path)
        assert (tmp_path / "kube-apiserver").read_bytes() == BINARY and store.authorizations == [""]


@pytest.mark.parametrize("challenge", ["", "Basic realm=x", 'Bearer realm="file:///etc/passwd"'])
def test_a_registry_that_requires_other_credentials_is_unavailable(
    site: ReleaseSite, tmp_path: Path, challenge: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin = serve_image(site, {PROGRAM_PATH: BINARY})
    site.protected_prefix = "/v2/"
    read = transfer._token
    monkeypatch.setattr(transfer, "_token", lambda header: read(challenge))
    with pytest.raises(Unavailable, match="HTTP 401"):
        download(pin, tmp_path)


@pytest.mark.parametrize("part", ["index", "manifest", "blob"])
def test_a_part_of_an_image_with_a_wrong_checksum_is_refused(site: ReleaseSite, tmp_path: Path, part: str) -> None:
    pin = serve_image(site, {PROGRAM_PATH: BINARY})
    (path,) = (
        path
        for path, content in site.files.items()
        if part == ("blob" if "/blobs/" in path else "index" if b"architecture" in content else "manifest")
    )
    site.files[path] += b" "
    with pytest.raises(ChecksumMismatch) as caught:
        download(pin, tmp_path)
    message = str(caught.value)
    assert path in message and path.rpartition("/")[2] in message and "\n" not in message
    assert "GROVE_CONFORMANCE_RELEASES_REGISTRY" in message and "kube-apiserver is not installed" in message
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("index", [b"[]", b"no JSON", b'{"manifests": 1}', b'{"manifests": []}', b'{"manifests": [1]}'])
def test_a_pinned_file_that_is_not_an_index_is_unavailable(site: ReleaseSite, tmp_path: Path, index: bytes) -> None:
    site.files = {f"/v2/kube-apiserver/manifests/{sha256(index)}": index}
    with pytest.raises(Unavailable):
        download(replace(program("kube-apiserver"), digest=sha256(index)), tmp_path)


def test_a_wrong_checksum_is_reported_with_both_checksums_and_the_file(site: ReleaseSite, tmp_path: Path) -> None:
    site.files = {url_path("kubectl"): BINARY + b"changed"}
    with pytest.raises(ChecksumMismatch) as caught:
        download(pinned_program("kubectl"), tmp_path)
    message = str(caught.value)
    assert sha256(BINARY) in message and sha256(BINARY + b"changed") in message
    assert url_path("kubectl") in message and "\n" not in message
    assert not list(tmp_path.iterdir()) and len(site.requests) == 1


def test_a_long_download_reports_its_progress(
    site: ReleaseSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "MESSAGE_INTERVAL_SECONDS", 0.0)
    content = b"x" * 3_500_000
    site.files = {url_path("kubectl"): content}
    steps: list[str] = []
    fetch(
        [pinned_program("kubectl", content)],
        tmp_path,
        Sites(),
        lambda subject, step: steps.append(f"{subject}: {step}"),
    )
    assert steps[0] == f"kubectl: downloading {site.url}{url_path('kubectl')}"
    assert steps[-1] == "kubectl: downloaded 4 of 4 MB" and len(steps) > 3


def test_a_missing_file_is_unavailable_but_its_site_remains_available(site: ReleaseSite, tmp_path: Path) -> None:
    sites = Sites()
    with pytest.raises(Unavailable, match="404"):
        download(pinned_program("kubectl"), tmp_path, sites)
    sites.require(program("kubectl").site)


def test_a_site_is_available_although_its_front_page_redirects_to_an_unreachable_host(site: ReleaseSite) -> None:
    site.redirects["/"] = "http://127.0.0.1:9/"
    sites = Sites()
    sites.probe([program("kubectl").site])
    sites.require(program("kubectl").site)


def test_a_server_that_never_responds_is_asked_only_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent_server:
        use_site(f"http://127.0.0.1:{silent_server.getsockname()[1]}", monkeypatch)
        sites = Sites()
        for name in ("kubectl", "kwok", "etcd"):
            sites.probe([program(name).site])
            with pytest.raises(Unavailable):
                download(pinned_program(name), tmp_path, sites)
        silent_server.setblocking(False)
        connections = [silent_server.accept()[0]]
        with pytest.raises(BlockingIOError):
            connections.append(silent_server.accept()[0])
        for connection in connections:
            connection.close()


def test_an_unreachable_server_is_noticed_immediately(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    use_site(f"http://127.0.0.1:{port}", monkeypatch)
    started_at = time.monotonic()
    with pytest.raises(Unavailable, match="refused"):
        download(pinned_program("kubectl"), tmp_path)
    assert time.monotonic() - started_at < 1
