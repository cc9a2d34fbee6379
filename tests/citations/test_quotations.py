"""Tests that quotations are checked against clones of the documents' repositories, and that wrong quotations are
reported."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from conformance.suite.registry import basis, requirement
from tests.citations import quotations


@pytest.mark.parametrize("is_present", [True, False])
def test_a_quotation_that_its_document_does_not_contain_is_reported(tmp_path: Path, is_present: bool) -> None:
    """The clone has one document, in which the words of the quotation span two lines of a comment."""
    entry = requirement.load().get("GANG-002")
    quotation = entry.quotes[0]
    location = quotations.IN_REPOSITORY.fullmatch(basis.load_documents()[quotation.document].link)
    assert location is not None
    words = quotation.words.split()
    clone = tmp_path / location["repository"]
    document = clone / location["path"]
    document.parent.mkdir(parents=True)
    document.write_text(f"// {' '.join(words[:3])}\n// {' '.join(words[3:] if is_present else words[4:])}\n")
    git = ("git", "-C", str(clone), "-c", "user.name=a", "-c", "user.email=a@example.com")
    for command in (("init", "-q"), ("add", "."), ("commit", "-qm", "a"), ("tag", location["ref"])):
        subprocess.run([*git, *command], check=True)
    missing_quotations, checked_count, unchecked_count = quotations.find_missing(tmp_path)
    assert (f"GANG-002: {quotation.document} does not say “{quotation.words}”" in missing_quotations) is not is_present
    assert 0 < checked_count < unchecked_count


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
    ("words", "headings", "expected_anchor"),
    [
        ("It waits for one minute.", True, "time-limits"),
        ("It waits for two minutes.", True, "time-limits-1"),
        ("It waits for two minutes.", False, "L10"),
        ("no heading", True, "title"),
        ("It waits for three minutes.", True, ""),
    ],
)
def test_the_anchor_of_a_quotation_is_its_heading_or_its_line(words: str, headings: bool, expected_anchor: str) -> None:
    assert quotations.find_anchor(PAGE, words, headings=headings) == expected_anchor


def test_links_of_quotations_refer_to_the_quoted_place() -> None:
    quotation, *_ = requirement.load().get("GANG-002").quotes
    document, _, expected_anchor = basis.address(quotation).partition("#")
    assert document == basis.load_documents()[quotation.document].link
    assert expected_anchor == json.loads(basis.ANCHORS.read_text())[quotation.document][quotation.place]
    assert basis.address(replace(quotation, place="a place that no one has looked up")) == document
