"""Tests that everything that the repository cites exists, and that the lint reports citations that do not resolve."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance import specification
from conformance.suite.registry import basis
from conformance.suite.registry.requirement import Level, Registry
from tests.citations import lint
from tests.requirements import entry

PAGE = """\
# Page

## <a id="s2-1"></a>2.1 First things

| id | fact | mark |
|---|---|---|
| <a id="xy-01"></a>XY-01 kind | a fact with a \\| in it, see [XY-02](#xy-02) | contract |
| <a id="xy-05b"></a>XY-05b | another | open |
| [XY-01](#xy-01) | mentioned again | |

<a id="xy-02"></a>XY-02: a paragraph.
"""


def test_every_citation_of_the_repository_resolves() -> None:
    assert [str(problem) for problem in lint.find_problems()] == []


def test_a_wrong_citation_in_the_repository_is_reported(tmp_path: Path) -> None:
    """A wrong id in a comment is reported as `make lint` prints it."""
    wrong_id = f"OBJ-{9999}"
    (tmp_path / "code.py").write_text(f"x = 1\n# as {wrong_id} says; OBJ-401 and CORE-001 are right\n")
    (problem,) = lint.find_problems(tmp_path)
    assert re.fullmatch(rf'code.py:2: unknown id {wrong_id} \(hint: did you mean "OBJ-.*"\?\)', str(problem))


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    return path


def test_rows_and_paragraphs_with_an_anchor_are_read(page: Path) -> None:
    rows = {row.id: row for row in specification.rows(page)}
    assert list(rows) == ["XY-01", "XY-05b", "XY-02"]
    assert rows["XY-01"].cells == (("", "kind"), ("fact", "a fact with a | in it, see XY-02"), ("mark", "contract"))
    assert rows["XY-05b"].link == "docs/spec/page.md#xy-05b"
    assert rows["XY-02"].text == "XY-02: a paragraph."


@pytest.mark.parametrize("id", ["XY-1", "XY-001", "XY-RU-01", "XY-05", "XY-S02", "ZZ-01, XY-5b"])
def test_a_text_in_the_form_of_an_id_needs_a_row(page: Path, id: str) -> None:
    row_ids = {row.id for row in specification.rows(page)}
    (problem,) = lint.unknown_ids("a.py", f"\n\n# {id}", specification.pattern(row_ids), row_ids)
    assert str(problem).startswith("a.py:3: unknown id XY-")


def test_ids_of_other_projects_are_ignored(page: Path) -> None:
    row_ids = {row.id for row in specification.rows(page)}
    text = "XY-01 XY-05b (XY-02) ZZ-01 AXY-9 XY-name XY-01-b XY"
    assert list(lint.unknown_ids("a.py", text, specification.pattern(row_ids), row_ids)) == []


@pytest.mark.parametrize(
    ("text", "description"),
    [
        ("PAGE, section 2.1", None),
        ("`PAGE` sections 2.1 and 2.1", None),
        ('PAGE,\n# section "2.1 First things"', None),
        ("PAGE, section 2.2", "page.md has no section 2.2"),
        ("PAGE, sections 2.1, 3 and 2.1", "page.md has no section 3"),
        ('PAGE, section "Last things"', "page.md has no section Last things"),
        ("PAGE, section of the end", "a section without a name"),
        ("other-PAGE, section 1", "unknown document other-page.md"),
    ],
)
def test_sections_are_named_by_number_or_title(text: str, description: str | None) -> None:
    problems = list(
        lint.section_problems("a.py", text.replace("PAGE", "page.md"), lambda name: PAGE if name == "page.md" else None)
    )
    assert [problem.description for problem in problems] == ([description] if description else [])


@pytest.mark.parametrize(
    ("link", "description"),
    [
        ("page.md#xy-01", None),
        ("#21-first-things", None),
        ("https://example.com/page.md#nowhere", None),
        ("other.md", "no file other.md"),
        ("page.md#xy-09", "page.md has no anchor #xy-09"),
        ("#xy-09", "this page has no anchor #xy-09"),
    ],
)
def test_links_lead_to_files_and_anchors(page: Path, link: str, description: str | None) -> None:
    page.write_text(PAGE + f"\nsee [there]({link}), not `[there](nowhere.md)`\n")
    problems = list(lint.link_problems("page.md", page.read_text(), page))
    assert [problem.description for problem in problems] == ([description] if description else [])


def test_every_row_of_a_table_has_a_cell_for_each_column() -> None:
    text = "| a | b |\n|---|---|\n| 1 | 2 |\n| 1 \\| 2 | 3 |\n| 1 | 2 | 3 |\n\n| a |\n|---|\n| 1 |\n"
    assert [str(problem) for problem in lint.table_problems("page.md", text)] == [
        "page.md:5: a row with 3 cells in a table of 2 columns (hint: write \\| for a bar within a cell)"
    ]


def test_a_requirement_must_rest_on_a_row() -> None:
    entries = [
        entry("AA-001", source=("XY-01", "GREP-375")),
        entry("AA-002", source=("GREP-375",)),
        entry("AA-003", source=("XY-01", "XY-03")),
    ]
    registry = Registry({"core": "The core."}, {item.id: item for item in entries}, {})
    assert [str(problem) for problem in lint.source_problems(registry, {"XY-01"})] == [
        "conformance/suite/registry/requirements/core.yaml: AA-002: no source is a row of the specification"
        " (hint: cite a row of docs/spec/)",
        'conformance/suite/registry/requirements/core.yaml: AA-003: unknown source XY-03 (hint: did you mean "XY-01"?)',
    ]


QUOTATION = basis.Quotation("operator-readme", "Termination", "It is triggered for the replica.")


@pytest.mark.parametrize(
    ("contradiction", "problem_count"),
    [
        (basis.Quotation("operator-readme", "Termination", "Workloads fail fast."), 1),
        (basis.Quotation("operator-readme", "Termination, extent", "triggered for the replica"), 1),
        (basis.Quotation("operator-readme", "Termination, extent", "It is not."), 0),
        (basis.Quotation("grove-readme", "Termination", "It is triggered for the replica."), 0),
    ],
)
def test_a_must_cannot_rest_on_a_contradiction_to_another_requirement(
    contradiction: basis.Quotation, problem_count: int
) -> None:
    entries = [
        entry("AA-001", Level.MUST, quotes=(QUOTATION,)),
        entry("AA-002", Level.SHOULD, quotes=(QUOTATION,), contradicts=(contradiction,)),
    ]
    registry = Registry({"core": "The core."}, {item.id: item for item in entries}, {})
    assert [str(problem) for problem in lint.disagreement_problems(registry)] == problem_count * [
        "conformance/suite/registry/requirements/core.yaml: AA-001: quotes operator-readme, Termination, which"
        " contradicts AA-002 (hint: make what documents disagree on a SHOULD, or quote what carries the MUST alone)"
    ]


def test_a_must_that_a_document_contradicts_is_reported() -> None:
    contradiction = basis.Quotation("grove-readme", "Start", "It is not.")
    contradicted = entry(quotes=(QUOTATION,), contradicts=(contradiction,))
    (problem,) = lint.disagreement_problems(Registry({"core": "The core."}, {"AA-001": contradicted}, {}))
    assert problem.description == "a MUST that a document contradicts"


def test_an_id_with_two_rows_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / specification.FOLDER
    folder.mkdir(parents=True)
    (folder / "a.md").write_text('<a id="xy-01"></a>XY-01: this.\n\n<a id="xy-01"></a>XY-01: that.\n')
    assert [str(problem) for problem in lint.find_problems(tmp_path)] == [
        "docs/spec/a.md:3: duplicate id XY-01 (hint: link to docs/spec/a.md#xy-01)"
    ]


@pytest.mark.parametrize(("reason", "note"), [("A SHOULD is right.", "SHOULD"), ("Texts: 'It waits.'", "Texts:")])
def test_a_reason_that_is_a_working_note_is_reported(reason: str, note: str) -> None:
    (problem,) = lint.reason_problems(Registry({}, {"AA-001": entry(reason=reason)}, {}))
    assert f"AA-001: its reason says {note!r}" in str(problem)
