"""Tests of builds from source, with a shell script in place of Go."""

from __future__ import annotations

import re
import shutil
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.cluster import gobuild, processes, progress
from conformance.cluster.assets import programs
from conformance.cluster.pins import Program
from conformance.cluster.progress import report_nothing
from conformance.errors import HarnessError, UsageError

FAKE_GO = """#!/bin/sh
if [ "$1" = env ]; then echo go{version}; exit; fi
env > {folder}/environment
echo "$@" > {folder}/arguments
{build}
"""


FAILING_BUILD = "for n in 1 2 3 4 5 6 7; do echo line $n; echo k8s.io/package/v$n; done; exit 3"


def kubectl() -> Program:
    return next(program for program in programs() if program.name == "kubectl")


def fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, version: str = "1.99.1", build: str = "exit 0") -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "go").write_text(FAKE_GO.format(version=version, folder=tmp_path, build=build))
    (tools / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")


def build(tmp_path: Path) -> str:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return gobuild.build(kubectl(), scratch / "kubectl", marker="mine", cache=tmp_path, report=report_nothing)


def test_a_build_is_pinned_and_marked_and_reports_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_go(tmp_path, monkeypatch)
    monkeypatch.setenv("GOOS", "plan9")
    monkeypatch.setenv("GOWORK", "/somewhere/go.work")
    assert "Go 1.99.1" in build(tmp_path)
    arguments = (tmp_path / "arguments").read_text()
    assert arguments.startswith("build -C ")  # Go accepts -C only as the first flag
    assert "-mod=readonly -trimpath" in arguments and arguments.endswith("k8s.io/kubernetes/cmd/kubectl\n")
    for package in ("component-base/version", "client-go/pkg/version"):
        assert f"-X k8s.io/{package}.gitVersion=v{kubectl().group.version}" in arguments
    environment = dict(
        line.split("=", 1) for line in (tmp_path / "environment").read_text().splitlines() if "=" in line
    )
    assert environment["CGO_ENABLED"] == "0" and environment["GOTOOLCHAIN"] == "local"
    assert environment["GOWORK"] == "off" and "GOOS" not in environment
    assert environment[processes.BUILD] == "mine"


def test_a_long_build_reports_its_duration_and_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "MESSAGE_INTERVAL_SECONDS", 0.0)
    packages = "echo go: downloading example.com/x v1.0.0; echo k8s.io/api/core/v1; echo sigs.k8s.io/yaml"
    packages += "; [ $1 = build ] || echo k8s.io/left"
    fake_go(tmp_path, monkeypatch, build=packages)
    steps: list[str] = []
    (tmp_path / "scratch").mkdir()
    gobuild.build(
        kubectl(),
        tmp_path / "scratch" / "kubectl",
        marker="m",
        cache=tmp_path,
        report=lambda *step: steps.append(step[1]),
    )
    assert "building 1.36.3 from source with Go 1.99.1" in steps[0]
    assert re.fullmatch(r"building for \d s, 2 of 3 packages compiled, at most \d s left", steps[-1])


@pytest.mark.parametrize(
    ("seconds", "compiled", "total", "expected"),
    [
        (10, 0, 900, "0 of 900 packages compiled"),
        (120, 5, 1452, "5 of 1452 packages compiled"),
        (10, 100, 900, "100 of 900 packages compiled, at most 80 s left"),
        (60, 100, 900, "100 of 900 packages compiled, at most 8 min left"),
        (60, 900, 900, "900 of 900 packages compiled"),
        (60, 7, 0, "7 of 7 packages compiled"),
    ],
)
def test_the_remaining_time_of_a_build_is_an_upper_bound(
    seconds: float, compiled: int, total: int, expected: str
) -> None:
    """Go does not compile packages in its cache again, and the total number of packages may be unknown (0)."""
    assert gobuild._progress_text(seconds, compiled, total) == f"building for {seconds} s, {expected}"


def test_a_version_other_than_that_of_the_module_folder_is_not_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_go(tmp_path, monkeypatch)
    other_version = replace(kubectl(), group=replace(kubectl().group, version="1.36.4"))
    with pytest.raises(UsageError, match=r"assets.yaml: kubectl 1.36.4 cannot be built: .* has another version"):
        gobuild.build(other_version, tmp_path / "kubectl", marker="m", cache=tmp_path, report=report_nothing)


def test_a_failed_build_shows_the_end_of_the_output_on_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_go(tmp_path, monkeypatch, build=FAILING_BUILD)
    with pytest.raises(HarnessError) as caught:
        build(tmp_path)
    message = str(caught.value)
    assert (
        "exit code 3" in message
        and "line 7" in message
        and "line 1" not in message
        and "k8s.io/package" not in message
        and "\n" not in message
    )


@pytest.mark.parametrize("version", ["1.9.7", "", "devel"])
def test_a_version_of_go_that_is_too_old_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    fake_go(tmp_path, monkeypatch, version=version)
    installed_go = tmp_path / "own-go"
    shutil.copy(tmp_path / "tools" / "go", installed_go)
    monkeypatch.setattr(gobuild, "_install_go", lambda cache, report: (str(installed_go), "1.99"))
    assert "Go 1.99" in build(tmp_path)


@pytest.mark.parametrize(("is_cached", "free_gib", "is_enough"), [(False, 4, False), (True, 4, True), (True, 1, False)])
def test_insufficient_disk_space_is_reported_before_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_cached: bool, free_gib: int, is_enough: bool
) -> None:
    fake_go(tmp_path, monkeypatch)
    if is_cached:
        (tmp_path / "assets" / "etcd").mkdir(parents=True)
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(100 << 30, 0, free_gib << 30))
    if is_enough:
        build(tmp_path)
    else:
        with pytest.raises(UsageError, match=r"GiB are free .* XDG_CACHE_HOME"):
            build(tmp_path)


def test_go_is_installed_by_the_digest_of_its_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], environment: dict[str, str], *, action: str) -> str:
        commands.append(command)
        (tmp_path / "go" / "1.27.3").mkdir(parents=True, exist_ok=True)
        return ""

    monkeypatch.setattr(gobuild, "run", run)
    gobuild._install_go(tmp_path, report_nothing)
    assert "--require-hashes" in commands[-1] and commands[-1][-1] == str(gobuild.GO_REQUIREMENTS)
    wheels = gobuild.GO_REQUIREMENTS.read_text()
    assert wheels.count("==") == 1 and wheels.count("--hash=sha256:") >= 4
