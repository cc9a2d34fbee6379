"""Look up each quotation of the requirements in the document that it names.

`python -m tests.citations.quotations CLONES`, where CLONES is a folder with clones of the documents' repositories, each
at `<owner>/<name>`. What is not in a repository (web pages, descriptions of pull requests) is counted only.
"""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

from conformance.suite.registry import basis, requirement

IN_REPOSITORY = re.compile(r"https://github\.com/(?P<repository>[^/]+/[^/]+)/blob/(?P<ref>[^/]+)/(?P<path>.+)")
_MARKUP = re.compile(r"^\s*(?:(?://|#|\*|>|\|)+ ?)+", re.MULTILINE)


def plain(text: str) -> str:
    """Return words only: without the marks of comments, tables and emphasis, in lower case."""
    return re.sub(r"[\s`*_|]+", " ", _MARKUP.sub(" ", text)).strip().lower()


@cache
def words(clones: Path, link: str) -> str | None:
    """Return the plain text of a document, None if no clone has it."""
    found = IN_REPOSITORY.fullmatch(link)
    if found is None or not (clone := clones / found["repository"]).exists():
        return None
    command = ["git", "-C", str(clone), "show", f"{found['ref']}:{found['path']}"]
    shown = subprocess.run(command, capture_output=True, text=True)
    return None if shown.returncode else plain(shown.stdout)


def missing(clones: Path) -> tuple[list[str], int, int]:
    """Return the quotations that their documents do not have, how many were looked up, and how many were not."""
    wrong, seen, unseen = [], 0, 0
    for entry in requirement.load().requirements.values():
        for quotation in (*entry.basis.quotations, *entry.basis.contradictions):
            text = words(clones, basis.known()[quotation.document].link) if quotation.words else None
            if text is None:
                unseen += 1
                continue
            seen += 1
            if plain(quotation.words) not in text:
                wrong.append(f"{entry.id}: {quotation.document} does not say “{quotation.words}”")
    return wrong, seen, unseen


def main() -> int:
    """Print the quotations that are not found; return 1 if there are any."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    wrong, seen, unseen = missing(Path(sys.argv[1]))
    counts = f"{seen} quotations looked up, {len(wrong)} not found; {unseen} are in no clone"
    sys.stdout.write("\n".join([*wrong, counts, ""]))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
