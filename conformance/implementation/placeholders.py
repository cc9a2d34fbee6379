"""Placeholders (`${…}`) in the strings of a descriptor. Pure: independent of files, ports and processes.

The names are `python`, `project`, `here`, `kubeconfig`, `directory`, `schedulerName`, `certificates`, `ca`,
`leaderElection`, `leaseNamespace`, `port.<name>`, `file.<name>`, `set.<parameter>` and, in additions to pods, `podGang`
and `podClique`. `$${` is a literal `${`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from conformance.grove import labels
from conformance.suggestions import suggestion

SIMPLE_NAMES = frozenset(
    {"python", "project", "here", "kubeconfig", "directory", "schedulerName", "certificates", "ca"}
    | {"leaderElection", "leaseNamespace"}
)
POD_LABELS = {"podGang": labels.GANG, "podClique": labels.CLIQUE}
"""Placeholders for pods, and the pod label whose value replaces each placeholder."""
FAMILIES = frozenset({"port", "file", "set"})
_PATTERN = re.compile(r"\$\$\{|\$\{([^{}]*)\}|\$\{")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class UnknownPlaceholder(Exception):
    """An invalid placeholder. `str()` says what is wrong, and `hint` how to fix it; the caller knows the location."""

    def __init__(self, problem: str, hint: str) -> None:
        self.hint = hint
        super().__init__(problem)


def names_in(text: str) -> Iterator[str]:
    """Yield the names between `${` and `}`, in order. Raises UnknownPlaceholder for a `${` that is not closed."""
    for match in _PATTERN.finditer(text):
        if match[0] == "$${":
            continue
        if match[1] is None:
            raise UnknownPlaceholder("a placeholder is not closed", "close it with }, or write $${ for a plain ${")
        yield match[1]


def check(
    text: str,
    *,
    files: Iterable[str] = (),
    parameters: Iterable[str] = (),
    process: bool = True,
    additional_names: Iterable[str] = (),
) -> None:
    """Raise UnknownPlaceholder unless every placeholder is defined here.

    `files` and `parameters` are the declared names. Outside a `process` there are no files. `additional_names` are
    known only here.
    """
    for name in names_in(text):
        family, dot, suffix = name.partition(".")
        if not dot:
            if name not in SIMPLE_NAMES and name not in additional_names:
                placeholders = {*_all_names(files, parameters, process), *additional_names}
                raise UnknownPlaceholder(f"${{{name}}} is not known", suggestion(name, placeholders))
        elif family == "port" and _NAME.fullmatch(suffix):
            continue
        elif family == "file" and not process:
            raise UnknownPlaceholder(f"${{{name}}} has no meaning here", "files belong to a process")
        elif family == "file" and suffix not in files:
            raise UnknownPlaceholder(f"${{{name}}}: there is no such file in this process", suggestion(suffix, files))
        elif family == "set" and suffix not in parameters:
            raise UnknownPlaceholder(f"${{{name}}}: there is no such parameter", suggestion(suffix, parameters))
        elif family not in FAMILIES:
            raise UnknownPlaceholder(
                f"${{{name}}} is not known", suggestion(name, _all_names(files, parameters, process))
            )
        elif family == "port":
            raise UnknownPlaceholder(f"${{{name}}}: a port needs a name", "write for example ${port.health}")


def expand(text: str, value: Callable[[str], str]) -> str:
    """Return `text` with each placeholder replaced by `value(name)`. Placeholders within values are not expanded."""

    def replacement(match: re.Match[str]) -> str:
        return "${" if match[1] is None else value(match[1])

    return _PATTERN.sub(replacement, text)


def _all_names(files: Iterable[str], parameters: Iterable[str], process: bool) -> set[str]:
    names = {*SIMPLE_NAMES, "port.health", *(f"set.{name}" for name in parameters)}
    return names | {f"file.{name}" for name in files} if process else names


STATIC = frozenset({"python", "project", "here", "schedulerName"})


def is_static(name: str) -> bool:
    """Return whether the value of a placeholder is known without a cluster."""
    return name in STATIC or name.startswith("set.")


def option(text: str) -> str:
    """Return `--set NAME` for the first parameter in a text, with which a user can correct the parameter's value; an
    empty string if there is no parameter."""
    parameter_names = [name.removeprefix("set.") for name in names_in(text) if name.startswith("set.")]
    return f"--set {parameter_names[0]}" if parameter_names else ""
