"""Tests of the documentation site: every link resolves, on GitHub and on the site, and pages load no files from other
hosts."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from markdown_it import MarkdownIt

from conformance.data import PROJECT
from tests.pages.browser import LOW_CONTRAST_TEXTS, PROGRAM, browser

IMPLEMENTATION_DESCRIPTION = """apiVersion: conformance.grove.io/v1alpha1
kind: PublishedImplementation
name: mine
title: Mine
about: It is mine.
versions:
- version: '1'
  findings: ['../writing-an-implementation.md#wrong']
"""
LOADED_ATTRIBUTES = {"img": "src", "script": "src", "link": "href"}


class References(HTMLParser):
    """The links of a page, the files that the page loads, and its ids."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded_files: set[str] = set()
        self.ids: set[str] = set()
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        self.ids |= {values["id"]} if "id" in values else set()
        if tag == "a" and "href" in values:
            self.links.add(values["href"])
        if tag in LOADED_ATTRIBUTES and LOADED_ATTRIBUTES[tag] in values and values.get("rel") != "canonical":
            self.loaded_files.add(values[LOADED_ATTRIBUTES[tag]])


def build_site(project: Path, site_folder: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of a project as `make site` does."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site_folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project with this project's settings, and with a document, a folder and a file outside `docs/`."""
    for name in ("mkdocs.yml", "docs/front_page.py", "docs/site.py", "docs/iframe-worker.js"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(PROJECT / name, tmp_path / name)
    (tmp_path / "docs" / "implementations").mkdir()
    (tmp_path / "docs" / "implementations" / "README.md").write_text("# Who\n\n## Add an implementation\n")
    (tmp_path / "docs" / "implementations" / "mine.yaml").write_text(IMPLEMENTATION_DESCRIPTION)
    (tmp_path / "docs" / "writing-an-implementation.md").write_text("# How\n\n## Wrong\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "one.yaml").write_text("a: 1\n")
    (tmp_path / "OUTSIDE.md").write_text("# Outside\n\n## A place\n\nBack to [the index](docs/README.md).\n")
    (tmp_path / "docs" / "README.md").write_text("# Index\n")
    return tmp_path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with this project's site, built once."""
    folder = tmp_path_factory.mktemp("site")
    result = build_site(PROJECT, folder)
    assert result.returncode == 0, result.stderr
    return folder


def test_every_link_of_the_site_resolves(site: Path) -> None:
    pages = {page: References(page) for page in site.rglob("*.html") if page.name != "404.html"}
    assert len(pages) > 50
    dead_links = []
    for page, references in pages.items():
        for link in references.links | references.loaded_files:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = Path(os.path.normpath(page.parent / unquote(parts.path))) if parts.path else page
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file() or (parts.fragment and target in pages and parts.fragment not in pages[target].ids):
                dead_links.append(f"{page.relative_to(site)}: {link}")
        assert not [link for link in references.loaded_files if urlsplit(link).netloc], page
    assert dead_links == []


@pytest.mark.thorough
@pytest.mark.skipif(PROGRAM is None, reason="needs Chromium")
def test_the_front_page_leads_to_the_requirements(site: Path) -> None:
    asyncio.run(_navigate(site / "index.html"))


async def _navigate(front: Path) -> None:
    async with browser() as page:
        for width in (360, 768, 1440):
            await page.open(front, width=width)
            assert await page.value("document.documentElement.scrollWidth") <= width
        details = "document.getElementById('CORE-001').closest('details')"
        assert not await page.value(f"{details}.open"), "hundreds of requirements are not what a reader wants first"
        [x, y] = await page.value(
            "(() => { const link = document.querySelector('table.matrix a.word[href=\"#core\"]');"
            " link.scrollIntoView({block: 'center'}); const box = link.getBoundingClientRect();"
            " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        toggled = f"{details}.addEventListener('toggle', done)"
        await page.value(f"window.opened = new Promise(done => {toggled}), 0")
        for event_type in ("mousePressed", "mouseReleased"):
            await page.call("Input.dispatchMouseEvent", type=event_type, x=x, y=y, button="left", clickCount=1)
        await page.value("window.opened")
        assert await page.value(f"{details}.open"), "the link leads to what the cell sums up"
        backgrounds = []
        for scheme in ("light", "dark"):
            await page.scheme(scheme)
            await page.open(front)
            low_contrasts = [
                text for text in await page.value(LOW_CONTRAST_TEXTS) if ".md-search" not in text
            ]  # the theme's
            assert low_contrasts == [], scheme
            backgrounds.append(await page.value("getComputedStyle(document.body).backgroundColor"))
        assert backgrounds[0] != backgrounds[1]
        meta = "document.querySelector('.md-search-result__meta')"
        observer = f"new MutationObserver(() => /\\d/.test({meta}.textContent) && done({meta}.textContent))"
        await page.value(f"window.found = new Promise(done => {observer}.observe({meta}, {{childList: true}})), 0")
        await page.press("/", *"mutant")
        assert "matching documents" in await page.value("window.found")
        assert page.errors == []


def test_a_document_has_the_same_parts_on_the_site_as_on_github(site: Path) -> None:
    """MkDocs has its own Markdown dialect: the content of a list item must be indented by four spaces, and a list or a
    table must follow an empty line."""
    tags = re.compile(r"<(li|ol|ul|table|tr|code|h2|h3|blockquote)[ >]")
    differences = {}
    for document in [*(PROJECT / "docs").rglob("*.md"), PROJECT / "CONTRIBUTING.md", PROJECT / "CHANGELOG.md"]:
        in_docs = document.is_relative_to(PROJECT / "docs")
        page = site / (document.relative_to(PROJECT / "docs") if in_docs else Path("repository", document.name))
        stem = "index" if page.name == "README.md" else page.stem
        text = page.with_name(f"{'documents' if page == site / 'README.md' else stem}.html").read_text("utf-8")
        rendered_tags = Counter(tags.findall(text[text.index("<article") : text.index("</article>")]))
        expected_tags = Counter(
            tags.findall(MarkdownIt("commonmark").enable("table").render(document.read_text("utf-8")))
        )
        if rendered_tags != expected_tags:
            differences[str(document.relative_to(PROJECT))] = {
                "shown": rendered_tags - expected_tags,
                "meant": expected_tags - rendered_tags,
            }
    assert differences == {}


def test_the_front_page_is_the_matrix(project: Path) -> None:
    result = build_site(project, project / "site")
    assert result.returncode == 0, result.stderr
    front, text = project / "site" / "index.html", (project / "site" / "index.html").read_text("utf-8")
    assert '<a class="none word" href="#core">' in text and "CORE-001" in text
    assert {"documents.html", "writing-an-implementation.html#wrong"} <= References(front).links
    assert "<h1>Index" not in text and 'id="index"' in (project / "site" / "documents.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("title: Mine", "titel: Mine", "mine.yaml:4: titel: unknown field"),
        ("../writing-an-implementation.md#wrong", "../../mkdocs.yml", "../../mkdocs.yml is no page of the site"),
    ],
)
def test_a_mistake_in_a_description_fails_the_build(project: Path, old: str, new: str, message: str) -> None:
    path = project / "docs" / "implementations" / "mine.yaml"
    path.write_text(path.read_text().replace(old, new))
    result = build_site(project, project / "site")
    assert result.returncode == 1 and message in result.stderr and "Traceback" not in result.stderr


def test_linked_files_outside_docs_are_part_of_the_site(project: Path) -> None:
    text = "# Index\n\n[1](../OUTSIDE.md#a-place), [2](../data/one.yaml), [3](../data/)\n\n    [it](../OUTSIDE.md)\n"
    (project / "docs" / "README.md").write_text(text)
    result = build_site(project, project / "site")
    assert result.returncode == 0, result.stderr
    site, repository_pages = project / "site", project / "site" / "repository"
    expected_tags = {f"repository/{name}" for name in ("OUTSIDE.html#a-place", "data/one.yaml", "data/index.html")}
    assert References(site / "documents.html").links >= expected_tags
    assert "[it](../OUTSIDE.md)" in (site / "documents.html").read_text(), "an example stays as it is"
    assert "../documents.html" in References(repository_pages / "OUTSIDE.html").links
    assert "one.yaml" in References(repository_pages / "data" / "index.html").links
    assert (repository_pages / "data" / "one.yaml").read_text() == "a: 1\n"


def test_a_dead_link_fails_the_build(project: Path) -> None:
    dead_links = ["none.md", "../none.yaml", "../none/", "../OUTSIDE.md#no-such-place", "../../../etc/passwd"]
    text = "".join(f"- [it]({link})\n" for link in dead_links)
    (project / "docs" / "README.md").write_text(f"# Index\n\n{text}")
    result = build_site(project, project / "site")
    assert result.returncode == 1
    assert [link for link in dead_links if link.removeprefix("../OUTSIDE.md") not in result.stderr] == []
