"""Tests that the pages of findings agree with the recorded runs, and that each finding names a test of the suite or has
a recipe that was run unchanged."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from conformance import tests
from conformance.report import findings, recorded
from conformance.suite.registry import requirement
from tests.findings import page, recipe

SUITE_PREFIX = "**With the suite:**"
TEST_OPTION = re.compile(r"--test ([\w/.:]+)")
TESTS_FOLDER = Path(tests.__path__[0])


@pytest.mark.parametrize(
    ("pages", "runs"), [(page.FINDING_PAGES, page.RUNS_FILE), ([page.GANG_MAPS_PAGE], page.GANG_MAP_RUNS_FILE)]
)
def test_the_findings_agree_with_the_recorded_runs(pages: Sequence[Path], runs: Path) -> None:
    assert findings.problems(findings.read(pages), recorded.read(runs), requirement.load()) == []


def test_the_index_is_up_to_date() -> None:
    assert page.INDEX_PAGE.read_text("utf-8") == page.render_page(), "run: make docs"


def test_every_finding_has_a_recipe_that_was_run_unchanged() -> None:
    digests = recipe.recorded_digests()
    recipes_to_check = [
        entry
        for path in page.FINDING_PAGES
        for entry in recipe.read_recipes(path)
        if not needs_no_recipe(entry.finding)
    ]
    assert [entry.name for entry in recipes_to_check if not any(command.output for command in entry.commands)] == []
    assert [entry.name for entry in recipes_to_check if digests.get(entry.name) != entry.digest] == [], (
        "run: python -m tests.findings.run --stale …"
    )


def test_the_tests_that_show_findings_exist() -> None:
    named_tests = {test for finding in findings.read(page.FINDING_PAGES) for test in suite_tests(finding)}
    assert [test for test in sorted(named_tests) if not has_test(test)] == []
    assert not has_test("core/test_absent.py") and not has_test("lifecycle/test_orphans.py::test_absent")


def needs_no_recipe(finding: findings.Finding) -> bool:
    """Return whether a finding needs no recipe because it happens by chance or its page names a test that shows it."""
    return happens_by_chance(finding) or bool(suite_tests(finding))


def suite_tests(finding: findings.Finding) -> list[str]:
    """Return the tests that a finding names instead of a recipe."""
    return [
        test
        for line in finding.body.splitlines()
        if line.startswith(SUITE_PREFIX)
        for test in TEST_OPTION.findall(line)
    ]


def has_test(test: str) -> bool:
    """Return whether the suite has a test, which is a file, or a function in a file (`file::function`)."""
    file, _, function = test.partition("::")
    path = TESTS_FOLDER / file
    return path.is_file() and f"def {function}(" * bool(function) in path.read_text("utf-8")


def happens_by_chance(finding: findings.Finding) -> bool:
    """Return whether a finding cannot be reproduced reliably: each of its requirements fails only in some runs, and the
    page says why it has no recipe."""
    return finding.sometimes_failing.issuperset(finding.ids) and "No recipe:" in finding.body


def commands(text: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(command.text, command.output) for command in recipe.commands(f"```console\n{text}```\n")]


def test_a_command_continues_until_it_is_complete() -> None:
    text = "$ cat <<'X'\na\nX\na\n$ echo 'b\nc' \\\n    d\nb\nc d\n$ true\n"
    assert commands(text) == [("cat <<'X'\na\nX", ("a",)), ("echo 'b\nc' \\\n    d", ("b", "c d")), ("true", ())]


@pytest.mark.parametrize(
    ("expected_lines", "output", "is_match"),
    [
        (("a  b", "c"), "a b\n\nc\n", True),
        (("pod/…",), "pod/x-1\n", True),
        (("… x …",), "one\ntwo x y\n", True),
        (("a.c",), "abc\n", False),
        (("a",), "a\nb\n", False),
    ],
)
def test_an_output_matches_the_lines_on_its_page(expected_lines: tuple[str, ...], output: str, is_match: bool) -> None:
    assert recipe.matches(expected_lines, output) is is_match


def test_a_recipe_starts_with_the_preparation_on_its_page(tmp_path: Path) -> None:
    path = tmp_path / "p.md"
    path.write_text("# P\n\n```console\n$ a\n```\n\n## AA-001: x\n\n```console\n$ b\n1\n```\n\n## AA-002: y\n")
    first_recipe, second_recipe = recipe.read_recipes(path)
    assert ([c.text for c in first_recipe.preparation], [c.text for c in first_recipe.commands]) == (["a"], ["b"])
    assert (first_recipe.name, second_recipe.commands) == ("p.md: AA-001", ())
