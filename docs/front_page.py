"""A hook of MkDocs: the front page of the site is the matrix of the published implementations.

`docs/README.md`, the index of the folder on GitHub, becomes a separate page.
"""

from __future__ import annotations

import posixpath
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from conformance.errors import UsageError
from conformance.publishing import matrix, published
from conformance.suite.registry import requirement

FOLDER = "implementations"
FRONT, INDEX = "index.md", "README.md"
PLACE = "<!-- matrix -->"
TEXT = f"""---
title: Who conforms
hide: [navigation, toc]
---
# Who conforms to the Grove API

Implementations and their versions by profile, from recorded reports alone. Each profile leads to its requirements.
[Judge your own](writing-an-implementation.md), [add it here]({FOLDER}/README.md#add-an-implementation), or read the
[documentation]({INDEX}).

{PLACE}
"""
STYLE = """<style>
.md-typeset { --paper: var(--md-default-bg-color); }
.md-typeset .wide { overflow-x: auto; }
.md-typeset .matrix { font-size: .7rem; }
.md-typeset .requirements { scroll-margin-top: 5.5rem; }
.md-typeset ul.legend:not([hidden]) { display: flex; list-style: none; margin: 0 0 .5rem; }
.md-typeset .legend li { margin: 0; }
.md-typeset details.profile { border: 0; box-shadow: none; padding: 0; margin: .5rem 0; font-size: inherit; }
</style>
"""
"""Styles that replace the matrix's own on a page of the site."""


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the front page."""
    index = files.get_file_from_path(INDEX)
    assert index is not None
    index.dest_uri = index.url = "documents.html"
    files.append(File.generated(config, FRONT, content=TEXT))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Insert the matrix into the front page. Raises PluginError if a description is wrong."""
    if page.file.src_uri != FRONT:
        return html

    def link(findings: str) -> str:
        path, _, fragment = findings.partition("#")
        target = files.get_file_from_path(posixpath.normpath(posixpath.join(FOLDER, path)))
        if target is None:
            raise PluginError(f"{FOLDER}: {findings} is no page of the site")
        return target.url_relative_to(page.file) + (f"#{fragment}" if fragment else "")

    try:
        table = matrix.matrix(published.read(Path(config.docs_dir) / FOLDER), requirement.load())
    except UsageError as error:
        raise PluginError(str(error)) from error
    return html.replace(PLACE, matrix.part(table, link) + STYLE)
