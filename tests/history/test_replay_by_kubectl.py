"""Tests of the script that repeats what a test did."""

from __future__ import annotations

import subprocess
from pathlib import Path

from conformance.evidence import replay

ACTS: list[replay.Act] = [
    ("create", {"kind": "List", "items": [{"kind": "Node", "metadata": {"name": "n"}}]}),
    ("create", {"kind": "Pod", "metadata": {"name": "p"}}),
    ("wait", {"for": "p's node"}),
    ("wait", {"for": "again"}),
    ("patch pods/p", {"spec": {"schedulingGates": None}}),
    ("delete pods/p", {"propagationPolicy": "Background"}),
    ("create", {"kind": "PodGang", "metadata": {"name": "g"}, "status": {"phase": "x"}}),
    ("evict pods/q", {}),
]
KUBECTL = """#!/bin/sh
case "$*" in *"get pods --no-headers"*) echo p n; exit;; esac
echo "$@" >>"$CALLS"
case "$*" in *"apply"*) cat >>"$CALLS";; esac
"""


def test_the_script_repeats_the_actions_of_the_test(tmp_path: Path) -> None:
    kubectl, calls = tmp_path / "kubectl", tmp_path / "calls"
    kubectl.write_text(KUBECTL)
    kubectl.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "CALLS": str(calls), "REST": "0"}
    subprocess.run(["sh", "-c", replay.script(ACTS, "one")], env=environment, check=True, timeout=30)
    option = "--namespace one"
    node_wait = "wait node --all --for=condition=Ready --timeout=60s"
    assert calls.read_text().splitlines() == [
        "create namespace one",
        f"{option} apply --filename -",
        *("kind: List", "items:", "- kind: Node", "  metadata:", "    name: n", "---"),
        *("kind: Pod", "metadata:", "  name: p"),
        node_wait,
        f'{option} patch pods/p --type merge --patch {{"spec": {{"schedulingGates": null}}}}',
        f"{option} delete pods/p --cascade=background --wait=false",
        f"{option} apply --filename -",
        *("kind: PodGang", "metadata:", "  name: g", "status:", "  phase: x"),
        f'{option} patch PodGang/g --subresource status --type merge --patch {{"status": {{"phase": "x"}}}}',
        node_wait,
        f"{option} get pods --output wide",
    ]
