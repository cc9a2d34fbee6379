"""The options that a user has given, and options that exclude each other."""

from __future__ import annotations

from collections.abc import Set

import typer

from conformance.errors import UsageError


def given_names(context: typer.Context) -> set[str]:
    """Return the names of the parameters that were given on the command line."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}


def refuse(context: typer.Context, names: Set[str], *, option_in_use: str, reason: str, alternative: str) -> None:
    """Raise UsageError if one of these parameters is given together with the option `option_in_use`. The message
    contains `reason` and `alternative`, another way to avoid the conflict."""
    for parameter in context.command.params:
        if parameter.name in given_names(context) & names:
            option = parameter.opts[0]
            raise UsageError(
                f"{reason}, so {option} cannot be given",
                where=option_in_use,
                hint=f"leave out {option}, or {alternative}",
            )
