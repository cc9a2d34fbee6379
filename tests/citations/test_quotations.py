"""Quotations are looked up in clones of the documents' repositories: one that is not there is found."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from conformance.suite.registry import basis, requirement
from tests.citations import quotations


@pytest.mark.parametrize("said", [True, False])
def test_a_quotation_that_its_document_does_not_have_is_found(tmp_path: Path, said: bool) -> None:
    """A clone with one document, in which one requirement's words are split over two lines of a comment."""
    entry = requirement.load().get("GANG-002")
    first = entry.basis.quotations[0]
    place = quotations.IN_REPOSITORY.fullmatch(basis.known()[first.document].link)
    assert place is not None
    words = first.words.split()
    clone = tmp_path / place["repository"]
    document = clone / place["path"]
    document.parent.mkdir(parents=True)
    document.write_text(f"// {' '.join(words[:3])}\n// {' '.join(words[3:] if said else words[4:])}\n")
    git = ("git", "-C", str(clone), "-c", "user.name=a", "-c", "user.email=a@example.com")
    for command in (("init", "-q"), ("add", "."), ("commit", "-qm", "a"), ("tag", place["ref"])):
        subprocess.run([*git, *command], check=True)
    wrong, seen, unseen = quotations.missing(tmp_path)
    assert (f"GANG-002: {first.document} does not say “{first.words}”" in wrong) is not said
    assert 0 < seen < unseen
