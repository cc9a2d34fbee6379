"""Limits for files of users: their length, their depth, and their number of values with all aliases expanded.

A few lines of YAML can stand for more values than fit into memory, because an alias costs one word, and everything that
walks the values or writes them as JSON visits what it stands for each time.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from conformance.errors import UsageError
from conformance.suggestions import unreadable

LENGTH = 1 << 20
"""Bytes of a file for the suite: descriptors, node profiles, workloads."""
MANIFESTS = 32 << 20
"""Bytes of a file of Kubernetes objects. An API server accepts 1.5 MiB per object, and a file may contain several
CRDs."""
DEPTH = 100
"""Nested values. The deepest Kubernetes object, a CRD with a pod spec, has 30 levels."""
VALUES = 1_000_000
"""Values of a document with its aliases expanded; all CRDs of Grove together have 60,000."""
LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""CRDs are long: with libyaml they are read in a tenth of the time."""
_DEEP, _FLATTER = f"is more than {DEPTH} levels deep", "make it flatter"


def text(path: Path, most: int, where: str) -> str:
    """Return the text of a file. Raises UsageError if it cannot be read, is not UTF-8, or is longer than `most`
    bytes."""
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        what, near = unreadable(path, error)
        raise UsageError(what, where=where, hint=near or "give a readable file") from error
    if len(content) > most:
        raise UsageError(f"is longer than {most >> 20} MiB", where=where, hint="give a shorter file")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError("is not UTF-8 text", where=where, hint="save it as UTF-8") from error


def check_depth(content: str, where: str) -> None:
    """Raise UsageError if a text nests too deeply, or a yaml.YAMLError. This must come before composing: PyYAML
    recurses in C there, which ends the process instead of raising an exception."""
    depth = 0
    for event in yaml.parse(content, LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEPTH:
            raise _wrong(event, where, _DEEP, _FLATTER)


def check(root: yaml.Node, where: str) -> None:
    """Raise UsageError if a document is too deep or too big with its aliases expanded, or has an alias that contains
    itself."""
    known: dict[int, tuple[int, int]] = {}
    above: set[int] = set()

    def measured(node: yaml.Node, depth: int) -> tuple[int, int]:
        """Return the number of values in a node and their depth below it. Each node is visited once, however many
        aliases it has."""
        if isinstance(node, yaml.ScalarNode):
            return 1, 0
        if id(node) in above:
            raise _wrong(node, where, "has an alias that holds itself", "write it out")
        if id(node) not in known:
            above.add(id(node))
            values, height = 1, 0
            for item in node.value:
                for part in item if isinstance(item, tuple) else (item,):
                    more, below = measured(part, depth + 1)
                    values, height = values + more, max(height, below + 1)
            above.remove(id(node))
            known[id(node)] = values, height
        values, height = known[id(node)]
        if depth + height > DEPTH:
            raise _wrong(node, where, _DEEP, _FLATTER)
        return values, height

    values, _ = measured(root, 0)
    if values > VALUES:
        what = f"stands for more than {VALUES:,} values"
        raise _wrong(root, where, what, "make it smaller, above all what its aliases stand for")


def _wrong(at: yaml.Node | yaml.Event, where: str, what: str, hint: str) -> UsageError:
    line = f":{at.start_mark.line + 1}" if at.start_mark else ""
    return UsageError(what, where=where + line, hint=hint)
