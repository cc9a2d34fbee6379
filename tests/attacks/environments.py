"""Tests that a verdict does not depend on a run's environment: time zone, locale, proxies, user and limits of the
shell.

Each test is a whole run on a cluster, so `make attacks` runs this file and `make test` does not.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.suite.remains import remains

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
TIME_ZONE, TERMINAL = {"TZ": "Pacific/Kiritimati"}, {"COLUMNS": "20", "TERM": "dumb"}
ENVIRONMENTS = {
    "locale-without-utf-8": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "time-zone-narrow-terminal-and-proxies-that-do-not-answer": TIME_ZONE
    | TERMINAL
    | dict.fromkeys(PROXIES, "http://127.0.0.1:9"),
}
"""Variables that have nothing to do with each other are set in one run, because each run takes a cluster."""
SHELLS = {
    "umask-000": "umask 000",
    "umask-077-and-256-descriptors": "umask 077; ulimit -n 256",
    "another-user": 'exec unshare --user --map-user 1000 --map-group 1000 "$@"',
}
UNSHARE = ("unshare", "--user", "--map-root-user", "--mount", "true")
needs_namespaces = pytest.mark.skipif(
    shutil.which("unshare") is None or subprocess.run(UNSHARE, capture_output=True).returncode != 0,
    reason="this user cannot create namespaces of users and mounts",
)


def start_run(
    folder: Path, environment: dict[str, str], shell: str = ":", state: str = "state", reports: str = "reports"
) -> subprocess.Popen[str]:
    """Start a run of one requirement from a shell that first executes the command `shell`."""
    command = [sys.executable, "-m", "conformance", "run", "--implementation", "reference", "--id", "CORE-006"]
    command += ["--workers", "1", "--report-dir", str(folder / reports)]
    return subprocess.Popen(
        ["sh", "-c", f'{shell}; exec "$@"', "sh", *command],
        env={**os.environ, "GROVE_CONFORMANCE_STATE": str(folder / state), **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    )


@pytest.mark.parametrize(
    "environment_name",
    [*ENVIRONMENTS, *(pytest.param(name, marks=[needs_namespaces] * ("unshare" in SHELLS[name])) for name in SHELLS)],
)
def test_the_reference_passes_in_each_environment(environment_name: str, tmp_path: Path) -> None:
    run = start_run(tmp_path, ENVIRONMENTS.get(environment_name, {}), SHELLS.get(environment_name, ":"))
    terminal, _ = run.communicate()
    assert run.returncode == 0, terminal
    assert remains(tmp_path / "state") == []


def test_two_runs_at_once_share_a_folder_of_reports(tmp_path: Path) -> None:
    runs = [start_run(tmp_path, {}, state=state) for state in ("first", "second")]
    terminals = [run.communicate()[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], "\n".join(terminals)
    assert len(list(tmp_path.glob("reports/*/report.yaml"))) == 2
