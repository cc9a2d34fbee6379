"""Attacks as data (attacks.yaml), and runs of them: the reference, with a hostile program alongside one of its
processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import psutil
import yaml
from msgspec import Meta, field

from conformance import formats
from conformance.data import PROJECT
from conformance.formats import Format, Text

HERE = Path(__file__).parent
REFERENCE = PROJECT / "fixtures" / "implementations" / "reference.yaml"
CHECK_INTERVAL_SECONDS = 0.1
"""Seconds between two checks of the processes' memory."""


Texts = tuple[Text, ...]


class Attack(Format, frozen=True, kw_only=True):
    """An attack, and what a run must report about it."""

    name: Annotated[str, Meta(pattern="^[a-z0-9]+(-[a-z0-9]+)*$")]
    tries: Annotated[str, Meta(min_length=10, description="one sentence without a subject")]
    mode: str = "do-nothing"
    """What hostile.py does alongside the process."""
    role: Literal["operator", "gang-scheduler"] = "operator"
    """The role whose process is hostile."""
    set: dict[str, str] = field(default_factory=dict)
    """Parameters of the descriptor of the reference, such as a mutant."""
    descriptor: dict[str, Any] = field(default_factory=dict)
    """A JSON merge patch of that descriptor."""
    select: list[Annotated[str, Meta(pattern="^--(id|profile|test|time-scale|fail-fast)")]]
    """The arguments that select what is judged."""
    workers: Annotated[int, Meta(ge=0, le=2)] = 1
    exit: Annotated[int, Meta(ge=0, le=8, description="the exit code")]
    verdict: str = ""
    """`verdict.result` of the report; without it, there must be no report."""
    outcomes: dict[str, str] = field(default_factory=dict)
    """Outcomes of requirements."""
    shows: Texts = ()
    """What the terminal shows."""
    once: Texts = ()
    """What the terminal shows exactly once."""
    hides: Texts = ()
    """What neither the terminal nor any file of the run contains."""
    seconds: Annotated[int, Meta(ge=1)] = 180
    """How long the run may take on a machine with other work to do."""


class AttackList(Format, frozen=True):
    """The format of attacks.yaml."""

    api_version: Literal["conformance.grove.io/v1alpha1"]
    kind: Literal["Attacks"]
    attacks: Annotated[list[Attack], Meta(min_length=1)]


def load_attacks() -> list[Attack]:
    """Return the attacks of attacks.yaml. Raises UsageError if the file is invalid."""
    return formats.read(HERE / "attacks.yaml", AttackList)[1].attacks


@dataclass(frozen=True)
class AttackResult:
    """The result of a run under attack. `peak_memory` is that of its largest Python process in MiB."""

    exit_code: int
    output: str
    folder: Path
    seconds: float
    peak_memory: float

    @property
    def report(self) -> dict[str, Any] | None:
        """Return the report, or None if there is none."""
        path = next(self.folder.glob("reports/*/report.yaml"), None)
        return yaml.safe_load(path.read_text()) if path else None

    def files_containing(self, text: str) -> list[str]:
        """Return the report files that contain the text, and the word "terminal" if the terminal output contains the
        text."""
        files = [path for path in self.folder.glob("reports/**/*") if path.is_file() and not path.is_symlink()]
        containing = [str(path) for path in files if text.encode() in path.read_bytes()]
        return containing + ["terminal"] * (text in self.output)


def write_descriptor(attack: Attack, folder: Path) -> Path:
    """Write a descriptor of the reference that starts one of its processes through the hostile program, and return its
    path."""
    text = REFERENCE.read_text().replace("${here}", str(REFERENCE.parent))
    patched = _apply_merge_patch(yaml.safe_load(text), attack.descriptor)
    process = patched["processes"][attack.role]
    hostile = [str(HERE / "hostile.py"), attack.mode, "${kubeconfig}", str(folder), "--"]
    process["argv"] = ["${python}", *hostile, *process["argv"]]
    path = folder / "hostile.yaml"
    path.write_text(yaml.safe_dump(patched, sort_keys=False))
    return path


def run(attack: Attack, folder: Path) -> AttackResult:
    """Run the suite on an attack. Raises TimeoutError if the run takes longer than `attack.seconds`."""
    command = [sys.executable, "-m", "conformance", "run", "--implementation", str(write_descriptor(attack, folder))]
    command += [f"--set={name}={value}" for name, value in attack.set.items()]
    command += [*attack.select, f"--workers={attack.workers}", f"--report-dir={folder / 'reports'}"]
    started_at, output_path = time.monotonic(), folder / "terminal.txt"
    with output_path.open("wb") as file:
        environment = os.environ | {"GROVE_CONFORMANCE_STATE": str(folder / "state")}
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        peak_memory = 0.0
        while process.poll() is None:
            peak_memory = max(peak_memory, _peak_memory(process.pid))
            if time.monotonic() - started_at > attack.seconds:
                process.terminate()
                process.wait(90)
                text = output_path.read_text("utf-8", "replace")
                raise TimeoutError(f"{attack.name} takes more than {attack.seconds} s:\n{text}")
            time.sleep(CHECK_INTERVAL_SECONDS)
    output = output_path.read_text("utf-8", "replace")
    return AttackResult(process.returncode, output, folder, time.monotonic() - started_at, peak_memory)


def _apply_merge_patch(value: Any, patch: Any) -> Any:
    """Return the value to which a JSON merge patch is applied."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for key, change in patch.items():
        result[key] = _apply_merge_patch(result.get(key), change)
    return {key: inner for key, inner in result.items() if inner is not None}


def _peak_memory(pid: int) -> float:
    """Return the peak memory in MiB of the largest Python process among a process and its descendants: the processes
    of the harness and the hostile program."""
    maximum = 0
    try:
        processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0.0
    for process in processes:
        try:
            if Path(process.exe()).name.startswith("python"):
                status = Path(f"/proc/{process.pid}/status").read_text()
                peak = next((line for line in status.splitlines() if line.startswith("VmHWM")), "VmHWM: 0 kB")
                maximum = max(maximum, int(peak.split()[1]))
        except (psutil.Error, OSError):
            continue
    return maximum / 1024
