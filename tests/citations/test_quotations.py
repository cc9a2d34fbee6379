"""Tests that quotations are looked up in clones of the documents' repositories, and that a wrong one is found."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.suite.registry import basis, requirement
from tests.citations import quotations


@pytest.mark.parametrize("present", [True, False])
def test_a_quotation_that_its_document_does_not_have_is_found(tmp_path: Path, present: bool) -> None:
    """The clone has one document, in which the words that a requirement quotes span two lines of a comment."""
    entry = requirement.load().get("GANG-002")
    first = entry.basis.quotations[0]
    place = quotations.IN_REPOSITORY.fullmatch(basis.load_documents()[first.document].link)
    assert place is not None
    words = first.words.split()
    clone = tmp_path / place["repository"]
    document = clone / place["path"]
    document.parent.mkdir(parents=True)
    document.write_text(f"// {' '.join(words[:3])}\n// {' '.join(words[3:] if present else words[4:])}\n")
    git = ("git", "-C", str(clone), "-c", "user.name=a", "-c", "user.email=a@example.com")
    for command in (("init", "-q"), ("add", "."), ("commit", "-qm", "a"), ("tag", place["ref"])):
        subprocess.run([*git, *command], check=True)
    wrong, checked, unchecked = quotations.missing(tmp_path)
    assert (f"GANG-002: {first.document} does not say “{first.words}”" in wrong) is not present
    assert 0 < checked < unchecked


PAGE = """\
# Title

```sh
# no heading
```
## Time limits

It waits for one minute.
## Time limits
It waits for
two minutes.
"""


@pytest.mark.parametrize(
    ("words", "headings", "anchor"),
    [
        ("It waits for one minute.", True, "time-limits"),
        ("It waits for two minutes.", True, "time-limits-1"),
        ("It waits for two minutes.", False, "L10"),
        ("no heading", True, "title"),
        ("It waits for three minutes.", True, ""),
    ],
)
def test_the_anchor_of_a_quotation_is_its_heading_or_its_line(words: str, headings: bool, anchor: str) -> None:
    assert quotations.anchor(PAGE, words, headings=headings) == anchor


def test_links_of_quotations_lead_to_their_place() -> None:
    first, *_ = requirement.load().get("GANG-002").basis.quotations
    document, _, anchor = basis.address(first).partition("#")
    assert document == basis.load_documents()[first.document].link
    assert anchor == json.loads(basis.ANCHORS.read_text())[first.document][first.place]
    assert basis.address(replace(first, place="a place that no one has looked up")) == document
