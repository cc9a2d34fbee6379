"""The console to which commands print tables."""

from __future__ import annotations

from rich.console import Console

UNLIMITED_WIDTH = 10_000


def console() -> Console:
    """Return a console for standard output, as wide as the terminal. In a pipe or a file, no line is cut off or
    wrapped."""
    terminal = Console()
    return terminal if terminal.is_terminal else Console(width=UNLIMITED_WIDTH)
