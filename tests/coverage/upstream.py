"""docs/upstream-tests.md: which requirements judge what upstream's end-to-end tests assert."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance import data, documents
from conformance.suite.registry import coverage
from conformance.suite.registry.requirement import Registry

PAGE = data.PROJECT / "docs" / "upstream-tests.md"
FULL, PART, NOT = "in full", "in part", "not"


def read(path: Path | None = None) -> Mapping[str, Any]:
    """Read the list of upstream's tests. Raises UsageError with file, line and field."""
    folder = coverage.folder()
    return documents.read(path or folder / "upstream_tests.yaml", folder / "upstream_tests.schema.json").value


def tests(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the tests of all files."""
    return [test for file in document["files"] for test in file["tests"]]


def problems(document: Mapping[str, Any], registry: Registry) -> list[str]:
    """Return one message for each test that is listed twice, and one for each id that is retired or not a
    requirement."""
    names = Counter(test["name"] for test in tests(document))
    duplicates = [f"{name}: is listed twice" for name, times in names.items() if times > 1]
    return duplicates + [
        f"{test['name']}: {id} is {'retired' if id in registry.retired else 'no requirement'}"
        for test in tests(document)
        for id in test.get("ids", ())
        if id not in registry.requirements
    ]


def text(document: Mapping[str, Any], registry: Registry) -> str:
    """Render the page."""
    every = tests(document)
    counts = Counter(map(_judged, every))
    commit = document["commit"]
    tree, source = (f"{document['repository']}/{view}/{commit}/{document['folder']}" for view in ("tree", "blob"))
    lines = [
        "# Upstream's end-to-end tests",
        "",
        "<!-- made by `make docs` from fixtures/coverage/upstream_tests.yaml; do not edit -->",
        "",
        "Each end-to-end test of Grove's own repository, what it asks, and which requirements judge that here. They",
        f"were read at commit [`{commit[:8]}`]({tree});",
        "[spec/e2e.md](spec/e2e.md) describes them in detail.",
        "",
        f"Of {len(every)} tests, {counts[FULL]} are judged in full, {counts[PART]} in part, and {counts[NOT]} not.",
        "",
        "*In full* means that requirements say what the test asserts, and that a scene plays what it does. How long",
        "something may take and how many nodes there are is no part of it, nor are the words of messages.",
    ]
    for file in document["files"]:
        lines += ["", f"## {file['path']}", ""]
        note = coverage._one_line(file.get("note", ""))
        lines += [f"[Source]({source}/{file['path']}).{' ' if note else ''}{note}", ""]
        lines += ["| test | what it asks | judged by | judged |", "|---|---|---|---|"]
        lines += [_row(test, registry) for test in file["tests"]]
    return "\n".join(lines) + "\n"


def _judged(test: Mapping[str, Any]) -> str:
    if "ids" not in test:
        return NOT
    return PART if "reason" in test else FULL


def _row(test: Mapping[str, Any], registry: Registry) -> str:
    reason = coverage._one_line(test.get("reason", ""))
    cells: Sequence[str] = (
        f"`{test['name']}`",
        coverage._one_line(test["asks"]),
        ", ".join(_link(id, registry) for id in test.get("ids", ())),
        f"{_judged(test)}: {reason}" if reason else _judged(test),
    )
    return f"| {' | '.join(map(coverage._cell, cells))} |"


def _link(id: str, registry: Registry) -> str:
    return f"[{id}](requirements.md#{registry.requirements[id].profile})"
