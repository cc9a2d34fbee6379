"""Tests that the requirements listed for each of upstream's end-to-end tests exist, and that docs/upstream-tests.md is
up to date."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance import specification
from conformance.errors import UsageError
from conformance.suite.registry import requirement
from conformance.suite.registry.requirement import Registry, Retired
from tests.coverage import upstream
from tests.coverage.upstream import UpstreamFile, UpstreamTest, UpstreamTests
from tests.requirements import entry

TEST_NAME = re.compile(r"\b(GS|GT|RU|OD|SO|TAS)\d+\b")
REGISTRY = Registry(
    {"core": "The core."},
    {"AA-001": entry()},
    {"AA-002": Retired("AA-002", "It did.", "It need not.")},
)


def listed(*tests: UpstreamTest) -> UpstreamTests:
    files = [UpstreamFile("a_test.go", list(tests))]
    return UpstreamTests(
        "conformance.grove.io/v1alpha1", "UpstreamTests", "https://example.com/r", "0123456789" * 4, "e2e", files
    )


def test_each_test_names_requirements_that_exist() -> None:
    assert upstream.find_problems(upstream.read(), requirement.load()) == []


def test_the_page_is_up_to_date() -> None:
    expected = upstream.render_page(upstream.read(), requirement.load())
    assert upstream.PAGE.read_text("utf-8") == expected, "run: make docs"


def test_every_test_that_the_specification_describes_is_listed() -> None:
    described_names = {
        match[0]
        for row in specification.load().values()
        if row.id.startswith("E2E-") and (match := TEST_NAME.match(dict(row.cells).get("Test", "")))
    }
    listed_names = {test.name.split("_")[1] for test in upstream.read().tests if "_" in test.name}
    assert len(described_names) == 69 and sorted(described_names - listed_names) == []


def test_duplicate_tests_and_retired_or_unknown_ids_are_reported() -> None:
    upstream_tests = listed(UpstreamTest("Test_A", "", ("AA-001", "AA-002")), UpstreamTest("Test_A", "", ("B",)))
    assert upstream.find_problems(upstream_tests, REGISTRY) == [
        "Test_A: is listed twice",
        "Test_A: AA-002 is retired",
        "Test_A: B is no requirement",
    ]


def test_the_page_says_how_each_test_is_judged() -> None:
    text = upstream.render_page(
        listed(
            UpstreamTest("Test_A", "one|two", ("AA-001",)),
            UpstreamTest("Test_B", "more", ("AA-001",), "no scene has it"),
            UpstreamTest("Test_C", "less", reason="why not"),
        ),
        REGISTRY,
    )
    assert "Of 3 tests, 1 are judged in full, 1 in part, and 1 not." in text
    assert "| `Test_A` | one\\|two | [AA-001](requirements.md#core) | in full |" in text
    assert "| `Test_B` | more | [AA-001](requirements.md#core) | in part: no scene has it |" in text
    assert "| `Test_C` | less |  | not: why not |" in text


def test_a_test_with_neither_requirements_nor_a_reason_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "upstream_tests.yaml"
    header = "apiVersion: conformance.grove.io/v1alpha1\nkind: UpstreamTests\nrepository: https://example.com\n"
    file_entries = "folder: e\nfiles:\n- path: a_test.go\n  tests:\n  - {name: Test_A, asks: something else}\n"
    path.write_text(f"{header}commit: {'a' * 40}\n{file_entries}")
    with pytest.raises(UsageError, match=r"upstream_tests.yaml:9: files\[0\].tests\[0\]"):
        upstream.read(path)
