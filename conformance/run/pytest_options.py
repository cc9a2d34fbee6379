"""The user's options for pytest itself, which follow `--` on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from conformance.errors import UsageError

COUNTERPARTS = {
    "-n": "--workers",
    "--numprocesses": "--workers",
    "--dist": "--workers",
    "--lf": "--rerun-failed",
    "--last-failed": "--rerun-failed",
    "--conformance-run": "the other options of run",
    "--collect-only": "grove-conformance list",
    "--co": "grove-conformance list",
}
"""Options of pytest that a run sets itself, with the options to use instead."""
_INTERACTIVE = ("--pdb", "--trace", "-s", "--capture=no")


def check(options: tuple[str, ...]) -> tuple[str, ...]:
    """Return the options. Raises UsageError for an argument before `--`, and for options that a run sets itself."""
    if options and not options[0].startswith("-"):
        hint = "options of pytest follow after --, for example: run -- -k gang"
        raise UsageError(f"unexpected argument {options[0]!r}", where="run", hint=hint)
    for option in options:
        name = option.partition("=")[0]
        name = "-n" if name[:2] == "-n" and name[2:].isdigit() else name
        if name in COUNTERPARTS:
            raise UsageError(f"{name} is not for pytest here", where=f"-- {option}", hint=f"use {COUNTERPARTS[name]}")
    return options


def is_interactive(options: Sequence[str]) -> bool:
    """Return whether the user interacts with pytest, which then needs the terminal."""
    return any(option in _INTERACTIVE for option in options)


def rejection_error(log: Path) -> UsageError:
    """Return the error for options that pytest has rejected, with pytest's own message from its log."""
    lines = log.read_text("utf-8", errors="replace").splitlines()
    message = next((line for line in reversed(lines) if "error: " in line.lower()), "pytest refuses them")
    return UsageError(message.rpartition("rror: ")[2], where="run -- (pytest's options)", hint="see pytest --help")
