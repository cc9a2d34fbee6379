"""Shared parts of both commands of nemesis: the implementation that they disturb, and their command lines."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Annotated

import typer

from conformance.errors import UsageError
from conformance.implementation import deployment, discovery
from conformance.implementation.descriptor import Descriptor, Role

Implementation = Annotated[str, typer.Option(help="Implementation (name or path of a descriptor).")]
Settings = Annotated[list[str] | None, typer.Option("--set", help="Set a parameter of the descriptor, NAME=VALUE.")]


def load(implementation: str, settings: Mapping[str, str], role: Role) -> tuple[Descriptor, Descriptor | None]:
    """Return the judged implementation, completed with what its CRDs show, and the supplier of the roles that it does
    not play."""
    judged, supplied = deployment.load(implementation, settings)
    if role not in judged.processes:
        raise UsageError(
            f"does not start the {role} as processes of its own",
            where=judged.document.location("processes"),
            hint="only processes that are given a kubeconfig can be put behind a proxy",
        )
    return discovery.complete(judged), supplied


def command_line(
    command: str, implementation: str, settings: Mapping[str, str], options: Iterable[tuple[str, object]]
) -> str:
    """Return a command line of nemesis. An option without a value is left out. True stands for a flag, and a list for
    an option that is repeated."""
    arguments = ["grove-conformance", "nemesis", command, "--implementation", implementation]
    for name, value in settings.items():
        arguments += ["--set", f"{name}={value}"]
    for option, option_value in options:
        if option_value is True:
            arguments.append(option)
        elif isinstance(option_value, list):
            arguments += [argument for value in option_value for argument in (option, str(value))]
        elif option_value:
            arguments += [option, str(option_value)]
    return shlex.join(arguments)
