"""Tests of downloads from a loopback server that stands in for the release sites."""

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
from conformance.cluster.progress import silent
from conformance.cluster.sites import Sites, Unavailable
from conformance.cluster.transfer import ChecksumMismatch
from tests.cluster.release_sites import ReleaseSite, archive, serving, sha256, use

PLATFORM = "linux-amd64"
BINARY = b"#!/bin/sh\necho a program\n"
TOP = "usr/local/bin/kube-apiserver"


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[ReleaseSite]:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("platform.system", lambda: "Linux")
    with serving() as site:
        use(site.url, monkeypatch)
        yield site


def program(name: str) -> Program:
    return next(program for program in pins.load(PLATFORM) if program.name == name)


def path_of(name: str) -> str:
    return "/" + program(name).file


def pinned(name: str, content: bytes = BINARY) -> Program:
    return replace(program(name), digest=sha256(content))


def download(program: Program, folder: Path, sites: Sites | None = None) -> None:
    fetch([program], folder, sites or Sites(), silent)


def test_what_is_pinned_is_downloaded_and_verified(site: ReleaseSite, tmp_path: Path) -> None:
    site.files = {path_of("kubectl"): BINARY}
    download(pinned("kubectl"), tmp_path)
    assert (tmp_path / "kubectl").read_bytes() == BINARY
    assert [entry.name for entry in tmp_path.iterdir()] == ["kubectl"]
    assert site.requests == [path_of("kubectl")]


def test_what_is_not_pinned_is_not_even_asked_for(site: ReleaseSite, tmp_path: Path) -> None:
    site.files = {path_of("kubectl"): BINARY, path_of("kubectl") + ".sha256": sha256(BINARY).encode()}
    with pytest.raises(Unavailable, match="no digest of an official file is pinned"):
        download(replace(program("kubectl"), digest=""), tmp_path)
    assert site.requests == []


def test_a_file_may_be_pinned_by_sha512(site: ReleaseSite, tmp_path: Path) -> None:
    site.files = {path_of("kubectl"): BINARY}
    right = f"sha512:{hashlib.sha512(BINARY).hexdigest()}"
    download(replace(program("kubectl"), digest=right), tmp_path)
    assert (tmp_path / "kubectl").read_bytes() == BINARY
    with pytest.raises(ChecksumMismatch, match=right):
        download(replace(program("kubectl"), digest="sha512:" + "0" * 128), tmp_path)


@pytest.mark.parametrize("platform", ["linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64"])
def test_every_pin_is_a_digest_and_no_two_files_share_one(platform: str) -> None:
    digests = {pin.url: pin.digest for pin in pins.load(platform) if pin.digest}
    assert all(re.fullmatch("sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}", digest) for digest in digests.values())
    assert len(set(digests.values())) == len(digests)


@pytest.mark.parametrize("platform", ["linux-amd64", "linux-arm64"])
def test_on_linux_every_program_has_an_official_release(platform: str) -> None:
    assert all(pin.digest for pin in pins.load(platform))


def test_what_passes_is_tried_again(site: ReleaseSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "PAUSE", 0.01)
    site.files = {path_of("kubectl"): BINARY}
    site.faults = ["503", "cut"]
    download(pinned("kubectl"), tmp_path)
    assert (tmp_path / "kubectl").read_bytes() == BINARY and len(site.requests) == 3


def test_what_does_not_pass_is_given_up_for_good(
    site: ReleaseSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "PAUSE", 0.01)
    site.files = {path_of("kubectl"): BINARY}
    site.faults = ["cut"] * 9
    sites = Sites()
    for _ in range(2):
        with pytest.raises(Unavailable, match=r"cut off after|IncompleteRead"):
            download(pinned("kubectl"), tmp_path, sites)
        assert len(site.requests) == transfer.ATTEMPTS


def test_the_program_is_taken_out_of_a_verified_archive(site: ReleaseSite, tmp_path: Path) -> None:
    packed = archive({"etcd/README": b"", program("etcd").member: BINARY})
    site.files = {path_of("etcd"): packed}
    download(pinned("etcd", packed), tmp_path)
    assert (tmp_path / "etcd").read_bytes() == BINARY
    assert [entry.name for entry in tmp_path.iterdir()] == ["etcd"]


def test_an_archive_without_the_program_is_unavailable(site: ReleaseSite, tmp_path: Path) -> None:
    for packed in (archive({"README": b""}), BINARY):
        site.files = {path_of("etcd"): packed}
        with pytest.raises(Unavailable):
            download(pinned("etcd", packed), tmp_path)


def test_several_programs_are_taken_out_of_one_download(site: ReleaseSite, tmp_path: Path) -> None:
    packed = archive({"bin/a": BINARY, "bin/b": BINARY + b"b"})
    site.files = {"/server.tar.gz": packed}
    both = [replace(pinned("kubectl", packed), name=name, file="server.tar.gz", member=f"bin/{name}") for name in "ab"]
    fetch(both, tmp_path, Sites(), silent)
    assert (tmp_path / "a").read_bytes() + b"b" == (tmp_path / "b").read_bytes() == BINARY + b"b"
    assert site.requests == ["/server.tar.gz"]


def image(site: ReleaseSite, *layers: dict[str, bytes], name: str = "kube-apiserver") -> Program:
    """Serve an image with these layers, lowest first, and return a program that is pinned to it."""
    digest = site.add_image(name, [archive(layer) for layer in layers], ("linux-arm64", "linux-amd64"))
    return replace(program("kube-apiserver"), digest=digest)


@pytest.mark.parametrize("prefix", ["", "./"])
def test_the_program_is_taken_out_of_the_uppermost_layer_that_has_it(
    site: ReleaseSite, tmp_path: Path, prefix: str
) -> None:
    pin = image(site, {"go-runner": b"r"}, {TOP: b"an older one"}, {prefix + TOP: BINARY}, {"etc/passwd": b""})
    download(pin, tmp_path)
    assert (tmp_path / "kube-apiserver").read_bytes() == BINARY
    assert [entry.name for entry in tmp_path.iterdir()] == ["kube-apiserver"]
    kinds = [path.split("/")[3] for path in site.requests]
    assert kinds == ["manifests", "manifests", "blobs", "blobs"]


def test_a_registry_may_want_an_anonymous_token_and_have_its_blobs_elsewhere(
    site: ReleaseSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving() as store, serving() as registry:
        use(f"{site.url}/mirror", monkeypatch)
        registry.guarded = "/v2/"
        pin = image(registry, {TOP: BINARY}, name="mirror/kube-apiserver")
        site.moved = {path: registry.url + path for path in registry.files}
        (blob,) = (path for path in registry.files if "/blobs/" in path)
        store.files["/a-blob"] = registry.files.pop(blob)
        registry.moved[blob] = f"{store.url}/a-blob"
        registry.guarded = "/v2/mirror/kube-apiserver/manifests"
        download(pin, tmp_path)
        assert (tmp_path / "kube-apiserver").read_bytes() == BINARY
        assert "Bearer anonymous" in registry.authorizations
        assert any(path == "/token?service=a+registry&scope=pull" for path in registry.requests)
        assert not any(site.authorizations) and not any(store.authorizations)


def test_a_token_stays_with_the_host_that_asked_for_it(site: ReleaseSite, tmp_path: Path) -> None:
    with serving() as store:
        pin = image(site, {TOP: BINARY})
        (blob,) = (path for path in site.files if "/blobs/" in path)
        store.files["/a-blob"] = site.files.pop(blob)
        site.guarded, site.moved = "/v2/kube-apiserver/manifests", {blob: f"{store.url}/a-blob"}
        download(pin, tmp_path)
        assert (tmp_path / "kube-apiserver").read_bytes() == BINARY and store.authorizations == [""]


@pytest.mark.parametrize("challenge", ["", "Basic realm=x", 'Bearer realm="file:///etc/passwd"'])
def test_a_registry_that_wants_something_else_is_unavailable(
    site: ReleaseSite, tmp_path: Path, challenge: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin = image(site, {TOP: BINARY})
    site.guarded = "/v2/"
    read = transfer._token
    monkeypatch.setattr(transfer, "_token", lambda header: read(challenge))
    with pytest.raises(Unavailable, match="HTTP 401"):
        download(pin, tmp_path)


@pytest.mark.parametrize("part", ["index", "manifest", "blob"])
def test_a_part_of_an_image_with_a_wrong_checksum_is_refused(site: ReleaseSite, tmp_path: Path, part: str) -> None:
    pin = image(site, {TOP: BINARY})
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
def test_a_pin_that_is_not_that_of_an_index_is_unavailable(site: ReleaseSite, tmp_path: Path, index: bytes) -> None:
    site.files = {f"/v2/kube-apiserver/manifests/{sha256(index)}": index}
    with pytest.raises(Unavailable):
        download(replace(program("kube-apiserver"), digest=sha256(index)), tmp_path)


def test_a_wrong_checksum_is_refused_with_both_sums_and_the_file(site: ReleaseSite, tmp_path: Path) -> None:
    site.files = {path_of("kubectl"): BINARY + b"changed"}
    with pytest.raises(ChecksumMismatch) as caught:
        download(pinned("kubectl"), tmp_path)
    message = str(caught.value)
    assert sha256(BINARY) in message and sha256(BINARY + b"changed") in message
    assert path_of("kubectl") in message and "\n" not in message
    assert not list(tmp_path.iterdir()) and len(site.requests) == 1


def test_a_long_download_says_how_much_there_is(
    site: ReleaseSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.0)
    content = b"x" * 3_500_000
    site.files = {path_of("kubectl"): content}
    steps: list[str] = []
    fetch([pinned("kubectl", content)], tmp_path, Sites(), lambda subject, step: steps.append(f"{subject}: {step}"))
    assert steps[0] == f"kubectl: downloading {site.url}{path_of('kubectl')}"
    assert steps[-1] == "kubectl: downloaded 4 of 4 MB" and len(steps) > 3


def test_a_file_that_is_not_there_is_unavailable_and_the_site_stays_good(site: ReleaseSite, tmp_path: Path) -> None:
    sites = Sites()
    with pytest.raises(Unavailable, match="404"):
        download(pinned("kubectl"), tmp_path, sites)
    sites.require(program("kubectl").site)


def test_a_site_answers_although_its_front_page_is_on_a_host_that_does_not(site: ReleaseSite) -> None:
    site.moved["/"] = "http://127.0.0.1:9/"
    sites = Sites()
    sites.probe([program("kubectl").site])
    sites.require(program("kubectl").site)


def test_a_server_that_never_answers_costs_one_patience_and_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        use(f"http://127.0.0.1:{mute.getsockname()[1]}", monkeypatch)
        sites = Sites()
        for name in ("kubectl", "kwok", "etcd"):
            sites.probe([program(name).site])
            with pytest.raises(Unavailable):
                download(pinned(name), tmp_path, sites)
        mute.setblocking(False)
        questions = [mute.accept()[0]]
        with pytest.raises(BlockingIOError):
            questions.append(mute.accept()[0])
        for question in questions:
            question.close()


def test_a_server_that_is_not_there_is_known_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    use(f"http://127.0.0.1:{port}", monkeypatch)
    start = time.monotonic()
    with pytest.raises(Unavailable, match="refused"):
        download(pinned("kubectl"), tmp_path)
    assert time.monotonic() - start < 1
