"""Tests that names are not participles, pronouns or adverbs, and that docstrings start with their subject."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
# fmt: off
BANNED_NAMES = {
    "again", "ago", "alone", "asked", "beside", "company", "each", "few", "found", "gone", "heard", "held", "how",
    "kept", "known", "late", "left", "less", "made", "many", "mine", "more", "most", "nobody", "once", "others", "ours",
    "own", "said", "seen", "short", "shown", "since", "taken", "tell", "theirs", "there", "told", "wanted", "what",
    "when", "where", "which", "who", "whose", "why",
}
# fmt: on
EXCEPTIONS = {
    "conformance/errors.py: what",
    "conformance/errors.py: where",
    "conformance/evidence/bundle.py: seen",
    "conformance/evidence/bundle.py: what",
    "conformance/lab/gaps/instances.py: taken",
    "conformance/nemesis/campaign.py: where",
    "conformance/nemesis/changes/desired.py: what",
    "conformance/nemesis/points.py: what",
    "conformance/report/model.py: what",
    "conformance/suite/outcomes/ledger.py: seen",
    "conformance/suite/outcomes/ledger.py: what",
    "conformance/suite/registry/requirement.py: since",
    "conformance/suite/session/collected.py: alone",
    "tests/attacks/attack.py: once",
    "tests/report/test_model.py: what",
}
"""Names that are permitted: fields of files, a protocol for such a field, and the arguments of the two errors that
users read."""
RELATIVE_CLAUSE = re.compile(r"(What|Who|Whoever|Whatever|Whichever|Whom|Whose|Nobody)\b")
MAX_SHARE = 0.015
"""Maximum share of docstrings that begin with a relative clause."""


@functools.cache
def names_and_docstrings() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the location and name of each node that binds a banned name, and the location and text of each docstring.
    To parse all modules takes five seconds."""
    git_files = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    names, texts = [], []
    for path in git_files.stdout.split():
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        nodes = [(node, name) for node in ast.walk(tree) if (name := bound_name(node)) in BANNED_NAMES]
        names += [(f"{path}:{node.lineno}: {name}", f"{path}: {name}") for node, name in nodes]  # type: ignore[attr-defined]
        texts += [(f"{path}:{line}: {text}", text) for line, text in docstrings(tree)]
    return names, texts


def bound_name(node: ast.AST) -> str:
    """Return the name that a node binds, without leading underscores, or an empty string if it binds no name."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.Attribute(attr=name, ctx=ast.Store()):
            return name.lstrip("_")
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name.lstrip("_")
    return ""


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each docstring, including docstrings of fields and constants."""
    for node in ast.walk(tree):
        for statement in getattr(node, "body", ()) if not isinstance(node, ast.Lambda | ast.IfExp) else ():
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text)), lineno=line):
                    yield line, text


def test_no_name_is_a_participle_or_a_pronoun() -> None:
    names, _ = names_and_docstrings()
    problems = [location for location, name in names if name not in EXCEPTIONS]
    assert not problems, "\n".join(problems)


def test_few_docstrings_begin_with_a_relative_clause() -> None:
    _, texts = names_and_docstrings()
    matching_docstrings = [location for location, text in texts if RELATIVE_CLAUSE.match(text)]
    assert len(matching_docstrings) <= MAX_SHARE * len(texts), "\n".join(matching_docstrings)
