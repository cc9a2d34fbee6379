"""The registry for readers: docs/requirements.md and `list --json`. Pure text."""

from __future__ import annotations

import msgspec

from conformance import specification
from conformance.suite.requirement import Registry, Requirement


def markdown(registry: Registry) -> str:
    """Return docs/requirements.md, always the same for the same registry."""
    lines = [
        "# Requirements",
        "",
        "<!-- made by `grove-conformance docs` from conformance/suite/requirements/; do not edit -->",
        "",
        "What an implementation of the Grove API is judged by. A MUST decides the verdict of its profile; a SHOULD",
        "that fails is shown and decides nothing. Ids are never reused or renamed. In parentheses are the rows of the",
        "[specification](spec/README.md) from which a requirement follows. *Seed* names the proposal that a",
        "requirement rests on if no release of upstream has what it says. *Limit* names what the specification accepts",
        "where a requirement does not hold: nobody fails it.",
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


def json_line(entry: Requirement) -> str:
    """Return a requirement as one line of JSON."""
    return msgspec.json.encode(entry).decode()


def _row(entry: Requirement) -> str:
    text = f"{_cell(entry.text)} ({', '.join(map(_source, entry.source))})"
    if entry.feature:
        text += f" (feature `{entry.feature}`)"
    if entry.seed:
        text += f" (seed: {entry.seed})"
    if entry.kubernetes:
        text += f" (from Kubernetes {entry.kubernetes})"
    if entry.limit:
        text += f" (limit: {_source(entry.limit.row)})"
    if entry.until:
        text += f" (until {entry.until}; later: {', '.join(entry.successors)})"
    if entry.unless:
        text += f" (not with feature {' or '.join(f'`{each}`' for each in entry.unless)})"
    return f"| {entry.id} | {entry.level} | {text} | {', '.join(entry.roles)} | {entry.since} |"


def _source(id: str) -> str:
    row = specification.load().get(id)
    return f"[{id}]({row.link.removeprefix('docs/')})" if row else id


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
