"""Attacks as data (attacks.yaml), and runs of them: the reference, with a hostile program alongside one of its
processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import psutil
import yaml

from conformance import documents
from conformance.data import PROJECT

HERE = Path(__file__).parent
REFERENCE = PROJECT / "fixtures" / "implementations" / "reference.yaml"
CHECK_INTERVAL = 0.1
"""Seconds between two checks of the processes' memory."""


class Attack(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An attack, and what a run must report about it. attacks.schema.json describes the fields."""

    name: str
    tries: str
    mode: str = "nothing"
    role: str = "operator"
    set: dict[str, str] = {}
    descriptor: dict[str, Any] = {}
    select: list[str]
    workers: int = 1
    exit: int
    verdict: str = ""
    outcomes: dict[str, str] = {}
    shows: list[str] = []
    once: list[str] = []
    hides: list[str] = []
    seconds: int = 180


def attacks() -> list[Attack]:
    """Return the attacks of attacks.yaml. Raises UsageError."""
    document = documents.read(HERE / "attacks.yaml", HERE / "attacks.schema.json")
    return msgspec.convert(document.value["attacks"], list[Attack])


@dataclass(frozen=True)
class Attacked:
    """The result of a run under attack. `memory` is the peak memory of its largest Python process in MiB."""

    exit: int
    terminal: str
    folder: Path
    seconds: float
    memory: float

    @property
    def report(self) -> dict[str, Any] | None:
        """Return the report, or None if there is none."""
        path = next(self.folder.glob("reports/*/report.yaml"), None)
        return yaml.safe_load(path.read_text()) if path else None

    def contains(self, text: str) -> list[str]:
        """Return the report files that contain the text, and the word "terminal" if the terminal output contains it."""
        files = [path for path in self.folder.glob("reports/**/*") if path.is_file() and not path.is_symlink()]
        containing = [str(path) for path in files if text.encode() in path.read_bytes()]
        return containing + ["terminal"] * (text in self.terminal)


def descriptor(attack: Attack, folder: Path) -> Path:
    """Write a descriptor of the reference that starts one of its processes through the hostile program, and return its
    path."""
    text = REFERENCE.read_text().replace("${here}", str(REFERENCE.parent))
    patched = _patched(yaml.safe_load(text), attack.descriptor)
    process = patched["processes"][attack.role]
    hostile = [str(HERE / "hostile.py"), attack.mode, "${kubeconfig}", str(folder), "--"]
    process["argv"] = ["${python}", *hostile, *process["argv"]]
    path = folder / "hostile.yaml"
    path.write_text(yaml.safe_dump(patched, sort_keys=False))
    return path


def run(attack: Attack, folder: Path) -> Attacked:
    """Run the suite on an attack. Raises TimeoutError if the run takes longer than `attack.seconds`."""
    command = [sys.executable, "-m", "conformance", "run", "--implementation", str(descriptor(attack, folder))]
    command += [f"--set={name}={value}" for name, value in attack.set.items()]
    command += [*attack.select, f"--workers={attack.workers}", f"--report-dir={folder / 'reports'}"]
    start, output = time.monotonic(), folder / "terminal.txt"
    with output.open("wb") as file:
        environment = os.environ | {"GROVE_CONFORMANCE_STATE": str(folder / "state")}
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        memory = 0.0
        while process.poll() is None:
            memory = max(memory, _memory(process.pid))
            if time.monotonic() - start > attack.seconds:
                process.terminate()
                process.wait(90)
                text = output.read_text("utf-8", "replace")
                raise TimeoutError(f"{attack.name} takes more than {attack.seconds} s:\n{text}")
            time.sleep(CHECK_INTERVAL)
    terminal = output.read_text("utf-8", "replace")
    return Attacked(process.returncode, terminal, folder, time.monotonic() - start, memory)


def _patched(value: Any, patch: Any) -> Any:
    """Apply a JSON merge patch."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for key, change in patch.items():
        result[key] = _patched(result.get(key), change)
    return {key: inner for key, inner in result.items() if inner is not None}


def _memory(pid: int) -> float:
    """Return the peak memory in MiB of the largest Python process among this process and its descendants, which are
    those of the harness and the hostile program itself."""
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
