"""Tests of the cluster commands: each error is reported in one line, and each result has its own exit code."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import psutil
import pytest

from conformance import cli
from conformance.cluster import controlplane, fleets, node_profiles
from conformance.cluster.state import ClusterRecord, Owner, StateRoot
from conformance.errors import Exit, HarnessError, UsageError
from conformance.validate import VALIDATORS
from tests.cluster.waiting import wait_for


def grove_conformance(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "conformance.cli", *arguments], capture_output=True, text=True, timeout=120, check=False
    )


def run_in_process(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command like `grove_conformance`, but in this process, to avoid importing the program again."""
    stdout, stderr = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        exit_code = cli.run_despite_output_errors(lambda: cli.app(list(arguments), standalone_mode=False))
    return subprocess.CompletedProcess(arguments, exit_code, stdout.getvalue(), stderr.getvalue())


def run_raising(error: BaseException) -> int:
    def command() -> None:
        raise error

    return cli.run(command)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("what", where="where", hint="mend"), Exit.USAGE),
        (HarnessError("what", where="where", hint="mend"), Exit.HARNESS),
    ],
)
def test_errors_of_the_suite_are_one_line(error: Exception, code: Exit, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_raising(error) == code
    assert capsys.readouterr().err == "grove-conformance: where: what — mend\n"


def test_an_interrupt_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_raising(KeyboardInterrupt()) == Exit.INTERRUPTED
    assert capsys.readouterr().err.count("\n") == 1


def test_any_other_error_is_one_line_and_a_log_with_the_traceback(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert run_raising(ValueError("two\nlines")) == Exit.HARNESS
    line = capsys.readouterr().err
    (log,) = tmp_path.iterdir()
    assert line.count("\n") == 1 and "ValueError: two lines" in line and str(log) in line
    assert "Traceback" in log.read_text()


def test_a_command_succeeds_or_returns_its_own_exit_code() -> None:
    assert cli.run(lambda: None) == 0
    assert cli.run(lambda: 6) == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cluster", "--nonsense"], "--nonsense"),
        (["cluster", "up", "x", "--nodes", "tinny:1"], "tiny"),
        (["cluster", "up", "x", "--nodes", "tiny:many"], "--nodes"),
        (["cluster", "up", "x", "--nodes", "tiny:1", "--nodes", "tiny:2"], "duplicate"),
        (["cluster", "up", "x", "--nodes", "tiny:1", "--occupied", "3/2"], "--occupied: '3/2' is not a share"),
        (["cluster", "up", "x", "--set", "a=b"], "--implementation"),
        (["cluster", "up", "x", "--sample", "serving"], "--sample: needs --implementation NAME"),
        (["cluster", "up", "x", "--sample", "servin"], "unknown sample 'servin' — did you mean \"serving\"?"),
        (["cluster", "samples", "servin"], "SAMPLE: unknown sample 'servin'"),
        (
            ["cluster", "up", "x", "--pods", "realistc"],
            "--pods: unknown behavior 'realistc' — did you mean \"realistic\"?",
        ),
        (["cluster", "up", "x", "--implementation", "referense"], "reference"),
        (
            ["cluster", "up", "x", "--implementation", "reference", "--scheduler-name", "grove-gang-scheduler"],
            "--scheduler-name",
        ),
        (["cluster", "up", "x", "--kubernetes", "1.35"], "'1.35' is not pinned — pinned: 1.36.3 (default), 1.37.2"),
        (["assets", "--kubernetes", "1.35"], "'1.35' is not pinned"),
        (["scale", "--kubernetes", "1.35"], "'1.35' is not pinned"),
        (["lab", "coherent", "--kubernetes", "1.35"], "'1.35' is not pinned"),
        (["cluster", "kubectl", "x", "--", "get", "pods"], "unknown cluster 'x'"),
        (["cluster", "down", "x"], "unknown cluster 'x'"),
        (["cluster", "down", "x", "y"], "unknown cluster 'x'"),
        (["cluster", "down", "x/../y"], "unknown cluster 'x/../y'"),
        (["cluster", "kubeconfig", "x"], "unknown cluster 'x'"),
        (["cluster", "status", "x"], "unknown cluster 'x'"),
        (["cluster", "top", "x"], "unknown cluster 'x'"),
        (["cluster", "logs", "x", "etcd"], "unknown cluster 'x'"),
        (["cluster", "nodes", "add", "x", "tiny:1"], "unknown cluster 'x'"),
        (["cluster", "gpu", "fail", "x", "tiny-0", "gpu-0"], "unknown cluster 'x'"),
        (["cluster", "gpu", "fail", "x", "tiny-0", "gpu-0", "--xid", "0"], "--xid"),
    ],
)
def test_wrong_usage_is_reported_in_one_line_with_exit_code_4(
    state: StateRoot, arguments: list[str], message: str
) -> None:
    result = run_in_process(*arguments)
    assert result.returncode == Exit.USAGE and result.stdout == ""
    assert message in result.stderr and result.stderr.count("\n") == 1


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_characters_that_a_terminal_cannot_encode_are_replaced(encoding: str) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "conformance.cli", "explain", "NOPE"],
        env=os.environ | {"PYTHONIOENCODING": encoding},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == Exit.USAGE
    assert b"is neither a requirement nor an id of the specification ? known are" in result.stderr


def test_the_version_is_one_line() -> None:
    result = grove_conformance("--version")
    assert result.returncode == 0 and result.stdout == f"grove-conformance {metadata.version('grove-conformance')}\n"


@pytest.mark.parametrize("arguments", [("cluster", "up"), ("run",), ("cluster", "prune")])
def test_a_state_folder_that_cannot_be_written_is_reported_in_one_line_with_exit_code_4(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "state").touch()
    monkeypatch.setenv("GROVE_CONFORMANCE_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    result = run_in_process(*arguments)
    assert result.returncode == Exit.USAGE and result.stdout == ""
    assert f"state folder {tmp_path}/state: cannot be written" in result.stderr and result.stderr.count("\n") == 1


def test_prune_names_the_clusters_that_it_keeps(state: StateRoot) -> None:
    this_process = Owner.this_process()
    state.add(ClusterRecord(name="mine", uid="mine", creator=this_process, owner=this_process))
    result = run_in_process("cluster", "prune")
    assert result.stdout == f"kept cluster mine: it ends with process {this_process.pid}, which is alive\n"


def test_a_piped_list_of_clusters_is_not_truncated(state: StateRoot) -> None:
    this_process = Owner.this_process()
    long_names = {
        "name": "a-cluster-with-quite-a-long-name",
        "implementation": "an-implementation-with-a-long-name-as-well",
    }
    state.add(
        ClusterRecord(
            uid="mine", creator=this_process, owner=this_process, created="2026-11-24T11:12:00+00:00", **long_names
        )
    )
    lines = run_in_process("cluster", "list", "--all").stdout.splitlines()
    (line,) = (line for line in lines if long_names["name"] in line)
    expected_texts = (
        "starting",
        long_names["implementation"],
        f"process {this_process.pid}",
        str(state.directory(long_names["name"])),
    )
    assert all(text in line for text in expected_texts)


def test_the_list_of_clusters_names_version_and_features(state: StateRoot) -> None:
    this_process = Owner.this_process()
    features = ["--features", "workload-api"]
    state.add(
        ClusterRecord("mine", "mine", this_process, this_process, versions={"kubernetes": "1.37.2"}, features=features)
    )
    assert "1.37.2 --features workload-api" in run_in_process("cluster", "list").stdout


@pytest.mark.parametrize("name", ["taken", "No"])
def test_a_wrong_name_is_refused_before_programs_are_built(
    state: StateRoot, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    state.add(ClusterRecord("taken", "taken", Owner.this_process(), None, phase="ready"))
    monkeypatch.setattr(controlplane, "resolve_all", lambda *_: pytest.fail("programs are built"))
    assert run_in_process("cluster", "up", name).returncode == Exit.USAGE


def test_a_similar_cluster_name_is_suggested(state: StateRoot) -> None:
    assert "unknown cluster 'dve' — there are none; start one: " in run_in_process("cluster", "top", "dve").stderr
    state.add(ClusterRecord("dev", "dev", Owner.this_process(), None, phase="ready"))
    assert "'dve' — did you mean \"dev\"?" in run_in_process("cluster", "down", "dve").stderr
    assert "known: dev" in run_in_process("cluster", "kubectl", "get", "pods").stderr


def test_commands_for_a_stopped_cluster_say_how_to_start_it(state: StateRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reboot leaves a cluster in this state."""
    state.add(ClusterRecord("mine", "mine", Owner.this_process(), None, phase="ready"))
    start_command = "grove-conformance cluster start mine"
    listing = run_in_process("cluster", "list").stdout
    assert "stopped" in listing and listing.endswith(f"start what has ended: {start_command}\n")
    monkeypatch.setenv("XDG_STATE_HOME", str(state.root.parent))
    other_root = StateRoot(state.root.parent / "grove-conformance" / "other")
    other_root.add(ClusterRecord("theirs", "theirs", Owner.this_process(), None, phase="ready"))
    listing_of_all = run_in_process("cluster", "list", "--all").stdout
    assert (
        "theirs" in listing_of_all and start_command in listing_of_all and "cluster start theirs" not in listing_of_all
    )
    assert run_in_process("cluster", "status", "mine").stdout.startswith("cluster mine: stopped\n")
    assert start_command in run_in_process("cluster", "up", "mine").stderr
    monkeypatch.setattr(os, "execve", lambda *_: None)
    assert start_command in run_in_process("cluster", "kubectl", "mine", "--", "get", "pods").stderr


def test_empty_lists_print_none(state: StateRoot) -> None:
    assert run_in_process("cluster", "list").stdout == "none\n"
    assert run_in_process("cluster", "list", "--json").stdout == "[]\n"
    assert run_in_process("list", "--profile", "scale", "--level", "MAY").stdout == "none\n"


def test_the_node_profiles_and_fleets_are_listed() -> None:
    lines = run_in_process("cluster", "nodes", "profiles").stdout.splitlines()
    assert all(any(f" {name} " in line for line in lines) for name in [*node_profiles.names(), *fleets.names()])
    assert any("mixed" in line and " 152 " in line for line in lines)


def test_the_listed_version_is_what_the_api_server_reports(state: StateRoot) -> None:
    this_process = Owner.this_process()
    state.add(
        ClusterRecord(
            "mine", "mine", this_process, this_process, versions={"kubernetes": "1.36.3"}, served="1.36.9-mine"
        )
    )
    assert "1.36.9-mine" in run_in_process("cluster", "list").stdout
    assert json.loads(run_in_process("cluster", "list", "--json").stdout)[0]["versions"] == {
        "kubernetes": "1.36.9-mine"
    }


def test_a_cluster_that_is_starting_has_no_status(state: StateRoot) -> None:
    this_process = Owner.this_process()
    state.add(ClusterRecord("mine", "mine", this_process, this_process))
    result = run_in_process("cluster", "status", "mine")
    assert result.returncode == Exit.USAGE and "it is still starting" in result.stderr


def test_the_versions_of_kubernetes_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    header, default_line, other_line = (
        line for line in run_in_process("cluster", "versions").stdout.splitlines() if line.strip(" ─━┏┓┡┩└┘┳╇┴")
    )
    assert "in the cache" in header
    assert all(text in default_line for text in ("1.36.3", "default", " no "))
    assert (
        all(text in other_line for text in ("1.37.2", "built from Go modules", " no ")) and "default" not in other_line
    )
    given_scheduler = tmp_path / "kube-scheduler"
    given_scheduler.touch(0o755)
    monkeypatch.setenv("GROVE_CONFORMANCE_ASSET_KUBE_SCHEDULER", str(given_scheduler))
    assert "path given, without kube-apiserver, kube-controller-manager" in (
        run_in_process("cluster", "versions").stdout
    )


def test_the_data_files_are_valid() -> None:
    result = run_in_process("validate")
    assert result.returncode == 0, result.stderr


def test_every_invalid_data_file_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.yaml").write_text("description: 1\n")
    (tmp_path / "b.yaml").write_text("- x\n")
    monkeypatch.setattr("conformance.validate.folder", lambda name: tmp_path)
    monkeypatch.setattr("conformance.validate.VALIDATORS", [("any", "*.yaml", node_profiles.load)])
    assert VALIDATORS
    monkeypatch.setattr(sys, "argv", ["grove-conformance", "validate"])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == Exit.USAGE
    error = capsys.readouterr().err
    assert "a.yaml:" in error and "b.yaml:" in error


@pytest.mark.cluster
def test_an_interrupted_cluster_up_prints_one_line_and_leaves_nothing(state: StateRoot) -> None:
    command = [sys.executable, "-m", "conformance.cli", "cluster", "up", "play"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: (state.directory("play") / "kwokctl.log").exists())
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert process.returncode == Exit.INTERRUPTED
    assert error.splitlines()[-1] == "grove-conformance: interrupted" and "Traceback" not in error
    assert not list(state.clusters.iterdir())


def test_a_process_that_does_not_exist_cannot_own_a_cluster(state: StateRoot) -> None:
    result = run_in_process("cluster", "up", "lent", "--owner", "4194304")
    assert result.returncode == Exit.USAGE and "there is no process 4194304" in result.stderr
    assert not state.clusters.exists() or not list(state.clusters.iterdir())


@pytest.mark.cluster
def test_a_cluster_is_created_listed_and_deleted(state: StateRoot) -> None:
    result = grove_conformance("cluster", "up", "play", "--nodes", "tiny:3", "--nodes", "dgx-h100:1")
    assert result.returncode == 0, result.stderr
    path = run_in_process("cluster", "kubeconfig", "play").stdout.strip()
    assert result.stdout == f"export KUBECONFIG={path}\n"
    assert run_in_process("cluster", "kubeconfig", "play", "--raw").stdout == Path(path).read_text()
    (record,) = json.loads(run_in_process("cluster", "list", "--json").stdout)
    assert record["name"] == "play" and record["owner"] is None and record["phase"] == "ready"
    assert "Ready" in run_in_process("cluster", "list").stdout
    node_names = grove_conformance("cluster", "kubectl", "play", "--", "get", "nodes", "-o", "name")
    assert sorted(node_names.stdout.split()) == ["node/dgx-h100-0", "node/tiny-0", "node/tiny-1", "node/tiny-2"]
    assert run_in_process("cluster", "nodes", "remove", "play", "tiny-1", "tiny-1").stdout == "node/tiny-1 removed\n"
    assert run_in_process("cluster", "nodes", "add", "play", "tiny:1", "dgx-h100").stdout == (
        "node/tiny-1 added\nnode/dgx-h100-1 added\n"
    )
    assert_cluster_is_shown()
    assert run_in_process("cluster", "prune").stdout == "nothing to remove\n"
    result = grove_conformance("cluster", "down", "play")
    assert (result.returncode, result.stdout) == (0, "cluster play is down\n")
    assert json.loads(run_in_process("cluster", "list", "--json").stdout) == []


def assert_cluster_is_shown() -> None:
    """Assert that the commands show health, usage and logs of the cluster `play`, with 3 tiny and 2 dgx-h100 nodes."""
    status = run_in_process("cluster", "status", "play")
    assert status.returncode == 0 and "5 of 5 Ready: 2 dgx-h100, 3 tiny" in status.stdout, status.stderr
    assert "0 of 22 requested" in status.stdout and "pods            none" in status.stdout
    top = json.loads(run_in_process("cluster", "top", "play", "--seconds", "0.2", "--json").stdout)
    (server,) = (component for component in top["components"] if component["name"] == "kube-apiserver")
    assert server["memoryBytes"] > 1 << 20 and server["cpuSeconds"] > 0
    log_paths = dict(line.split("  ") for line in run_in_process("cluster", "logs", "play").stdout.splitlines())
    assert {"audit", "etcd", "kube-apiserver"} <= set(log_paths)
    last_line = grove_conformance("cluster", "logs", "play", "kube-apiserver", "--tail", "1")
    assert last_line.stdout.count("\n") == 1 and last_line.stdout in Path(log_paths["kube-apiserver"]).read_text()
    assert 'did you mean "kube-apiserver"?' in run_in_process("cluster", "logs", "play", "kube-apisever").stderr
    etcd = psutil.Process(top["components"][0]["pid"])
    etcd.suspend()  # the status of an unhealthy cluster is also shown
    try:
        status = run_in_process("cluster", "status", "play")
        assert status.returncode == Exit.HARNESS and "cluster play: etcd: " in status.stdout
    finally:
        etcd.resume()
