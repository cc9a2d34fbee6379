"""The options that a user has given, options that exclude each other, and options that are a class."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Set
from typing import Any, TypeVar, get_type_hints

import typer

from conformance.errors import UsageError

Options = TypeVar("Options")


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


def decode_into(options: type[Options]) -> Callable[[Callable[[typer.Context, Options], Any]], Callable[..., Any]]:
    """Decorate a command that takes the fields of a dataclass as options, and receives an instance."""

    def decorate(command: Callable[[typer.Context, Options], Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def decoded(ctx: typer.Context, **values: Any) -> Any:
            return command(ctx, options(**values))

        hints = {"ctx": typer.Context, **get_type_hints(options, include_extras=True)}
        first = list(inspect.signature(decoded, follow_wrapped=False).parameters.values())[:1]
        parameters = [*first, *inspect.signature(options).parameters.values()]
        decoded.__annotations__ = hints
        decoded.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [parameter.replace(annotation=hints[parameter.name]) for parameter in parameters]
        )
        return decoded

    return decorate
