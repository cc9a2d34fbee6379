"""Loads descriptors: finds the file, reads it, and fills in the values of parameters.

`load` reports every mistake that can be found without a cluster. The descriptor that it returns can be started.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from conformance import data, formats
from conformance.documents import Document
from conformance.errors import UsageError
from conformance.implementation import checks
from conformance.implementation.descriptor import SUFFIXES, Descriptor, DescriptorFormat, fill
from conformance.implementation.parameters import Parameter, require_known, resolve
from conformance.suggestions import explain_missing, find_nearest, suggestion

OPTIONS = ("--implementation", "--set")


def load(
    name_or_path: str,
    settings: Mapping[str, str] | None = None,
    *,
    options: tuple[str, str] = OPTIONS,
) -> Descriptor:
    """Return the descriptor with this name in `fixtures/implementations/`, or at this path.

    `settings` are the values of its parameters. Raises UsageError, which names the `options` that gave both arguments.
    """
    document, fields = _read(locate(name_or_path, options[0]))
    settings = resolve(fields.parameters, settings or {}, document, options[1])
    descriptor = fill(document, fields, settings)
    checks.check_values(descriptor)
    return descriptor


def validate(path: Path) -> None:
    """Check a file for all mistakes that can be found without the values of its parameters. Raises UsageError with the
    first mistake."""
    _read(path)


def parameters_without_value(path: Path, set_names: Collection[str]) -> dict[str, Parameter]:
    """Return the descriptor's parameters that have no default and are not in `set_names`. Raises UsageError if the
    descriptor is invalid or does not declare a parameter in `set_names`."""
    _, fields = _read(path)
    require_known(fields.parameters, set_names)
    return {
        name: parameter
        for name, parameter in fields.parameters.items()
        if parameter.default is None and name not in set_names
    }


def folder() -> Path:
    """Return the folder of the descriptors that can be loaded by name."""
    return data.folder("fixtures") / "implementations"


def names() -> list[str]:
    """Return the names of the descriptors that can be loaded by name."""
    return sorted(path.stem for path in folder().glob("*.yaml"))


def locate(name_or_path: str, option: str = OPTIONS[0]) -> Path:
    """Return the file of a descriptor. Raises UsageError with a suggestion for an unknown name."""
    if not name_or_path:
        raise UsageError("is empty", where=option, hint=f"give a file or one of: {', '.join(names())}")
    if "/" in name_or_path or name_or_path.endswith(SUFFIXES):
        path = Path(name_or_path).expanduser()
        if not path.is_file():
            problem, similar_name = ("is a folder", "") if path.is_dir() else explain_missing(path)
            hint = similar_name or "give the path of a descriptor; `implementation new` writes one"
            raise UsageError(problem, where=f"{option} {name_or_path}", hint=hint)
        return path
    if name_or_path not in names():
        files = [path.name for path in Path().glob("*") if path.suffix in SUFFIXES]
        similar_name = find_nearest(name_or_path, names()) or find_nearest(name_or_path, files)
        hint = f'did you mean "{similar_name}"?' if similar_name else suggestion(name_or_path, names())
        raise UsageError(
            f'unknown implementation "{name_or_path}"', where=option, hint=f"{hint} or give the path of a descriptor"
        )
    return folder() / f"{name_or_path}.yaml"


def _read(path: Path) -> tuple[Document, DescriptorFormat]:
    document, fields = formats.read(path, DescriptorFormat)
    checks.check(document, fields)
    return document, fields
