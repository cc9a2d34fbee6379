"""docs/upstream-tests.md: the requirements that judge the assertions of upstream's end-to-end tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from conformance import data, formats
from conformance.formats import Format
from conformance.suite.registry import coverage
from conformance.suite.registry.requirement import Registry

PAGE = data.PROJECT / "docs" / "upstream-tests.md"
JUDGED_IN_FULL, JUDGED_IN_PART, NOT_JUDGED = "in full", "in part", "not"


Words = Annotated[str, Meta(min_length=10)]


class UpstreamTest(Format, frozen=True):
    """A test of upstream: what it asks, the requirements that judge it, and what is not judged of it, and why."""

    name: Annotated[str, Meta(pattern="^Test")]
    asks: Words
    ids: Annotated[tuple[str, ...], Meta(min_length=1, extra_json_schema={"uniqueItems": True})] = ()
    reason: Words = ""


class UpstreamFile(Format, frozen=True):
    """A file of tests. `note` holds for all of them."""

    path: Annotated[str, Meta(pattern=r"_test\.go$")]
    tests: Annotated[
        list[
            Annotated[
                UpstreamTest, Meta(extra_json_schema={"anyOf": [{"required": ["ids"]}, {"required": ["reason"]}]})
            ]
        ],
        Meta(min_length=1),
    ]
    note: Words = ""


class UpstreamTests(Format, frozen=True):
    """The format of upstream_tests.yaml. `commit` is the one at which the tests were read."""

    api_version: Literal["conformance.grove.io/v1alpha1"]
    kind: Literal["UpstreamTests"]
    repository: Annotated[str, Meta(pattern="^https://")]
    commit: Annotated[str, Meta(pattern="^[0-9a-f]{40}$")]
    folder: str
    files: list[UpstreamFile]

    @property
    def tests(self) -> list[UpstreamTest]:
        """Return the tests of all files."""
        return [test for file in self.files for test in file.tests]


def read(path: Path | None = None) -> UpstreamTests:
    """Read the list of upstream's tests. Raises UsageError, with file, line and field, if the list is invalid."""
    return formats.read(path or coverage.folder() / "upstream_tests.yaml", UpstreamTests)[1]


def find_problems(upstream_tests: UpstreamTests, registry: Registry) -> list[str]:
    """Return a message for each test that is listed twice, and for each id that is retired or not a requirement."""
    names = Counter(test.name for test in upstream_tests.tests)
    duplicates = [f"{name}: is listed twice" for name, count in names.items() if count > 1]
    return duplicates + [
        f"{test.name}: {id} is {'retired' if id in registry.retired else 'no requirement'}"
        for test in upstream_tests.tests
        for id in test.ids
        if id not in registry.requirements
    ]


def render_page(upstream_tests: UpstreamTests, registry: Registry) -> str:
    """Render the page."""
    listed_tests = upstream_tests.tests
    counts = Counter(map(_coverage_of, listed_tests))
    commit = upstream_tests.commit
    tree, source = (f"{upstream_tests.repository}/{view}/{commit}/{upstream_tests.folder}" for view in ("tree", "blob"))
    lines = [
        "# Upstream's end-to-end tests",
        "",
        "<!-- made by `make docs` from fixtures/coverage/upstream_tests.yaml; do not edit -->",
        "",
        "Each end-to-end test of Grove's own repository, what it asks, and which requirements judge that here. They",
        f"were read at commit [`{commit[:8]}`]({tree});",
        "[spec/e2e.md](spec/e2e.md) describes them in detail.",
        "",
        f"Of {len(listed_tests)} tests, {counts[JUDGED_IN_FULL]} are judged in full, {counts[JUDGED_IN_PART]} in part, "
        f"and {counts[NOT_JUDGED]} not.",
        "",
        "*In full* means that requirements say what the test asserts, and that a scene plays what it does. How long",
        "something may take and how many nodes there are is no part of it, nor are the words of messages.",
    ]
    for file in upstream_tests.files:
        lines += ["", f"## {file.path}", ""]
        lines += [f"[Source]({source}/{file.path}). {file.note}".rstrip(), ""]
        lines += ["| test | what it asks | judged by | judged |", "|---|---|---|---|"]
        lines += [_row(test, registry) for test in file.tests]
    return "\n".join(lines) + "\n"


def _coverage_of(test: UpstreamTest) -> str:
    if not test.ids:
        return NOT_JUDGED
    return JUDGED_IN_PART if test.reason else JUDGED_IN_FULL


def _row(test: UpstreamTest, registry: Registry) -> str:
    cells: Sequence[str] = (
        f"`{test.name}`",
        test.asks,
        ", ".join(_link(id, registry) for id in test.ids),
        f"{_coverage_of(test)}: {test.reason}" if test.reason else _coverage_of(test),
    )
    return f"| {' | '.join(map(coverage._cell, cells))} |"


def _link(id: str, registry: Registry) -> str:
    return f"[{id}](requirements.md#{registry.requirements[id].profile})"
