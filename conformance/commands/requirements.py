"""`grove-conformance list | explain | docs`: prints the registry and the specification, without a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from conformance import data
from conformance.documents import suggestion
from conformance.errors import UsageError
from conformance.implementation.descriptor import Role
from conformance.suite.registry import requirement
from conformance.suite.registry.selection import scope


def list_requirements(
    profile: Annotated[list[str] | None, typer.Option(help="List only this profile (repeatable).")] = None,
    level: Annotated[str, typer.Option(help="List only requirements of this level: MUST, SHOULD, MAY or COMPAT.")] = "",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """List the requirements."""
    from conformance.suite.registry import catalogue  # each command imports only what it needs

    registry = requirement.load()
    scope(registry, profile or (), (), tuple(Role), registry.features)
    if level and level not in list(requirement.Level):
        raise UsageError(f"unknown level {level!r}", where="--level", hint=suggestion(level, requirement.Level))
    chosen = [
        entry
        for entry in registry.requirements.values()
        if (not profile or entry.profile in profile) and level in ("", entry.level)
    ]
    for entry in chosen:
        typer.echo(catalogue.json_line(entry) if json else f"{entry.id}  {entry.profile}  {entry.level}  {entry.text}")
    if not chosen and not json:
        typer.echo("none")


def explain(
    id: Annotated[
        str, typer.Argument(help="Requirement such as GANG-001, or row of the specification such as OBJ-123.")
    ],
) -> None:
    """Explain a requirement: its text, sources, tests, mutants, and how to run it or check it by hand.

    For an id of the specification, show its row and the requirements that follow from it.
    """
    from conformance.suite.registry import explain as explanation

    typer.echo(explanation.explain(id))


def docs(
    check: Annotated[bool, typer.Option("--check", help="Only check that the file is up to date.")] = False,
    to: Annotated[
        Path | None, typer.Option(help="File to write; by default docs/requirements.md of this checkout.")
    ] = None,
) -> None:
    """Write docs/requirements.md from the registry."""
    from conformance.suite.registry import catalogue

    to = to or data.page("requirements.md")
    text = catalogue.markdown(requirement.load())
    if check:
        if not to.is_file() or to.read_text("utf-8") != text:
            raise UsageError("is not up to date", where=str(to), hint="run: grove-conformance docs")
        return
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(text, "utf-8")
    typer.echo(str(to))
