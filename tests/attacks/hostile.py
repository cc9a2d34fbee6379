"""A hostile implementation: runs a command, such as the reference's operator, and attacks the run alongside it.

`python hostile.py MODE KUBECONFIG FOLDER -- COMMAND…`. FOLDER is the working folder of the run, with its reports in
`reports/`; a program on the same machine can find it. Each mode is a function of KUBECONFIG and FOLDER.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from conformance.cluster import users
from conformance.grove.kinds import PODCLIQUESETS
from kube.client import MERGE_PATCH
from kube.errors import ApiError
from tests.attacks import (  # noqa: F401 - their modes
    credentials,
    keys,
    large_objects,
    long_requests,
    obstacles,
    policies,
    servers,
)
from tests.attacks.helpers import (
    ADMISSION,
    MODES,
    NODES,
    PREPARATIONS,
    existing_nodes,
    for_each_object,
    has_failed_check,
    ledger_contains,
    mode,
    patch,
    send,
    wait_until,
)

SUSPENDED_SECONDS = 12.0
"""Seconds for which a process is suspended: more than the 10 s of silence that count as an outage."""


def supervisor() -> psutil.Process:
    """Return the process of the suite that started this program: the parent of the process group's leader."""
    return psutil.Process(os.getpgrp()).parent() or psutil.Process()


def log_path() -> Path:
    """Return the file to which this program's output is written."""
    return Path("/proc/self/fd/1").readlink()


NAMESPACES = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["namespaces"]}


@mode
def do_nothing(kubeconfig: Path, folder: Path) -> None:
    """Do nothing, so that only the command is judged."""


@mode
def hang_namespaces(kubeconfig: Path, folder: Path) -> None:
    """After a failure, make each new namespace wait for a webhook that never responds."""
    listener = socket.create_server(("127.0.0.1", 0))
    hook = {
        "name": "hang.hostile.example",
        "clientConfig": {"url": f"https://127.0.0.1:{listener.getsockname()[1]}/"},
        "rules": [NAMESPACES],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": 10,
        "admissionReviewVersions": ["v1"],
    }
    wait_until(lambda: has_failed_check(folder))
    body = {"metadata": {"name": "hostile"}, "webhooks": [hook]}
    send(kubeconfig, "POST", f"{ADMISSION}/validatingwebhookconfigurations", body)
    signal.pause()


@mode
def deny_namespaces(kubeconfig: Path, folder: Path) -> None:
    """After a failure, deny new namespaces with an admission policy."""
    wait_until(lambda: has_failed_check(folder))
    obstacles.deny(kubeconfig, NAMESPACES)


@mode
def deny_deletions(kubeconfig: Path, folder: Path) -> None:
    """Deny the deletion of namespaces with an admission policy."""
    wait_until(lambda: ledger_contains(folder, '"phase":"ready"'))
    obstacles.deny(kubeconfig, NAMESPACES | {"operations": ["DELETE"]})


@mode
def interrupt_run(kubeconfig: Path, folder: Path) -> None:
    """After a failure, interrupt the process that writes the report, as Ctrl-C does."""
    worker = supervisor().parent()
    controller = worker.parent() if worker is not None else None
    wait_until(lambda: has_failed_check(folder))
    if controller is not None:
        controller.send_signal(signal.SIGINT)


@mode
def kill_worker(kubeconfig: Path, folder: Path) -> None:
    """After a failure, kill the suite's worker that started this program."""
    parent = supervisor().parent()
    wait_until(lambda: has_failed_check(folder))
    if parent is not None:
        parent.kill()


@mode
def kill_first_worker(kubeconfig: Path, folder: Path) -> None:
    """After a failure, kill the suite's worker that started this program, but not the worker that replaces it."""
    if not ledger_contains(folder, '"worker":"gw1"'):
        kill_worker(kubeconfig, folder)


@mode
def kill_worker_early(kubeconfig: Path, folder: Path) -> None:
    """Kill the suite's worker that started this program before any check."""
    parent = supervisor().parent()
    wait_until(lambda: ledger_contains(folder, '"phase":"recording"'))
    if parent is not None:
        parent.kill()


@mode
def suspend_worker(kubeconfig: Path, folder: Path) -> None:
    """After a failure, suspend the suite's worker that started this program for 12 s."""
    parent = supervisor().parent()
    wait_until(lambda: has_failed_check(folder))
    if parent is not None:
        _suspend(parent)


@mode
def suspend_itself(kubeconfig: Path, folder: Path) -> None:
    """Suspend the command for 12 s as soon as a test has created a set, before any check."""
    wait_until(lambda: json.loads(send(kubeconfig, "GET", PODCLIQUESETS.path()))["items"])
    _suspend(psutil.Process(os.getppid()))


@mode
def suspend_itself_later(kubeconfig: Path, folder: Path) -> None:
    """After a failure, suspend the command for 12 s."""
    wait_until(lambda: has_failed_check(folder))
    _suspend(psutil.Process(os.getppid()))


@mode
def suspend_child(kubeconfig: Path, folder: Path) -> None:
    """Suspend a child of the command for ever, as soon as the first test runs."""
    wait_until(lambda: ledger_contains(folder, '"phase":"ready"'))
    psutil.Process().suspend()


def _suspend(process: psutil.Process) -> None:
    """Suspend a process, and resume it."""
    process.suspend()
    time.sleep(SUSPENDED_SECONDS)
    process.resume()


@mode
def replace_log_with_folder(kubeconfig: Path, folder: Path) -> None:
    """After a failure, replace this program's log with a folder."""
    path = log_path()
    wait_until(lambda: has_failed_check(folder))
    path.unlink()
    path.mkdir()


@mode
def replace_log_with_device(kubeconfig: Path, folder: Path) -> None:
    """After a failure, replace this program's log with a link to an endless device."""
    path = log_path()
    wait_until(lambda: has_failed_check(folder))
    path.unlink()
    path.symlink_to("/dev/zero")


@mode
def stop_supervisor(kubeconfig: Path, folder: Path) -> None:
    """Suspend the suite's process that has to end this program, and never resume it."""
    parent = supervisor()
    wait_until(lambda: ledger_contains(folder, '"phase":"ready"'))
    parent.suspend()


@mode
def kill_supervisor(kubeconfig: Path, folder: Path) -> None:
    """Kill the suite's process that has to end this program."""
    parent = supervisor()
    wait_until(lambda: ledger_contains(folder, '"phase":"ready"'))
    parent.kill()


@mode
def replace_log_with_pipe(kubeconfig: Path, folder: Path) -> None:
    """After a failure, replace this program's log with a pipe that has no writer."""
    path = log_path()
    wait_until(lambda: has_failed_check(folder))
    path.unlink()
    os.mkfifo(path)


@mode
def rewrite_ledger(kubeconfig: Path, folder: Path) -> None:
    """Turn each failure in the ledger into a pass, in place."""
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        wait_until(lambda: has_failed_check(folder))
        for path in folder.glob("reports/*/ledger/*.jsonl"):
            with path.open("r+") as file:
                file.write(path.read_text().replace('"outcome":"failed"', '"outcome":"passed"'))


@mode
def cut_audit_log(kubeconfig: Path, folder: Path) -> None:
    """Truncate the audit log of the API server."""
    [path] = kubeconfig.parents[1].rglob("audit.log")
    wait_until(lambda: ledger_contains(folder, '"phase":"ready"'))
    os.truncate(path, 0)


@mode
def rewrite_kubeconfig(kubeconfig: Path, folder: Path) -> None:
    """Make the suite's kubeconfig point to an unused port, before the suite records anything."""
    path = kubeconfig.with_name(users.SUITE)
    path.write_text(re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:1", path.read_text()))


@mode
def write_junk(kubeconfig: Path, folder: Path) -> None:
    """After a failure, write junk into the ledger and run.json, and create a pipe and a folder where the run expects
    files."""
    [ledger] = folder.glob("reports/*/ledger/run.jsonl")
    wait_until(lambda: has_failed_check(folder))
    with ledger.open("a") as file:
        file.write("junk\n")
    os.mkfifo(ledger.with_name("a.jsonl"))
    (ledger.parents[1] / "report.tmp").mkdir()
    (ledger.parents[1] / "run.json").write_text("junk")


@mode
def remove_folder(kubeconfig: Path, folder: Path) -> None:
    """After a failure, delete the folder of the run."""
    wait_until(lambda: has_failed_check(folder))
    for path in folder.glob("reports/*"):
        shutil.rmtree(path, ignore_errors=True)


@mode
def flood_output(kubeconfig: Path, folder: Path) -> None:
    """Write gigabytes of output without a newline."""
    for _ in range(4 << 10):
        os.write(1, b"x" * (1 << 20))


@mode
def drip_response(kubeconfig: Path, folder: Path) -> None:
    """Respond on the port DRIP with a status line that never ends."""
    with socket.create_server(("127.0.0.1", int(os.environ["DRIP"]))) as server:
        while True:
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):
                connection.sendall(b"HTTP/1.1 200 ")
                while True:
                    connection.sendall(b"O")
                    time.sleep(0.5)


@mode
def print_repeated_letter(kubeconfig: Path, folder: Path) -> None:
    """Write a line for which some regular expressions take exponential time."""
    os.write(1, b"a" * 60 + b"!\n")


@mode
def remove_webhooks(kubeconfig: Path, folder: Path) -> None:
    """Delete all webhook configurations, which were installed before this program was started."""
    for plural in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
        for configuration in json.loads(send(kubeconfig, "GET", f"{ADMISSION}/{plural}"))["items"]:
            send(kubeconfig, "DELETE", f"{ADMISSION}/{plural}/{configuration['metadata']['name']}")


@mode
def delete_nodes(kubeconfig: Path, folder: Path) -> None:
    """Delete nodes of tests with a user agent of the suite, while impersonating a cluster component."""
    component = {"Impersonate-User": "kwok-admin", "Impersonate-Group": "system:masters"}
    while True:
        for name in existing_nodes(kubeconfig):
            with contextlib.suppress(ApiError):
                send(kubeconfig, "DELETE", f"{NODES}/{name}", agent="grove-conformance/suite", headers=component)


@mode
def set_node_owners(kubeconfig: Path, folder: Path) -> None:
    """Give nodes of tests an owner that does not exist, so that the garbage collector deletes them."""
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": "nobody", "uid": "00000000-0000-0000-0000-000000000001"}
    change = {"metadata": {"ownerReferences": [owner]}}
    while True:
        for name in existing_nodes(kubeconfig):
            with contextlib.suppress(ApiError):
                send(kubeconfig, "PATCH", f"{NODES}/{name}", change, content_type=MERGE_PATCH)


@mode
def grow_nodes(kubeconfig: Path, folder: Path) -> None:
    """Give each node of a test a hundred GPUs, so that every placement fits."""

    def add_gpus(node: Any) -> None:
        amounts = {**node["status"]["allocatable"], "nvidia.com/gpu": "100"}
        if amounts != node["status"]["allocatable"]:
            body = {"status": {"allocatable": amounts, "capacity": amounts}}
            patch(kubeconfig, f"/api/v1/nodes/{node['metadata']['name']}/status", body)

    for_each_object(kubeconfig, "/api/v1/nodes?labelSelector=conformance.grove.io/pool", add_gpus)


def main() -> None:
    """Run the command in this process, and the mode before it or in a child process."""
    name, kubeconfig, folder, _, *command = sys.argv[1:]
    act = MODES[name]
    if act in PREPARATIONS:
        act(Path(kubeconfig), Path(folder))
    elif os.fork() == 0:
        act(Path(kubeconfig), Path(folder))
        return
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
