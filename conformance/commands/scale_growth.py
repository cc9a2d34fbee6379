"""`grove-conformance scale growth`: parses, reads, prints."""

from __future__ import annotations

from typing import Annotated

import typer

from conformance.errors import UsageError
from conformance.scale import growth as growths
from conformance.scale.compare import sides


def growth(
    results: Annotated[list[str], typer.Argument(help="Result files, or folders with them.")],
    pods: Annotated[int, typer.Option(min=1, help="Number of pods to extrapolate to.")] = 100_000,
) -> None:
    """Show which values grow with the number of pods, and how, as a Markdown table: times, CPU, memory, storage."""
    stored_results, rejections = sides.load_readable(results)
    for reason in rejections:
        typer.echo(f"left out: {reason}", err=True)
    if not stored_results:
        raise UsageError("there is no result", hint="name result files or folders")
    typer.echo(growths.table(stored_results, pods))
