"""Tests that the pages of findings agree with the recorded runs, and that the recipe of each finding has been run
unchanged or the finding names a test of the suite."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from conformance import tests
from conformance.report import findings, recorded
from conformance.suite.registry import requirement
from tests.findings import page, recipe

SUITE = "**With the suite:**"
NAMED = re.compile(r"--test ([\w/.:]+)")
TESTS = Path(tests.__path__[0])


@pytest.mark.parametrize(("pages", "runs"), [(page.PAGES, page.RUNS), ([page.GANG_MAPS], page.GANG_MAP_RUNS)])
def test_the_findings_agree_with_the_recorded_runs(pages: Sequence[Path], runs: Path) -> None:
    assert findings.problems(findings.read(pages), recorded.read(runs), requirement.load()) == []


def test_the_index_is_up_to_date() -> None:
    assert page.INDEX.read_text("utf-8") == page.text(), "run: make docs"


def test_every_finding_has_a_recipe_that_was_run_as_it_stands() -> None:
    digests = recipe.recorded()
    every = [entry for path in page.PAGES for entry in recipe.recipes(path) if not without_recipe(entry.finding)]
    assert [entry.name for entry in every if not any(command.output for command in entry.commands)] == []
    assert [entry.name for entry in every if digests.get(entry.name) != entry.digest] == [], (
        "run: python -m tests.findings.run --stale …"
    )


def test_the_tests_that_show_findings_exist() -> None:
    named_tests = {test for finding in findings.read(page.PAGES) for test in suite_tests(finding)}
    assert [test for test in sorted(named_tests) if not exists(test)] == []
    assert not exists("core/test_absent.py") and not exists("lifecycle/test_orphans.py::test_absent")


def without_recipe(finding: findings.Finding) -> bool:
    """Return whether a finding needs no recipe: it happens by chance, or its page names the test that shows it."""
    return by_chance(finding) or bool(suite_tests(finding))


def suite_tests(finding: findings.Finding) -> list[str]:
    """Return the tests that a finding names instead of a recipe."""
    return [test for line in finding.body.splitlines() if line.startswith(SUITE) for test in NAMED.findall(line)]


def exists(test: str) -> bool:
    """Return whether the suite has this test: a file, or a function in it (`file::function`)."""
    file, _, function = test.partition("::")
    path = TESTS / file
    return path.is_file() and f"def {function}(" * bool(function) in path.read_text("utf-8")


def by_chance(finding: findings.Finding) -> bool:
    """Return whether a finding cannot be reproduced at will: each of its requirements fails only in some runs, and the
    page says why there is no recipe."""
    return finding.sometimes_failing.issuperset(finding.ids) and "No recipe:" in finding.body


def commands(text: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(command.text, command.output) for command in recipe.commands(f"```console\n{text}```\n")]


def test_a_command_continues_until_the_shell_has_all_of_it() -> None:
    text = "$ cat <<'X'\na\nX\na\n$ echo 'b\nc' \\\n    d\nb\nc d\n$ true\n"
    assert commands(text) == [("cat <<'X'\na\nX", ("a",)), ("echo 'b\nc' \\\n    d", ("b", "c d")), ("true", ())]


@pytest.mark.parametrize(
    ("page_says", "output", "same"),
    [
        (("a  b", "c"), "a b\n\nc\n", True),
        (("pod/…",), "pod/x-1\n", True),
        (("… x …",), "one\ntwo x y\n", True),
        (("a.c",), "abc\n", False),
        (("a",), "a\nb\n", False),
    ],
)
def test_an_output_is_what_the_page_shows(page_says: tuple[str, ...], output: str, same: bool) -> None:
    assert recipe.shows(page_says, output) is same


def test_a_recipe_starts_with_what_its_page_prepares(tmp_path: Path) -> None:
    path = tmp_path / "p.md"
    path.write_text("# P\n\n```console\n$ a\n```\n\n## AA-001: x\n\n```console\n$ b\n1\n```\n\n## AA-002: y\n")
    first, second = recipe.recipes(path)
    assert ([c.text for c in first.prepared], [c.text for c in first.commands]) == (["a"], ["b"])
    assert (first.name, second.commands) == ("p.md: AA-001", ())
