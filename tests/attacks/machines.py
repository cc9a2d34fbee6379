"""Tests that no verdict depends on a machine whose wall clock jumps, or whose disk becomes full during a run.

Each test is a whole run on a cluster, so `make attacks` runs this file and `make test` does not.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from tests.attacks.environments import needs_namespaces, start_run
from tests.attacks.helpers import ledger_contains, wait_until
from tests.suite.remains import remains

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

READY = '"phase":"ready"'
"""The words in the ledger of a run that can begin to judge."""
CLOCK = """
import os, time
real, jump = time.time, os.environ["JUMP"]
time.time = lambda: real() + (float(open(jump).read()) if os.path.exists(jump) else 0)
"""
"""A module that Python imports at its start: the wall clock jumps when the file JUMP appears."""
SMALL_DISK = """
set -u; folder=$1; shift
mkdir "$folder/disk" && mount -t tmpfs -o size=400m none "$folder/disk" && mkdir "$folder/disk/reports"
(
  until [ -e "$folder/ended" ] ||
    cat "$folder"/reports/*/ledger/*.jsonl "$folder"/disk/reports/*/ledger/*.jsonl 2> "$folder/message" |
    grep -q '"phase":"ready"'; do sleep 0.2; done
  until [ -e "$folder/ended" ]; do cat /dev/zero >> "$folder/disk/full" 2> "$folder/message"; sleep 0.2; done
) &
"$@"
code=$?
touch "$folder/ended" && wait
cp -a "$folder/disk/reports" "$folder"
[ -e "$folder/disk/state" ] && cp -a "$folder/disk/state" "$folder"
exit $code
"""
"""A script that plays a run on a disk of 400 MiB, which is full as soon as the run can begin to judge."""


@pytest.mark.parametrize(("moment", "seconds"), [("start", -3600), ("middle", 3600), ("middle", -3600)])
def test_a_wrong_clock_fails_no_requirement(moment: str, seconds: int, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(CLOCK)
    modules = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    if moment == "start":
        (tmp_path / "jump").write_text(str(seconds))
    run = start_run(tmp_path, {"PYTHONPATH": modules, "JUMP": str(tmp_path / "jump")})
    wait_until(lambda: run.poll() is not None or ledger_contains(tmp_path, READY))
    (tmp_path / "jump").write_text(str(seconds))
    terminal, _ = run.communicate()
    if moment == "start":
        assert run.returncode == 0, terminal
    else:
        assert run.returncode == 3 and f"the wall clock jumped by {seconds:+}" in terminal, terminal
    assert "Traceback" not in terminal and remains(tmp_path / "state") == []


@needs_namespaces
@pytest.mark.parametrize(
    ("state", "reports"), [("disk/state", "disk/reports"), ("disk/state", "reports"), ("state", "disk/reports")]
)
def test_a_full_disk_fails_no_requirement(state: str, reports: str, tmp_path: Path) -> None:
    script = f"exec unshare --mount --map-root-user sh -c {shlex.quote(SMALL_DISK)} sh {tmp_path}"
    run = start_run(tmp_path, {}, f'{script} "$@"', state, reports)
    terminal, _ = run.communicate()
    assert "No space left on device" in (tmp_path / "message").read_text()
    assert run.returncode == 3, terminal
    assert "Traceback" not in terminal and remains(tmp_path / state) == []
