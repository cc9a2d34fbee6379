"""docs/upstream-tests.md: the requirements that judge the assertions of upstream's end-to-end tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance import data, documents
from conformance.suite.registry import coverage
from conformance.suite.registry.requirement import Registry

PAGE = data.PROJECT / "docs" / "upstream-tests.md"
JUDGED_IN_FULL, JUDGED_IN_PART, NOT_JUDGED = "in full", "in part", "not"


def read(path: Path | None = None) -> Mapping[str, Any]:
    """Read the list of upstream's tests. Raises UsageError, with file, line and field, if the list is invalid."""
    folder = coverage.folder()
    return documents.read(path or folder / "upstream_tests.yaml", folder / "upstream_tests.schema.json").value


def all_tests(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the tests of all files."""
    return [test for file in document["files"] for test in file["tests"]]


def find_problems(document: Mapping[str, Any], registry: Registry) -> list[str]:
    """Return a message for each test that is listed twice, and for each id that is retired or not a requirement."""
    names = Counter(test["name"] for test in all_tests(document))
    duplicates = [f"{name}: is listed twice" for name, count in names.items() if count > 1]
    return duplicates + [
        f"{test['name']}: {id} is {'retired' if id in registry.retired else 'no requirement'}"
        for test in all_tests(document)
        for id in test.get("ids", ())
        if id not in registry.requirements
    ]


def render_page(document: Mapping[str, Any], registry: Registry) -> str:
    """Render the page."""
    listed_tests = all_tests(document)
    counts = Counter(map(_coverage_of, listed_tests))
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
        f"Of {len(listed_tests)} tests, {counts[JUDGED_IN_FULL]} are judged in full, {counts[JUDGED_IN_PART]} in part, "
        f"and {counts[NOT_JUDGED]} not.",
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


def _coverage_of(test: Mapping[str, Any]) -> str:
    if "ids" not in test:
        return NOT_JUDGED
    return JUDGED_IN_PART if "reason" in test else JUDGED_IN_FULL


def _row(test: Mapping[str, Any], registry: Registry) -> str:
    reason = coverage._one_line(test.get("reason", ""))
    cells: Sequence[str] = (
        f"`{test['name']}`",
        coverage._one_line(test["asks"]),
        ", ".join(_link(id, registry) for id in test.get("ids", ())),
        f"{_coverage_of(test)}: {reason}" if reason else _coverage_of(test),
    )
    return f"| {' | '.join(map(coverage._cell, cells))} |"


def _link(id: str, registry: Registry) -> str:
    return f"[{id}](requirements.md#{registry.requirements[id].profile})"
