"""Look up each quotation of the requirements in the document that it names.

`python -m tests.citations.quotations CLONES`, where CLONES is a folder with clones of the documents' repositories, each
at `<owner>/<name>`. Quotations from documents that are not in a repository (web pages, descriptions of pull requests)
are only counted. With `--anchors`, the program also stores an anchor for each quoted place, so that links lead to the
heading above the words or to their line.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

from conformance.suite.registry import basis, requirement
from tests.citations import lint

IN_REPOSITORY = re.compile(r"https://github\.com/(?P<repository>[^/]+/[^/]+)/blob/(?P<ref>[^/]+)/(?P<path>.+)")
_MARKUP = re.compile(r"^\s*(?:(?://|#|\*|>|\|)+ ?)+", re.MULTILINE)


def normalize(text: str) -> str:
    """Return the words of a text in lower case, without the markup of comments, tables and emphasis."""
    return re.sub(r"[\s`*_|]+", " ", _MARKUP.sub(" ", text)).strip().lower()


@cache
def read_document(clones: Path, link: str) -> str | None:
    """Return the text of a document, or None if no clone contains the document."""
    match = IN_REPOSITORY.fullmatch(link)
    if match is None or not (clone := clones / match["repository"]).exists():
        return None
    command = ["git", "-C", str(clone), "show", f"{match['ref']}:{match['path']}"]
    result = subprocess.run(command, capture_output=True, text=True)
    return None if result.returncode else result.stdout


@cache
def document_words(clones: Path, link: str) -> str | None:
    """Return the normalized text of a document, or None if no clone contains the document."""
    text = read_document(clones, link)
    return None if text is None else normalize(text)


def find_anchor(text: str, quotation: str, *, headings: bool) -> str:
    """Return the anchor of the heading above a quotation, or of the line with the quotation. Return an empty string if
    the text does not contain the quotation."""
    lines = [normalize(line) for line in text.splitlines()]
    start = " ".join(line for line in lines if line).find(normalize(quotation))
    if start < 0:
        return ""
    position, heading = 0, ""
    for number, (line, title) in enumerate(zip(lines, lint.heading_anchors(text), strict=True), 1):
        heading = title or heading
        position += len(line) + 1 if line else 0
        if position > start:
            return heading if headings else f"L{number}"
    return ""


def find_anchors(clones: Path) -> dict[str, dict[str, str]]:
    """Return the anchors of quoted places by document and place, each at the first quotation from that place. A
    document without a clone keeps its stored anchors."""
    anchors_by_document: dict[str, dict[str, str]] = {}
    stored_anchors = json.loads(basis.ANCHORS.read_text("utf-8")) if basis.ANCHORS.exists() else {}
    for entry in requirement.load().requirements.values():
        for quotation in (*entry.quotes, *entry.contradicts):
            link, places = (
                basis.load_documents()[quotation.document].link,
                anchors_by_document.setdefault(quotation.document, {}),
            )
            text = read_document(clones, link) if quotation.words else None
            if text is None:
                name = stored_anchors.get(quotation.document, {}).get(quotation.place, "")
            else:
                name = find_anchor(text, quotation.words, headings=link.endswith(".md"))
            if name:
                places.setdefault(quotation.place, name)
    return {id: dict(sorted(places.items())) for id, places in sorted(anchors_by_document.items()) if places}


def find_missing(clones: Path) -> tuple[list[str], int, int]:
    """Return the quotations that their documents do not contain, the number of quotations that were checked, and the
    number of quotations that were not checked."""
    missing_quotations, checked_count, unchecked_count = [], 0, 0
    for entry in requirement.load().requirements.values():
        for quotation in (*entry.quotes, *entry.contradicts):
            text = document_words(clones, basis.load_documents()[quotation.document].link) if quotation.words else None
            if text is None:
                unchecked_count += 1
                continue
            checked_count += 1
            if normalize(quotation.words) not in text:
                missing_quotations.append(f"{entry.id}: {quotation.document} does not say “{quotation.words}”")
    return missing_quotations, checked_count, unchecked_count


def main() -> int:
    """Print the quotations that are not found, and return 1 if there are such quotations."""
    match sys.argv[1:]:
        case [folder] | [folder, "--anchors"]:
            clones = Path(folder)
        case _:
            sys.exit(__doc__)
    if "--anchors" in sys.argv:
        basis.ANCHORS.write_text(json.dumps(find_anchors(clones), indent=1, ensure_ascii=False) + "\n", "utf-8")
    missing_quotations, checked_count, unchecked_count = find_missing(clones)
    counts = (
        f"{checked_count} quotations looked up, {len(missing_quotations)} not found; {unchecked_count} are in no clone"
    )
    sys.stdout.write("\n".join([*missing_quotations, counts, ""]))
    return bool(missing_quotations)


if __name__ == "__main__":
    sys.exit(main())
