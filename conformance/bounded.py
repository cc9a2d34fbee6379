"""Limits for all input from outside: length, depth, and the number of values after all aliases are expanded.

A few lines of YAML can expand to more values than fit into memory: an alias is one word, but code that walks the values
or writes them as JSON visits the aliased value each time.

Files are read by `text` or `content`. YAML is then checked by `check_depth` and `check` (through `documents`), JSON is
read by `json`, and lines of JSON by `decode_line`. For invalid input, these functions raise only UsageError, unless
their docstrings name another exception.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import orjson
import yaml

from conformance.errors import UsageError
from conformance.suggestions import explain_unreadable
from kube import nesting

T = TypeVar("T")

MAX_BYTES = 1 << 20
"""Maximum size in bytes of the suite's own files: descriptors, node profiles, workloads."""
MAX_LOG_BYTES = 1 << 28
"""Maximum size in bytes of a ledger, or of the results of a measurement."""
MAX_MANIFEST_BYTES = 32 << 20
"""Maximum size in bytes of a file of Kubernetes objects. An API server accepts 1.5 MiB per object, and a file may
contain several CRDs."""
MAX_DEPTH = 100
"""Maximum nesting. The deepest Kubernetes object, a CRD with a pod spec, has 30 levels."""
MAX_VALUES = 1_000_000
"""Maximum number of values in a document with its aliases expanded; all CRDs of Grove together have 60,000."""
MAX_REPORT_VALUES = 300_000
"""Maximum number of values in a report; the report of a full run has 30,000."""
MAX_SCALAR_LENGTH = 10_000
"""Maximum length in characters of a number, a date or another scalar that is not a string: the time to parse such a
number grows with the square of its length."""
CONSTRUCTOR_ERRORS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors of PyYAML's constructors for values that do not match their tag, such as `!!bool maybe`."""
DECODE_ERRORS = (msgspec.MsgspecError, ValueError, RecursionError)
"""Errors that JSON decoders raise. Invalid UTF-8 is a ValueError."""
LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The YAML loader. CRDs are long, and libyaml reads them in a tenth of the time."""
_TOO_DEEP, _DEPTH_HINT = f"is more than {MAX_DEPTH} levels deep", "make it flatter"


def content(path: Path, limit: int, location: str) -> bytes:
    """Return the bytes of a file. Raises UsageError if it cannot be read or is longer than `limit` bytes."""
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        problem, specific_hint = explain_unreadable(path, error)
        raise UsageError(problem, where=location, hint=specific_hint or "give a readable file") from error
    if len(data) > limit:
        raise UsageError(f"is longer than {limit >> 20} MiB", where=location, hint="give a shorter file")
    return data


def text(path: Path, limit: int, location: str) -> str:
    """Return the text of a file. Raises UsageError like `content`, and if the file is not UTF-8."""
    try:
        return content(path, limit, location).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError("is not UTF-8 text", where=location, hint="save it as UTF-8") from error


def json(raw: bytes, location: str, hint: str = "") -> Any:
    """Return the value of a JSON text. Raises UsageError if the text is not JSON or nests too deeply."""
    if nesting.exceeds_depth(raw, MAX_DEPTH):
        raise UsageError(_TOO_DEEP, where=location, hint=_DEPTH_HINT)
    try:
        return orjson.loads(raw)
    except ValueError as error:
        raise UsageError(f"is not JSON: {error}", where=location, hint=hint) from error


def decode_line(
    decode: Callable[[bytes], T], raw: bytes, location: str, *, problem: str = "cannot be read", hint: str = ""
) -> T:
    """Decode a line of JSON with a typed decoder. Raises UsageError if the decoder rejects the line."""
    try:
        return decode(raw)
    except DECODE_ERRORS as error:
        raise UsageError(f"{problem}: {error}", where=location, hint=hint) from error


def check_depth(content: str, location: str, limit: int = MAX_VALUES) -> None:
    """Raise UsageError if a text nests too deeply or has too many values, or yaml.YAMLError if it is not YAML. Call
    this before the text is composed: PyYAML composes recursively in C, and deep nesting crashes the process instead of
    raising an exception."""
    depth = values = 0
    for event in yaml.parse(content, LOADER):
        values += isinstance(event, yaml.NodeEvent)
        if values > limit:
            raise _usage_error(event, location, f"has more than {limit:,} values", "make it smaller")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise _usage_error(event, location, _TOO_DEEP, _DEPTH_HINT)


def check(root: yaml.Node, location: str, limit: int = MAX_VALUES) -> None:
    """Raise UsageError if a document, with its aliases expanded, is too deep or too large, or has an alias that
    contains itself."""
    sizes: dict[int, tuple[int, int]] = {}
    ancestors: set[int] = set()

    def measure(node: yaml.Node, depth: int) -> tuple[int, int]:
        """Return the number of values in a node and the depth of its tree. Each node is visited once, however many
        aliases refer to it."""
        if isinstance(node, yaml.ScalarNode):
            if len(node.value) > MAX_SCALAR_LENGTH and node.tag != "tag:yaml.org,2002:str":
                raise _usage_error(
                    node, location, f"has a value of {len(node.value):,} characters that is no text", "quote it"
                )
            return 1, 0
        if id(node) in ancestors:
            raise _usage_error(node, location, "has an alias that holds itself", "write it out")
        if id(node) not in sizes:
            ancestors.add(id(node))
            values, height = 1, 0
            for item in node.value:
                for part in item if isinstance(item, tuple) else (item,):
                    values_of_part, height_of_part = measure(part, depth + 1)
                    values, height = values + values_of_part, max(height, height_of_part + 1)
            ancestors.remove(id(node))
            sizes[id(node)] = values, height
        values, height = sizes[id(node)]
        if depth + height > MAX_DEPTH:
            raise _usage_error(node, location, _TOO_DEEP, _DEPTH_HINT)
        return values, height

    values, _ = measure(root, 0)
    if values > limit:
        problem = f"stands for more than {limit:,} values"
        raise _usage_error(root, location, problem, "make it smaller, above all what its aliases stand for")


def _usage_error(node: yaml.Node | yaml.Event, location: str, problem: str, hint: str) -> UsageError:
    line = f":{node.start_mark.line + 1}" if node.start_mark else ""
    return UsageError(problem, where=location + line, hint=hint)
