"""A hook of MkDocs: links that work on GitHub also work on the site.

Documents link to files of the repository that are not documents, and to folders. The site gets what they link to:
Markdown as pages, other files as they are, and of a folder without a README a page that lists it. Everything from
outside `docs/` is below `repository/`. A link to what does not exist stays as it is, and `mkdocs build --strict` fails.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.extensions import Extension
from markdown.treeprocessors import Treeprocessor
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

LINK = re.compile(r"\]\(([^)\s]+)\)")
OUTSIDE = "repository"


class Repository:
    """The repository, and where its files are on the site."""

    def __init__(self, config: MkDocsConfig) -> None:
        self._root, self._docs = Path(config.config_file_path).parent.resolve(), Path(config.docs_dir).resolve()
        self._folders: dict[str, Path] = {}
        """Page → the folder that its links start from, if that is not the folder of its source."""
        self._config = config

    def target(self, link: str, start: Path) -> Path | None:
        """Return what a link in a file of the folder `start` leads to; None if that is no part of the repository."""
        parts = urlsplit(link)
        if parts.scheme or parts.netloc or not parts.path or parts.path.startswith("/"):
            return None
        path = Path(os.path.normpath(start / unquote(parts.path)))
        return path if path.is_relative_to(self._root) and path.exists() else None

    def place(self, path: Path) -> str:
        """Return the place of a file or folder among the sources of the site."""
        if path.is_dir():
            path = path / ("README.md" if (path / "README.md").exists() else "index.md")
        if path.is_relative_to(self._docs):
            return path.relative_to(self._docs).as_posix()
        return posixpath.join(OUTSIDE, path.relative_to(self._root).as_posix())

    def start(self, file: File) -> Path:
        """Return the folder that the links of a page start from."""
        return self._folders.get(file.src_uri) or Path(str(file.abs_src_path)).parent

    def add(self, path: Path, files: Files) -> File | None:
        """Add a file or folder to the site. Return it if it is a page whose links are to be followed."""
        uri = self.place(path)
        if files.get_file_from_path(uri) is not None:
            return None
        if path.is_dir() and not (path / "README.md").exists():
            names = sorted(f"{child.name}/" if child.is_dir() else child.name for child in path.iterdir())
            listed = "".join(f"- [{name}]({name})\n" for name in names if not name.startswith((".", "__")))
            file = File.generated(self._config, uri, content=f"# {path.relative_to(self._root)}/\n\n{listed}")
            self._folders[uri] = path
        else:
            source = path / "README.md" if path.is_dir() else path
            file = File.generated(self._config, uri, abs_src_path=str(source))
            self._folders[uri] = source.parent
        files.append(file)
        return file if file.is_documentation_page() else None


class Links(Treeprocessor):
    """Writes links as MkDocs wants them: from one source of the site to another."""

    def __init__(self, md: Markdown, repository: Repository) -> None:
        super().__init__(md)
        self._repository = repository
        self.page: File | None = None

    def run(self, root: Element) -> None:
        """Rewrite the links of a page."""
        assert self.page is not None
        start, here = self._repository.start(self.page), posixpath.dirname(self.page.src_uri)
        for element in root.iter():
            name = {"a": "href", "img": "src"}.get(element.tag, "")
            if (target := self._repository.target(element.get(name, ""), start)) is not None:
                fragment = urlsplit(element.get(name, "")).fragment
                link = posixpath.relpath(self._repository.place(target), here or ".")
                element.set(name, f"{link}#{fragment}" if fragment else link)


class LinksOfPages(Extension):
    """Installs `Links` before MkDocs looks at the links."""

    def __init__(self, repository: Repository) -> None:
        super().__init__()
        self.repository = repository
        self.page: File | None = None

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802, the name is Markdown's
        """Register the processor for the page that is about to be rendered."""
        links = Links(md, self.repository)
        links.page = self.page
        md.treeprocessors.register(links, "repository-links", 5)


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add what pages link to, and what those pages link to in turn."""
    repository = Repository(config)
    todo: list[File] = files.documentation_pages()
    while todo:
        page = todo.pop()
        for link in LINK.findall(page.content_string):
            if (target := repository.target(link, repository.start(page))) is not None:
                todo += filter(None, [repository.add(target, files)])
    config.markdown_extensions.append(LinksOfPages(repository))  # type: ignore[arg-type]


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **kwargs: Any) -> None:
    """Say which page is rendered next."""
    [links] = [extension for extension in config.markdown_extensions if isinstance(extension, LinksOfPages)]
    links.page = page.file
