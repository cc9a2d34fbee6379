"""What this repository knows of an id of the specification: `explain OBJ-123`. Pure text."""

from __future__ import annotations

import re

from conformance import data
from conformance.grove.admission import manifests
from conformance.suite import coverage
from conformance.suite.requirement import Registry

KINDS = {
    "contract": "it binds every implementation",
    "defect": "what upstream does wrong, and must not be",
}


def explain(registry: Registry, id: str) -> str:
    """A row or a scenario of the specification; empty for what is nowhere named."""
    about = [*_row(id), *_scenario(registry, id), *_judged(registry, id), *_manifests(id), *_pages(id)]
    return "\n".join([f"{id} (an id of the specification, not a requirement)", *about]) if about else ""


def known(registry: Registry) -> set[str]:
    """The ids that something is known of."""
    table = coverage.rows()
    named = {id for kinds in table.binding.values() for ids in kinds.values() for id in ids}
    named |= {fact for entry in registry.requirements.values() for fact in entry.source}
    return named | {story.id for story in coverage.scenarios()}


def _row(id: str) -> list[str]:
    table = coverage.rows()
    found = [
        f"  {kind} row of the document {document}: {KINDS.get(kind, kind)}"
        for document, kinds in table.binding.items()
        for kind, ids in kinds.items()
        if id in ids
    ]
    return found + [f"  no check: {reason.text}" for reason in table.reasons if id in reason.rows]


def _scenario(registry: Registry, id: str) -> list[str]:
    lines = []
    for story in coverage.scenarios():
        if story.id == id:
            lines.append(f"  scenario: {story.title}")
            checks = coverage.checks_of(registry, story)
            lines += [f"  judged by {', '.join(checks)}"] if checks else []
            lines += [f"  not checked: {story.reason}"] if story.reason else []
            lines += [f"  see {path}" for path in story.tests]
    return lines


def _judged(registry: Registry, id: str) -> list[str]:
    return [
        f"  judged by {entry.id} ({entry.level}, profile {entry.profile}): {entry.text}"
        for entry in registry.requirements.values()
        if id in entry.source
    ]


def _manifests(id: str) -> list[str]:
    names = [manifest.name for manifest in manifests.load() if id in manifest.rules]
    return [f"  manifests of fixtures/admission: {', '.join(names)}"] if names else []


def _pages(id: str) -> list[str]:
    """Where the pages of docs/ mention it, in a checkout. Those that are made of the same data say nothing more."""
    named = re.compile(rf"(?<![\w-]){re.escape(id)}(?![\w-])")
    return [
        f"  {path.relative_to(data.PROJECT)}:{number}: {line.strip()}"
        for path in sorted((data.PROJECT / "docs").glob("**/*.md"))
        if path.name not in ("requirements.md", "coverage.md")
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if named.search(line)
    ]
