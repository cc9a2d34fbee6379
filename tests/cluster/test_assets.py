"""Tests of the program cache: processes share a build, no incomplete program is visible, and leftovers are removed."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from conformance.cluster import assets, pins, processes
from conformance.cluster.assets import RECEIPT, Assets, ProgramCache, programs, resolve_all
from conformance.cluster.pins import Program
from conformance.cluster.progress import ProgressReporter, report_nothing
from conformance.cluster.sites import Sites
from conformance.cluster.transfer import ChecksumMismatch
from conformance.errors import HarnessError, UsageError
from tests.cluster.release_sites import archive, serve_release_site, sha256, use_site
from tests.cluster.waiting import Spawn, wait_for

UNREACHABLE_URL = "http://127.0.0.1:9"

WORKER_SOURCE = """
import pathlib, sys, time
from conformance.cluster import assets, gobuild, sites
root, folder = map(pathlib.Path, sys.argv[1:])

def build(program, into, *, marker, cache, report):
    with (folder / "builds").open("a") as log:
        log.write(program.name + "\\n")
    wait = "import pathlib, sys, time\\nwhile not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.005)"
    environment = {**gobuild.os.environ, assets.processes.BUILD: marker}
    gobuild.run([sys.executable, "-c", wait, str(folder / "go")], environment, action="a build")
    into.write_text("#!/bin/sh\\n")
    return "a slow build"

def report(subject, step):
    if "waiting" in step:
        (folder / "waits").touch()

program = next(program for program in assets.programs() if program.name == "kubectl")
print(assets.ProgramCache(root, sites=sites.Sites(), build=build).resolve(program, report))
"""


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    use_site(UNREACHABLE_URL, monkeypatch)


def kubectl() -> Program:
    return next(program for program in programs() if program.name == "kubectl")


def build_quickly(program: Program, into: Path, *, marker: str, cache: Path, report: ProgressReporter) -> str:
    into.write_text("#!/bin/sh\n")
    return "a quick build"


def program_cache(root: Path) -> ProgramCache:
    return ProgramCache(root, sites=Sites(), build=build_quickly)


def test_two_processes_build_once(tmp_path: Path, spawn: Spawn) -> None:
    workers = [spawn(WORKER_SOURCE, tmp_path / "cache", tmp_path) for _ in range(2)]
    wait_for(lambda: (tmp_path / "builds").exists() and (tmp_path / "waits").exists())
    (tmp_path / "go").touch()
    outputs = [worker.communicate(timeout=30)[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], outputs
    assert (tmp_path / "builds").read_text() == "kubectl\n"


def test_a_killed_build_leaves_no_visible_program_and_is_cleaned_up(tmp_path: Path, spawn: Spawn) -> None:
    cache = tmp_path / "cache"
    worker = spawn(WORKER_SOURCE, cache, tmp_path)

    def builders() -> list[psutil.Process]:
        marker = str(cache / "scratch" / "kubernetes")
        return [process for process, _ in processes.find_marked(lambda env: env.get(processes.BUILD) == marker)]

    orphaned_builder = wait_for(builders)[0]
    worker.send_signal(signal.SIGKILL)
    worker.wait(timeout=10)
    assert not program_cache(cache).path(kubectl()).exists()
    path = program_cache(cache).resolve(kubectl(), report_nothing)
    assert path.read_text() == "#!/bin/sh\n"
    assert (
        not processes.is_alive(orphaned_builder.pid, orphaned_builder.create_time())
        if psutil.pid_exists(orphaned_builder.pid)
        else True
    )
    assert not builders()
    assert not any((cache / "scratch").rglob("*.*")) and not list((cache / "scratch" / "kubernetes").iterdir())


def test_leftovers_are_removed_even_if_the_program_is_cached(tmp_path: Path) -> None:
    program_cache(tmp_path).resolve(kubectl(), report_nothing)
    leftover = tmp_path / "scratch" / "kubernetes" / "left-over"
    leftover.mkdir()
    program_cache(tmp_path).resolve(kubectl(), report_nothing)
    assert not leftover.exists()


def test_a_failed_build_leaves_nothing(tmp_path: Path) -> None:
    def fail_after_writing(program: Program, into: Path, *, marker: str, cache: Path, report: ProgressReporter) -> str:
        into.write_text("half")
        raise HarnessError("the compiler says no")

    with pytest.raises(HarnessError, match="says no"):
        ProgramCache(tmp_path, sites=Sites(), build=fail_after_writing).resolve(kubectl(), report_nothing)
    assert not program_cache(tmp_path).path(kubectl()).parent.exists()
    assert not list((tmp_path / "scratch" / "kubernetes").iterdir())


def test_the_receipt_names_source_and_checksum_and_a_damaged_program_is_rebuilt(tmp_path: Path) -> None:
    path = program_cache(tmp_path).resolve(kubectl(), report_nothing)
    receipt = json.loads(path.with_name(RECEIPT).read_text())
    assert receipt["source"] == "a quick build" and len(receipt["sha256"]) == 64
    path.write_text("damaged, by whatever it was")
    assert program_cache(tmp_path).resolve(kubectl(), report_nothing).read_text() == "#!/bin/sh\n"


def test_the_replacement_of_a_program_by_one_of_the_same_size_is_detected(tmp_path: Path) -> None:
    path = program_cache(tmp_path).resolve(kubectl(), report_nothing)
    replacement = path.with_name("other")
    replacement.write_text("#!/bin/zh\n")
    replacement.chmod(0o755)
    replacement.rename(path)
    steps: list[str] = []
    assert (
        program_cache(tmp_path).resolve(kubectl(), lambda *words: steps.append(words[1])).read_text() == "#!/bin/sh\n"
    )
    assert "the one in the cache is not the one that was put there" in steps


def test_a_program_is_read_again_only_if_its_file_was_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assets, "SETTLED_NANOSECONDS", 0)
    path = program_cache(tmp_path).resolve(kubectl(), report_nothing)
    reads: list[object] = []
    file_digest = hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda *arguments: reads.append(arguments) or file_digest(*arguments))
    for _ in range(3):
        program_cache(tmp_path).resolve(kubectl(), report_nothing)
    assert len(reads) == 1
    stat_before = path.stat()
    path.write_text("#!/bin/zh\n")
    os.utime(path, ns=(stat_before.st_atime_ns, stat_before.st_mtime_ns))
    assert program_cache(tmp_path).resolve(kubectl(), report_nothing).read_text() == "#!/bin/sh\n"
    path.touch()
    program_cache(tmp_path).resolve(kubectl(), report_nothing)
    path.with_name("kubectl.digest.json").write_text("{")
    assert program_cache(tmp_path).resolve(kubectl(), report_nothing).read_text() == "#!/bin/sh\n"


def test_a_download_is_used_only_while_its_digest_is_pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_release_site() as site:
        use_site(site.url, monkeypatch)
        site.files = {f"/{kubectl().file}": b"#!/bin/sh\n# downloaded\n"}
        pinned_kubectl = replace(kubectl(), digest=sha256(b"#!/bin/sh\n# downloaded\n"))
        path = program_cache(tmp_path).resolve(pinned_kubectl, report_nothing)
    assert json.loads(path.with_name(RECEIPT).read_text())["pinned"] == pinned_kubectl.digest
    assert program_cache(tmp_path).receipt(pinned_kubectl) is not None
    assert program_cache(tmp_path).receipt(replace(pinned_kubectl, digest="sha256:" + "2" * 64)) is None
    assert program_cache(tmp_path).receipt(replace(pinned_kubectl, digest="")) is None


def test_a_wrong_checksum_is_an_error_and_nothing_is_built_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_build(*_: object, **__: object) -> str:
        raise AssertionError("it was built")

    with serve_release_site() as site:
        use_site(site.url, monkeypatch)
        site.files = {f"/{kubectl().file}": b"something else"}
        with pytest.raises(ChecksumMismatch):
            ProgramCache(tmp_path, sites=Sites(), build=fail_build).resolve(kubectl(), report_nothing)
    assert not program_cache(tmp_path).path(kubectl()).exists()
    assert not list((tmp_path / "scratch" / "kubernetes").iterdir())


def test_programs_of_one_archive_are_downloaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed_archive = archive({"bin/kubectl": b"1", "bin/kube-scheduler": b"2", "bin/kube-apiserver": b"3"})
    common = {"file": "server.tar.gz", "digest": sha256(packed_archive), "image": False}
    with serve_release_site() as site:
        use_site(site.url, monkeypatch)
        site.files = {"/server.tar.gz": packed_archive}
        packed_programs = tuple(
            replace(program, member=f"bin/{program.name}", site=kubectl().site, **common)
            for program in programs()
            if program.name in ("kubectl", "kube-scheduler", "kube-apiserver")
        )
        monkeypatch.setattr("conformance.cluster.assets._all_programs", lambda: packed_programs)
        monkeypatch.setenv("GROVE_CONFORMANCE_ASSET_KUBE_SCHEDULER", "/bin/true")
        paths = [program_cache(tmp_path).resolve(program, report_nothing) for program in packed_programs]
        assert site.requests.count("/server.tar.gz") == 1
    assert [path.read_bytes() for path in paths if path != Path("/bin/true")] == [b"3", b"1"]
    assert not program_cache(tmp_path).path(packed_programs[1]).exists() and packed_programs[1].name == "kube-scheduler"


def test_a_program_without_a_pinned_digest_is_built_without_asking_a_site(tmp_path: Path) -> None:
    class NoSites(Sites):
        def probe(self, urls: object) -> None:
            raise AssertionError("a site was asked")

    built = ProgramCache(tmp_path, sites=NoSites(), build=build_quickly).resolve(
        replace(kubectl(), digest=""), report_nothing
    )
    assert built.read_text() == "#!/bin/sh\n"


def test_a_path_given_by_the_user_takes_precedence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given_kubectl = tmp_path / "my-kubectl"
    given_kubectl.write_text("#!/bin/sh\n")
    given_kubectl.chmod(0o755)
    monkeypatch.setenv("GROVE_CONFORMANCE_ASSET_KUBECTL", str(given_kubectl))
    assert program_cache(tmp_path).resolve(kubectl(), report_nothing) == given_kubectl


@pytest.mark.parametrize("mode", [None, 0o644])
def test_a_given_path_that_cannot_be_executed_is_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int | None
) -> None:
    given_kubectl = tmp_path / "my-kubectl"
    if mode is not None:
        given_kubectl.write_text("#!/bin/sh\n")
        given_kubectl.chmod(mode)
    monkeypatch.setenv("GROVE_CONFORMANCE_ASSET_KUBECTL", str(given_kubectl))
    with pytest.raises(UsageError, match="GROVE_CONFORMANCE_ASSET_KUBECTL"):
        program_cache(tmp_path).resolve(kubectl(), report_nothing)


def test_a_cache_that_cannot_be_written_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UsageError, match="XDG_CACHE_HOME") as caught:
        program_cache(tmp_path / "file").resolve(kubectl(), report_nothing)
    assert "\n" not in str(caught.value)


def test_an_unknown_platform_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(UsageError, match="riscv64"):
        pins.platform_name()


def test_every_field_of_assets_is_a_pinned_program() -> None:
    names = {program.name.replace("-", "_") for program in programs()}
    assert names == set(Assets.__dataclass_fields__)
    for program in programs():
        assert (program.group.module / "go.sum").is_file()
        assert program.group.version in (program.group.module / "go.mod").read_text()


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ("GROVE_CONFORMANCE_ASSET_KUBE_API_SERVER", 'did you mean "GROVE_CONFORMANCE_ASSET_KUBE_APISERVER"?'),
        ("GROVE_CONFORMANCE_ASSET_KUBELET", "GROVE_CONFORMANCE_ASSET_KUBE"),
    ],
)
def test_a_variable_that_does_not_name_a_program_is_an_error(
    monkeypatch: pytest.MonkeyPatch, variable: str, message: str
) -> None:
    monkeypatch.setenv(variable, "/bin/true")
    with pytest.raises(UsageError, match="names no program") as caught:
        resolve_all()
    assert str(caught.value).startswith(f"{variable}: ") and message in str(caught.value)


def test_a_program_given_by_the_user_reports_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given_apiserver = tmp_path / "kube-apiserver"
    given_apiserver.write_text("#!/bin/sh\necho Kubernetes v1.36.9-mine\n")
    given_apiserver.chmod(0o755)
    assert assets.served_versions()["kubernetes"] == assets.versions()["kubernetes"]
    monkeypatch.setenv("GROVE_CONFORMANCE_ASSET_KUBE_APISERVER", str(given_apiserver))
    assert assets.served_versions()["kubernetes"] == "1.36.9-mine"
    given_apiserver.write_text("#!/bin/sh\necho etcd 3\n")
    with pytest.raises(UsageError, match=r"ASSET_KUBE_APISERVER: .* does not name a version of Kubernetes: 'etcd 3'"):
        assets.served_versions()


def test_an_api_server_of_another_minor_version_is_refused() -> None:
    assets.check_minor("1.36.9-mine", "1.36.3")
    with pytest.raises(UsageError) as caught:
        assets.check_minor("1.37.2", "1.36.3")
    assert str(caught.value) == (
        "GROVE_CONFORMANCE_ASSET_KUBE_APISERVER: is Kubernetes 1.37.2, and the cluster is one of 1.36 "
        "— add --kubernetes 1.37, or unset the variable"
    )


@pytest.mark.cluster
def test_the_programs_report_the_pinned_versions() -> None:
    import subprocess

    assets = resolve_all()
    for program in programs():
        path = getattr(assets, program.name.replace("-", "_"))
        arguments = ["version", "--client"] if program.name == "kubectl" else ["--version"]
        output = subprocess.run([path, *arguments], capture_output=True, text=True, check=True, timeout=30)
        assert program.group.version in output.stdout + output.stderr
