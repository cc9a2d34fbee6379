"""`make lint`: compares the states and commits of public documents with those in upstream's repositories.

`states.yaml` lists the states and commits that `git log` and the threads report. A document that claims a different
state, a different commit or no commit is a problem. A MUST that rests on a document that upstream has closed, reverted
or not published is also a problem.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from conformance.suite.registry.basis import AUTHORITATIVE_STATES, UNAUTHORITATIVE_KINDS, DocumentState, PublicDocument
from conformance.suite.registry.requirement import Level, Registry, Requirement

STATES_FILE = Path(__file__).with_name("states.yaml")
UNKNOWN_COMMIT = "unknown"
"""The commit of a merged thread if no available clone contains it."""
THREAD = re.compile(r"https://github\.com/([^/]+/[^/]+)/(?:pull|issues)/(\d+)")
FILE_LINK = re.compile(r"https://github\.com/[^/]+/[^/]+/(?:blob|tree)/([0-9a-f]+)")

KnownStates = Mapping[str, Mapping[str, Mapping[str, str]]]


@functools.cache
def load_states() -> KnownStates:
    """Return the known states of threads and dates of commits."""
    content: Any = yaml.safe_load(STATES_FILE.read_text("utf-8"))
    return content  # type: ignore[no-any-return]


def document_problems(entries: Iterable[PublicDocument], known_states: KnownStates) -> Iterator[str]:
    """Yield a message for each claim about a document that the list does not confirm."""
    for entry in entries:
        for problem in _thread_problems(entry, known_states["threads"]):
            yield f"{entry.id}: {problem}"
        for problem in _commit_problems(entry, known_states["commits"]):
            yield f"{entry.id}: {problem}"


def unsupported_musts(registry: Registry, by_id: Mapping[str, PublicDocument]) -> list[Requirement]:
    """Return the MUSTs that no document supports. An open document supports a MUST only if the MUST has a seed."""
    must_requirements = [entry for entry in registry.requirements.values() if entry.level is Level.MUST]
    return [entry for entry in must_requirements if not _is_supported(entry, by_id)]


def _is_supported(entry: Requirement, by_id: Mapping[str, PublicDocument]) -> bool:
    quoted_documents = [by_id[quotation.document] for quotation in entry.quotes if quotation.words]
    binding_documents = [document for document in quoted_documents if document.kind not in UNAUTHORITATIVE_KINDS]
    states = {document.state for document in binding_documents}
    return bool(states & AUTHORITATIVE_STATES) or (bool(entry.seed) and DocumentState.OPEN in states)


def _thread_problems(entry: PublicDocument, threads: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield a message for each claim about a document that its thread, which decides its state, does not confirm."""
    link = THREAD.match(entry.link)
    name = entry.thread or (f"{link[1]}#{link[2]}" if link else "")
    if not name:
        if entry.state not in (DocumentState.MERGED, DocumentState.PUBLISHED, DocumentState.UNPUBLISHED):
            yield f"is {entry.state}, and names no thread"
        return
    if name not in threads:
        yield f"{name} is not listed"
        return
    thread = threads[name]
    if entry.state != thread["state"]:
        yield f"is {entry.state}, and {name} is {thread['state']}"
    if entry.reverted_by != thread.get("revertedBy", ""):
        yield f"is reverted by {entry.reverted_by or 'nothing'}, and {name} by {thread.get('revertedBy', 'nothing')}"
    commit = thread.get("commit", "")
    if link and entry.commit != (commit if commit != UNKNOWN_COMMIT else ""):
        yield f"has commit {entry.commit or 'none'}, and {name} has {commit or 'none'}"


def _commit_problems(entry: PublicDocument, commits: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield a message for each claim about the commit of a document that the list does not confirm."""
    if (file := FILE_LINK.match(entry.link)) and not (entry.commit and file[1].startswith(entry.commit)):
        yield f"has commit {entry.commit or 'none'}, and its link {file[1]}"
    has_thread = bool(entry.thread or THREAD.match(entry.link))
    if not entry.commit:
        if entry.state in (DocumentState.MERGED, DocumentState.REVERTED) and not has_thread:
            yield f"is {entry.state} without a commit"
        return
    if entry.commit not in commits:
        yield f"commit {entry.commit} is not listed"
        return
    commit = commits[entry.commit]
    if entry.date != commit.get("date", entry.date):
        yield f"has the date {entry.date}, and commit {entry.commit} {commit['date']}"
    if entry.state is DocumentState.MERGED and not has_thread and "branch" not in commit:
        yield f"is merged, and commit {entry.commit} is on no branch of upstream"
