"""Tests that no text of the project refers to a document or a conversation that readers cannot access."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("conformance", "docs", "fixtures", "grove_conformance", "kube", "kwok-profiles", "reference_impl", "tests")
UNAVAILABLE_REFERENCE = re.compile(
    r"\(anchors,? [A-Z]-\d|\banchors\.md|\b[Tt]he issue asked|\bhouse\.md|\b[Ss]eed 0\d\d\b"
)


def text_files() -> list[Path]:
    paths = [path for path in ROOT.iterdir() if path.suffix in (".md", ".toml") or path.name == "Makefile"]
    for folder in FOLDERS:
        paths += [path for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md", ".yaml", ".json")]
    return sorted(path for path in paths if path != Path(__file__))


def test_no_text_refers_to_a_document_that_readers_do_not_have() -> None:
    citations = {}
    for path in text_files():
        text = path.read_text(encoding="utf-8")
        if lines := [text.count("\n", 0, match.start()) + 1 for match in UNAVAILABLE_REFERENCE.finditer(text)]:
            citations[str(path.relative_to(ROOT))] = lines
    assert citations == {}
