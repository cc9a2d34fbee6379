"""`make lint`: checks that everything that the repository cites exists.

The lint checks ids of the specification and of requirements, sections of this project's documents that are named by
number or title, relative links and their anchors, the sources of requirements, and the states of public documents. It
also reports MUSTs that quote a contradiction to another requirement, and sentences that do not oblige an actor.
"""

from __future__ import annotations

import difflib
import functools
import itertools
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from conformance import data, specification
from conformance.suite.registry import basis, requirement
from tests.citations import conflicts, sentences, states

SUFFIXES = (".py", ".md", ".yaml", ".json", ".toml", ".go")
UNCHECKED_FOLDERS = {"reports", "pins"}
"""Folders that are not checked: outputs, and lists of the modules of other projects."""

DOCUMENT_PATTERN = r"(?P<document>[\w./-]+\.md)`?,?[\s#/]+sections?[\s#/]+"
NAMED_SECTION = re.compile(
    DOCUMENT_PATTERN + r'(?P<sections>"[^"\n]+"|[A-E]?\.?\d[\d.]*(?:(?:,|\s+and|\s+to)\s+\d[\d.]*)*)?'
)
LINK = re.compile(r"(?<!!)\[(?:[^\[\]]|\[[^\]]*\])*\]\((?P<target>[^)\s]+)\)")
DOCUMENTS_FILE = "conformance/suite/registry/documents.yaml"
NOTE_WORDS = re.compile(r"\b(?:MUST|SHOULD|MAY|COMPAT|compat)\b|Texts?:|not verified")
"""Words that belong in working notes and must not appear in the reason for a requirement."""
PUBLIC_DOCUMENT_NAME = re.compile(r"GREP-\d+|KEP-\d{4}")
"""The name of one of upstream's public documents."""


@dataclass(frozen=True)
class Problem:
    """A citation that does not resolve, or a requirement that breaks a rule."""

    location: str
    description: str
    hint: str

    def __str__(self) -> str:
        return f"{self.location}: {self.description}" + (f" (hint: {self.hint})" if self.hint else "")


def find_problems(root: Path = data.PROJECT) -> list[Problem]:
    """Return all problems of the repository's citations and requirements."""
    row_ids = set(specification.load()) | set(requirement.load().requirements) | set(requirement.load().retired)
    ids = specification.pattern(specification.load())
    result = [*_duplicate_ids(root), *source_problems(requirement.load(), set(specification.load()))]
    result += [
        *document_problems(requirement.load(), basis.load_documents()),
        *disagreement_problems(requirement.load()),
    ]
    result += [*reason_problems(requirement.load()), *subject_problems(requirement.load())]
    for path in checked_files(root):
        text, file_name = path.read_text("utf-8"), path.relative_to(root).as_posix()
        result += unknown_ids(file_name, text, ids, row_ids)
        result += section_problems(file_name, text, functools.partial(_find_document, root, path))
        if path.suffix == ".md":
            result += link_problems(file_name, text, path)
            result += table_problems(file_name, text)
    return result


def checked_files(root: Path) -> list[Path]:
    """Return the files that are written by people, without outputs and hidden files."""
    return sorted(path for path in _files_below(root) if path.suffix in SUFFIXES or path.name == "Makefile")


def unknown_ids(file_name: str, text: str, ids: re.Pattern[str], row_ids: set[str]) -> Iterator[Problem]:
    """Yield a problem for each text in the form of a specification id that has no row."""
    for match in ids.finditer(text):
        if match[0] not in row_ids and not PUBLIC_DOCUMENT_NAME.fullmatch(match[0]):
            yield Problem(_location(file_name, text, match), f"unknown id {match[0]}", _suggestion(match[0], row_ids))


def section_problems(file_name: str, text: str, read_document: Callable[[str], str | None]) -> Iterator[Problem]:
    """Yield a problem for each named section, as in `objects.md, section 4.5` or `design.md, section "Verdicts"`, that
    the named document does not have. `read_document` returns the text of a document by its name, or None if this
    project has no such document."""
    for match in NAMED_SECTION.finditer(text):
        location, content = _location(file_name, text, match), read_document(match["document"])
        if content is None:
            yield Problem(location, f"unknown document {match['document']}", "name a page of docs/ or docs/spec/")
            continue
        if match["sections"] is None:
            yield Problem(location, "a section without a name", 'write its number, or its title in "quotes"')
            continue
        titles, numbers = _headings(content)
        for name in re.findall(r'"[^"]+"|[A-E\d][\d.]*', match["sections"]):
            section = name.strip('".')
            if section not in (titles if name.startswith('"') else numbers):
                hint = _suggestion(section, titles | numbers)
                yield Problem(location, f"{match['document']} has no section {section}", hint)


def link_problems(file_name: str, text: str, path: Path) -> Iterator[Problem]:
    """Yield a problem for each relative link on a page to a file or an anchor that does not exist."""
    for match in LINK.finditer(_without_code(text)):
        target, _, anchor = match["target"].partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        location, file = _location(file_name, text, match), (path.parent / target if target else path)
        if not file.exists():
            yield Problem(location, f"no file {target}", "")
        elif anchor and file.suffix == ".md":
            file_anchors = anchors(file.read_text("utf-8"))
            if anchor not in file_anchors:
                yield Problem(
                    location, f"{target or 'this page'} has no anchor #{anchor}", _suggestion(anchor, file_anchors)
                )


def table_problems(file_name: str, text: str) -> Iterator[Problem]:
    """Yield a problem for each table row that has more or fewer cells than the heading. Rendered pages omit additional
    cells."""
    width = 0
    for number, line in enumerate(re.sub(r"^```.*?^```", _blank_text, text, flags=re.M | re.S).splitlines(), 1):
        cells = len(re.findall(r"(?<!\\)\|", line)) - 1
        if not line.startswith("|"):
            width = 0
        elif not width:
            width = cells
        elif cells != width:
            hint = "write \\| for a bar within a cell"
            yield Problem(f"{file_name}:{number}", f"a row with {cells} cells in a table of {width} columns", hint)


def source_problems(registry: requirement.Registry, rows: set[str]) -> Iterator[Problem]:
    """Yield a problem for each requirement that rests on no row of the specification, and for each source without a
    row."""
    for entry in registry.requirements.values():
        location = f"conformance/suite/registry/requirements/{entry.profile}.yaml: {entry.id}"
        if rows.isdisjoint(entry.source):
            yield Problem(location, "no source is a row of the specification", "cite a row of docs/spec/")
        for source in entry.source:
            if source not in rows and not PUBLIC_DOCUMENT_NAME.fullmatch(source):
                yield Problem(location, f"unknown source {source}", _suggestion(source, rows))


def document_problems(
    registry: requirement.Registry, documents: Mapping[str, basis.PublicDocument]
) -> Iterator[Problem]:
    """Yield a problem for each claim about a document that upstream's threads and commits do not confirm, and for each
    MUST that no document supports."""
    for problem in states.document_problems(documents.values(), states.load_states()):
        yield Problem(DOCUMENTS_FILE, problem, "correct it, or tests/citations/states.yaml after a look at upstream")
    for entry in states.unsupported_musts(registry, documents):
        location = f"conformance/suite/registry/requirements/{entry.profile}.yaml: {entry.id}"
        yield Problem(location, "no accepted document carries this MUST", "quote one, or make it a SHOULD")


def disagreement_problems(registry: requirement.Registry) -> Iterator[Problem]:
    """Yield a problem for each MUST about which documents disagree."""
    for entry, problem in conflicts.contested_musts(registry.requirements.values()):
        location = f"conformance/suite/registry/requirements/{entry.profile}.yaml: {entry.id}"
        yield Problem(
            location, problem, "make what documents disagree on a SHOULD, or quote what carries the MUST alone"
        )


def reason_problems(registry: requirement.Registry) -> Iterator[Problem]:
    """Yield a problem for each reason that discusses levels or proposes other sentences instead of explaining the
    decision."""
    for entry in registry.requirements.values():
        if note := NOTE_WORDS.search(entry.reason):
            location = f"conformance/suite/registry/requirements/{entry.profile}.yaml: {entry.id}"
            yield Problem(
                location, f"its reason says {note[0]!r}", "say why it was decided so; the level is shown beside it"
            )


def subject_problems(registry: requirement.Registry) -> Iterator[Problem]:
    """Yield a problem for each MUST or SHOULD that does not oblige an actor."""
    for entry in registry.requirements.values():
        location = f"conformance/suite/registry/requirements/{entry.profile}.yaml: {entry.id}"
        for problem in sentences.find_problems(entry):
            yield Problem(location, problem, 'write "the operator MUST …", or another actor that the roles bind')


@functools.cache
def anchors(text: str) -> frozenset[str]:
    """Return the anchors of a page: explicit ones, and those that GitHub generates from headings."""
    return frozenset(specification.ANCHOR.findall(text)) | {name for name in heading_anchors(text) if name}


def heading_anchors(text: str) -> list[str]:
    """Return the anchor that GitHub generates from each line, or an empty string for lines that are not headings."""
    used_names = set(specification.ANCHOR.findall(text))
    names = []
    for line in re.sub(r"^```.*?^```", _blank_text, text, flags=re.M | re.S).splitlines():
        title = re.match(r"#+ +(.*)$", line)
        names.append(_slug(title[1], used_names) if title else "")
        used_names.add(names[-1])
    return names


def _slug(title: str, used_names: Collection[str]) -> str:
    plain_title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"<[^>]*>", "", title)).strip().lower()
    slug = re.sub(r"[^\w\- ]", "", plain_title).replace(" ", "-")
    numbered_slugs = (f"{slug}-{number}" for number in itertools.count(1))
    return next(name for name in itertools.chain([slug], numbered_slugs) if name not in used_names)


def _duplicate_ids(root: Path) -> Iterator[Problem]:
    rows: dict[str, specification.Row] = {}
    for path in sorted((root / specification.FOLDER).glob("*.md")):
        for row in specification.rows(path):
            if row.id in rows:
                location = f"{specification.FOLDER}/{row.file}:{row.line}"
                yield Problem(location, f"duplicate id {row.id}", f"link to {rows[row.id].link}")
            rows[row.id] = row


def _files_below(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name.startswith(".") or path.name in UNCHECKED_FOLDERS:
            continue
        if path.is_dir():
            yield from _files_below(path)
        else:
            yield path


def _find_document(root: Path, citing: Path, name: str) -> str | None:
    for path in (citing.parent / name, root / name, root / "docs" / name, root / specification.FOLDER / name):
        if path.is_file():
            return path.read_text("utf-8")
    return None


@functools.cache
def _headings(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the titles and the numbers of a page's headings."""
    titles = [re.sub(r"<[^>]*>", "", title) for title in _titles(text)]
    numbers = [re.match(r"(?:Part )?([A-E]\.\d+|[A-E](?=\.)|\d+(?:\.\d+)?)", title) for title in titles]
    return frozenset(titles), frozenset(number[1] for number in numbers if number)


def _titles(text: str) -> list[str]:
    return re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.MULTILINE)


def _without_code(text: str) -> str:
    """Return the text with its code replaced by blanks, which keeps all positions."""
    return re.sub(r"^```.*?^```|`[^`\n]*`", _blank_text, text, flags=re.M | re.S)


def _blank_text(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _location(file_name: str, text: str, match: re.Match[str]) -> str:
    return f"{file_name}:{text.count(chr(10), 0, match.start()) + 1}"


def _suggestion(name: str, candidates: Iterable[str]) -> str:
    matches = difflib.get_close_matches(name, sorted(candidates), n=1, cutoff=0.5)
    return f'did you mean "{matches[0]}"?' if matches else ""


def main(root: Path = data.PROJECT) -> int:
    """Print the problems, one per line, and return 1 if there are problems."""
    problems = find_problems(root)
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
    if not problems:
        sys.stdout.write(f"citations of {len(specification.load())} rows resolve\n")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
