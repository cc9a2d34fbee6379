"""A hook of MkDocs: links that work on GitHub also work on the site.

Documents also link to folders and to files of the repository that are not documents. The site includes every link
target: Markdown files become pages, other files are copied unchanged, and a folder without a README gets a page that
lists its files. Everything from outside `docs/` is placed below `repository/`. A link whose target does not exist is
left unchanged, so `mkdocs build --strict` fails.
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
    """The repository, and the places of its files on the site."""

    def __init__(self, config: MkDocsConfig) -> None:
        self._root, self._docs = Path(config.config_file_path).parent.resolve(), Path(config.docs_dir).resolve()
        self._folders: dict[str, Path] = {}
        """Page → the folder that its links are relative to, if that differs from the folder of its source."""
        self._config = config

    def target(self, link: str, start: Path) -> Path | None:
        """Return the target of a link in a file of the folder `start`; None if the target is not part of the
        repository."""
        parts = urlsplit(link)
        if parts.scheme or parts.netloc or not parts.path or parts.path.startswith("/"):
            return None
        path = Path(os.path.normpath(start / unquote(parts.path)))
        return path if path.is_relative_to(self._root) and path.exists() else None

    def place(self, path: Path) -> str:
        """Return the path of a file or folder among the sources of the site."""
        if path.is_dir():
            path = path / ("README.md" if (path / "README.md").exists() else "index.md")
        if path.is_relative_to(self._docs):
            return path.relative_to(self._docs).as_posix()
        return posixpath.join(OUTSIDE, path.relative_to(self._root).as_posix())

    def start(self, file: File) -> Path:
        """Return the folder that the links of a page are relative to."""
        return self._folders.get(file.src_uri) or Path(str(file.abs_src_path)).parent

    def add(self, path: Path, files: Files) -> File | None:
        """Add a file or folder to the site. Return the file if it is a page, whose links must be followed too."""
        uri = self.place(path)
        if files.get_file_from_path(uri) is not None:
            return None
        if path.is_dir() and not (path / "README.md").exists():
            names = sorted(f"{child.name}/" if child.is_dir() else child.name for child in path.iterdir())
            links = "".join(f"- [{name}]({name})\n" for name in names if not name.startswith((".", "__")))
            file = File.generated(self._config, uri, content=f"# {path.relative_to(self._root)}/\n\n{links}")
            self._folders[uri] = path
        else:
            source = path / "README.md" if path.is_dir() else path
            file = File.generated(self._config, uri, abs_src_path=str(source))
            self._folders[uri] = source.parent
        files.append(file)
        return file if file.is_documentation_page() else None


class Links(Treeprocessor):
    """Rewrites links as MkDocs expects them: relative paths between the site's source files."""

    def __init__(self, md: Markdown, repository: Repository) -> None:
        super().__init__(md)
        self._repository = repository
        self.page: File | None = None

    def run(self, root: Element) -> None:
        """Rewrite the links of a page."""
        assert self.page is not None
        start, page_folder = self._repository.start(self.page), posixpath.dirname(self.page.src_uri)
        for element in root.iter():
            name = {"a": "href", "img": "src"}.get(element.tag, "")
            if (target := self._repository.target(element.get(name, ""), start)) is not None:
                fragment = urlsplit(element.get(name, "")).fragment
                link = posixpath.relpath(self._repository.place(target), page_folder or ".")
                element.set(name, f"{link}#{fragment}" if fragment else link)


class LinksOfPages(Extension):
    """Installs `Links` so that it runs before MkDocs processes the links."""

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
    """Add the files that pages link to and, recursively, the files that those link to."""
    repository = Repository(config)
    todo: list[File] = files.documentation_pages()
    while todo:
        page = todo.pop()
        for link in LINK.findall(page.content_string):
            if (target := repository.target(link, repository.start(page))) is not None:
                todo += filter(None, [repository.add(target, files)])
    config.markdown_extensions.append(LinksOfPages(repository))  # type: ignore[arg-type]


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **kwargs: Any) -> None:
    """Record which page is rendered next."""
    [links] = [extension for extension in config.markdown_extensions if isinstance(extension, LinksOfPages)]
    links.page = page.file
