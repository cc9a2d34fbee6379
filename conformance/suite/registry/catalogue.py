"""Render the registry for readers: docs/requirements.md and `list --json`. The functions return strings and print
nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from conformance import specification
from conformance.suite.registry.basis import BasisKind, Quotation, load_documents
from conformance.suite.registry.requirement import Level, Registry, Requirement


def markdown(registry: Registry) -> str:
    """Return docs/requirements.md, which depends only on the registry."""
    lines = [
        "# Requirements",
        "",
        "<!-- made by `grove-conformance docs` from conformance/suite/registry/requirements/; do not edit -->",
        "",
        "What an implementation of the Grove API is judged by. A MUST decides the verdict of its profile; a SHOULD",
        "that fails is shown and decides nothing. Ids are never reused or renamed. In parentheses are the rows of the",
        "[specification](spec/README.md) from which a requirement follows. *Seed* names the proposal that a",
        "requirement rests on if no release of upstream has what it says; its MUSTs are counted apart and decide no",
        "verdict. *Limit* names what the specification accepts where a requirement does not hold: nobody fails it.",
        "",
        "The basis says who says so. Only a public *document*, or a *convention* of Kubernetes, carries a MUST. Where",
        "documents are silent or contradict each other, a *decision* of this project is a SHOULD. What only upstream's",
        "*code* does is COMPAT: it decides nothing, and is counted as compatibility with upstream.",
        "`grove-conformance explain ID` prints the quotations, those of documents that contradict a requirement, and",
        "what a check demands beyond its sentence.",
        "",
        *_tally(registry),
    ]
    for profile, text in registry.profiles.items():
        entries = [r for r in registry.requirements.values() if r.profile == profile]
        lines += ["", f"## {profile}", "", text]
        if entries:
            lines += ["", "| id | level | requirement | basis | judges | since |", "|---|---|---|---|---|---|"]
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
        text += f" (not with feature {' or '.join(f'`{feature}`' for feature in entry.unless)})"
    return f"| {entry.id} | {entry.level} | {text} | {_basis(entry)} | {', '.join(entry.roles)} | {entry.since} |"


def _basis(entry: Requirement) -> str:
    quoted, contradicting = _documents(entry.quotes), _documents(entry.contradicts)
    basis = ": ".join(filter(None, [str(entry.basis), quoted]))
    return f"{basis}; contradicted by {contradicting}" if contradicting else basis


def _documents(quotations: Iterable[Quotation]) -> str:
    ids = dict.fromkeys(quotation.document for quotation in quotations)
    return _cell(", ".join(f"[{load_documents()[id].title}]({load_documents()[id].link})" for id in ids))


def _tally(registry: Registry) -> list[str]:
    counts = Counter((entry.basis, entry.level) for entry in registry.requirements.values())
    rows = [f"| {kind} | {' | '.join(str(counts[kind, level] or '–') for level in Level)} |" for kind in BasisKind]
    return [f"| basis | {' | '.join(Level)} |", "|---|" + "---|" * len(Level), *rows]


def _source(id: str) -> str:
    row = specification.load().get(id)
    return f"[{id}]({row.link.removeprefix('docs/')})" if row else id


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
