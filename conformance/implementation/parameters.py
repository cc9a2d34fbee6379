"""The values that users give to the parameters of a descriptor: `--set NAME=VALUE`."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from conformance.documents import Document, display_path, suggestion
from conformance.errors import UsageError
from conformance.formats import Format, Text
from conformance.suggestions import explain_missing


class Parameter(Format, frozen=True):
    """One parameter. A value of the kind `path` must exist and is made absolute; a value of the kind `text` is used
    unchanged. The user must give a value if there is no default."""

    description: Annotated[Text, Meta(description="one line that describes the value")]
    kind: Annotated[
        Literal["path", "text"],
        Meta(description="path: must exist, is made absolute; text: used as it is"),
    ] = "text"
    default: Annotated[
        str | None, Meta(description="the value if none is given; without it the parameter is required")
    ] = None


def assignments(texts: Iterable[str], option: str = "--set") -> dict[str, str]:
    """Parse assignments: `["binary=./operator"]` → `{"binary": "./operator"}`. Raises UsageError for invalid and
    duplicate assignments."""
    settings: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(
                f"{text!r} is not NAME=VALUE", where=option, hint=f"for example: {option} binary=./operator"
            )
        if name in settings:
            raise UsageError(f'"{name}" is given twice', where=option, hint="give it once")
        settings[name] = value
    return settings


def require_known(parameters: Collection[str], names: Iterable[str], option: str = "--set") -> None:
    """Raise UsageError if a user sets a parameter that the descriptor does not have."""
    for name in names:
        if name not in parameters:
            hint = suggestion(name, parameters) if parameters else "the descriptor has no parameters: leave it out"
            raise UsageError(f'unknown parameter "{name}"', where=f"{option} {name}", hint=hint)


def resolve(
    parameters: Mapping[str, Parameter], user_values: Mapping[str, str], document: Document, option: str = "--set"
) -> dict[str, str]:
    """Return the value of every parameter. Raises UsageError for an unknown parameter, a missing value, or a path that
    does not exist.

    A relative path from a user is relative to the current folder, and a relative default is relative to the folder of
    the descriptor.
    """
    require_known(parameters, user_values, option)
    missing_parameters = {
        name: declared for name, declared in parameters.items() if declared.default is None and name not in user_values
    }
    if missing_parameters:
        descriptions = ", ".join(
            f"{name} ({parameter.description.rstrip('.')})" for name, parameter in missing_parameters.items()
        )
        subject = "parameters are" if len(missing_parameters) > 1 else "a parameter is"
        options = (
            f"{option} {name}={'PATH' if declared.kind == 'path' else 'VALUE'}"
            for name, declared in missing_parameters.items()
        )
        location = document.location("parameters", next(iter(missing_parameters)))
        raise UsageError(f"{subject} required: {descriptions}", where=location, hint=f"give {' '.join(options)}")
    values: dict[str, str] = {}
    for name, parameter in parameters.items():
        value = user_values.get(name, parameter.default or "")
        if parameter.kind == "path" and value:
            base = Path.cwd() if name in user_values else document.path.absolute().parent
            location = f"{option} {name}" if name in user_values else document.location("parameters", name, "default")
            values[name] = str(_existing_path(base / Path(value).expanduser(), location))
        elif parameter.kind == "path" and name in user_values:
            raise UsageError("is empty", where=f"{option} {name}", hint="give a path")
        else:
            values[name] = value
    return values


def _existing_path(path: Path, location: str) -> Path:
    if not path.exists():
        problem, suggestion = explain_missing(path)
        problem = f"{display_path(path)} does not exist" if problem == "no such file" else problem
        raise UsageError(problem, where=location, hint=suggestion or "give the path of an existing file or folder")
    if not os.access(path, os.R_OK) and path.is_dir():
        raise UsageError(f"{display_path(path)} cannot be read", where=location, hint="fix its permissions")
    return Path(os.path.normpath(path))
