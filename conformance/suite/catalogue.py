"""The registry for readers: docs/requirements.md, `list --json` and `explain`. Pure text."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from conformance.suite.requirement import Registry, Requirement


def markdown(registry: Registry) -> str:
    """docs/requirements.md, always the same for the same registry."""
    lines = [
        "# Requirements",
        "",
        "<!-- made by `grove-conformance docs` from conformance/suite/requirements/; do not edit -->",
        "",
        "What an implementation of the Grove API is judged by. A MUST decides the verdict of its profile; a SHOULD",
        "that fails is shown and decides nothing. Ids are never reused or renamed. The words in brackets are the",
        "facts of the specification from which a requirement follows.",
    ]
    for profile, text in registry.profiles.items():
        entries = [r for r in registry.requirements.values() if r.profile == profile]
        lines += ["", f"## {profile}", "", text]
        if entries:
            lines += ["", "| id | level | requirement | judges | since |", "|---|---|---|---|---|"]
            lines += [_row(entry) for entry in entries]
    if registry.retired:
        lines += ["", "## Retired", "", "| id | requirement | why it is no longer judged |", "|---|---|---|"]
        lines += [f"| {r.id} | {_cell(r.text)} | {_cell(r.reason)} |" for r in registry.retired.values()]
    return "\n".join(lines) + "\n"


def explain(registry: Registry, id: str, tests: Iterable[str] = ()) -> str:
    """One requirement in full, with the tests that judge it. Raises UsageError for an unknown or retired id."""
    entry = registry.get(id)
    lines = [
        f"{entry.id} ({entry.level}, profile {entry.profile})",
        f"  {entry.text}",
        f"  judges: {', '.join(entry.roles)}",
        f"  since:  {entry.since}",
        f"  source: {', '.join(entry.source)}",
    ]
    if entry.feature:
        lines.append(f"  only for implementations that claim the feature {entry.feature}")
    lines += [f"  test:   {test}" for test in tests]
    if entry.reproduce:
        lines += ["  by hand:", *(f"    {line}" for line in entry.reproduce)]
    return "\n".join(lines)


def json_line(entry: Requirement) -> str:
    return msgspec.json.encode(entry).decode()


def _row(entry: Requirement) -> str:
    text = _cell(entry.text) + f" [{_cell(', '.join(entry.source))}]"
    if entry.feature:
        text += f" (feature `{entry.feature}`)"
    return f"| {entry.id} | {entry.level} | {text} | {', '.join(entry.roles)} | {entry.since} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
