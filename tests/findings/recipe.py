"""Recipes of findings: the commands in a page's `console` blocks, and the output that the page shows for them.

A command starts with `$ ` and continues until the shell considers it complete, for example at the end of a quotation or
of a here document. The lines up to the next command are its output. `…` matches any text, and consecutive spaces count
as one space.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from conformance import data
from conformance.report.findings import Finding, read

RECORD_FILE = data.folder("fixtures") / "findings" / "recipes.yaml"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)
PROMPT, ANY_TEXT = "$ ", "…"
WARNING = "Warning: "
"""The prefix of an admission warning. Outputs may contain warnings that the page does not show."""


@dataclass(frozen=True)
class Command:
    """A command as it is passed to the shell, and the lines of output that the page shows for it."""

    text: str
    output: tuple[str, ...]


@dataclass(frozen=True)
class Recipe:
    """The commands that show a finding: the `preparation`, which precedes the first finding on the page, and then the
    `commands` of the finding itself."""

    finding: Finding
    preparation: tuple[Command, ...]
    commands: tuple[Command, ...]

    @property
    def name(self) -> str:
        """Return the recipe's key in the record of recipes that have been run."""
        return f"{self.finding.page.name}: {', '.join(self.finding.ids)}"

    @property
    def digest(self) -> str:
        """Return a digest of all commands and outputs."""
        lines = [line for command in (*self.preparation, *self.commands) for line in (command.text, *command.output)]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def read_recipes(page: Path) -> Iterator[Recipe]:
    """Yield the recipe of each finding on a page. A recipe has no commands if the section of the finding has none."""
    findings = read([page])
    first_line = min((finding.line for finding in findings), default=0)
    text_before = "\n".join(page.read_text("utf-8").splitlines()[: max(0, first_line - 1)])
    preparation = tuple(commands(text_before))
    for finding in findings:
        yield Recipe(finding, preparation, tuple(commands(finding.body)))


def commands(text: str) -> Iterator[Command]:
    """Yield the commands in all console blocks of a text."""
    for block in BLOCK.findall(text):
        lines: list[str] = block.splitlines()
        while lines:
            command = lines.pop(0).removeprefix(PROMPT)
            while lines and not is_complete(command):
                command += "\n" + lines.pop(0)
            output = []
            while lines and not lines[0].startswith(PROMPT):
                output.append(lines.pop(0))
            yield Command(command, tuple(output))


def is_complete(command: str) -> bool:
    """Return whether the shell would run this text instead of waiting for more input."""
    if command.endswith("\\"):
        return False
    result = subprocess.run(["bash", "-n"], input=command, capture_output=True, text=True)
    return result.returncode == 0 and "here-document" not in result.stderr


def matches(expected: tuple[str, ...], output: str) -> bool:
    """Return whether an output matches the lines that the page shows."""
    lines = [" ".join(line.split()) for line in output.splitlines() if line.strip()]
    if not any(WARNING in line for line in expected):
        lines = [line for line in lines if not line.startswith(WARNING)]
    pattern = "\n".join(re.escape(" ".join(line.split())) for line in expected if line.strip())
    return re.fullmatch(pattern.replace(re.escape(ANY_TEXT), ".*"), "\n".join(lines), re.S) is not None


def recorded_digests() -> dict[str, str]:
    """Return the digests, by name, of the recipes whose outputs matched their pages in their last run."""
    if not RECORD_FILE.is_file():
        return {}
    digests: dict[str, str] = yaml.safe_load(RECORD_FILE.read_text("utf-8"))["recipes"]
    return digests
