"""Tests that a control plane starts from an empty cache by downloads alone, without Go. A loopback server serves real
programs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.cluster import pins
from conformance.cluster.assets import RECEIPT, resolve_all
from conformance.cluster.state import StateRoot
from conformance.errors import Exit
from tests.cluster.release_sites import ReleaseSite, archive, serve_release_site, sha256

pytestmark = [pytest.mark.cluster, pytest.mark.skipif(sys.platform != "linux", reason="images are for Linux only")]
MAX_START_SECONDS = 60.0
"""Maximum time in seconds from the start of the last download until the control plane has nodes."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ReleaseSite, Path]]:
    """A site that serves all programs of this machine as official releases, and the file with their pins."""
    text = (pins.PINS / "assets.yaml").read_text("utf-8")
    assets = resolve_all()
    with serve_release_site() as site:
        for program in pins.load(pins.platform_name()):
            content = getattr(assets, program.name.replace("-", "_")).read_bytes()
            served_content = archive({program.member: content}) if program.member else content
            if program.image:
                digest = site.add_image(
                    program.file, [archive({"go-runner": b""}), served_content], (pins.platform_name(),)
                )
            else:
                site.files[f"/{program.file}"], digest = served_content, sha256(served_content)
            text = text.replace(program.digest, digest)
        pins_file = tmp_path_factory.mktemp("pins") / "own.yaml"
        pins_file.write_text(re.sub(r"(?m)^(  \w+: )https://.*$", rf"\g<1>{site.url}", text), "utf-8")
        yield site, pins_file


def grove_conformance(pins_file: Path, cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command with an empty cache and an empty PATH."""
    empty_folder = cache / "bin"
    empty_folder.mkdir(parents=True)
    inherited_environment = {
        key: value for key, value in os.environ.items() if not key.startswith("GROVE_CONFORMANCE_")
    }
    state = {"GROVE_CONFORMANCE_STATE": os.environ["GROVE_CONFORMANCE_STATE"]}
    settings = {
        "XDG_CACHE_HOME": str(cache),
        "PATH": str(empty_folder),
        "GROVE_CONFORMANCE_PINS": str(pins_file),
        "no_proxy": "127.0.0.1",
    }
    command = [sys.executable, "-m", "conformance.cli", *arguments]
    return subprocess.run(
        command, env=inherited_environment | state | settings, capture_output=True, text=True, timeout=300, check=False
    )


def test_a_cluster_starts_from_an_empty_cache_without_go(
    site: tuple[ReleaseSite, Path], state: StateRoot, tmp_path: Path
) -> None:
    release_site, pins_file = site
    started_at = time.monotonic()
    result = grove_conformance(pins_file, tmp_path, "cluster", "up", "fresh", "--nodes", "tiny:3")
    duration = time.monotonic() - started_at
    assert result.returncode == 0, result.stderr
    assert "building" not in result.stderr and "no official release" not in result.stderr
    receipts = [json.loads(path.read_text()) for path in tmp_path.glob(f"grove-conformance/assets/**/{RECEIPT}")]
    assert len(receipts) == len(pins.load(pins.platform_name()))
    assert all(receipt["source"].startswith(release_site.url) and receipt["pinned"] for receipt in receipts)
    downloads = [float(seconds) for seconds in re.findall(r"\[ *([\d.]+) s\] \S+: downloading ", result.stderr)]
    assert len(downloads) == len(receipts)
    assert duration - max(downloads) < MAX_START_SECONDS


def test_a_wrong_checksum_is_refused_in_one_line_and_nothing_is_built(
    site: tuple[ReleaseSite, Path], state: StateRoot, tmp_path: Path
) -> None:
    release_site, pins_file = site
    path = [path for path in release_site.files if path.startswith("/v2/kube-apiserver/blobs/")][
        -1
    ]  # the uppermost layer
    original_content = release_site.files[path]
    release_site.files[path] = original_content[:-1] + bytes([original_content[-1] ^ 1])
    try:
        result = grove_conformance(pins_file, tmp_path, "cluster", "up", "fresh")
    finally:
        release_site.files[path] = original_content
    *steps, line = result.stderr.splitlines()
    assert result.returncode == Exit.HARNESS and result.stdout == ""
    assert f"{path}: wrong checksum, so kube-apiserver is not installed: expected sha256:" in line
    assert "GROVE_CONFORMANCE_RELEASES_REGISTRY" in line and str(pins_file) in line
    assert len(steps) == 1 and "downloading" in steps[0]
    assert not list(tmp_path.glob("grove-conformance/assets/**/*"))
