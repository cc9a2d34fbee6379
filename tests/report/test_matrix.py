"""Tests of `report matrix`: descriptions and reports of implementations, and the page that is made from them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs
from test_document import sample_report
from test_findings import RUN

from conformance import cli, data
from conformance.errors import Exit, UsageError
from conformance.publishing import matrix, published
from conformance.publishing.matrix import Cell, CellWord
from conformance.publishing.published import PublishedImplementation, PublishedUpgrade, PublishedVersion
from conformance.report import document, recorded
from conformance.report.marks import MARKS
from conformance.report.model import Outcome
from conformance.report.recorded import Run
from conformance.suite.registry import requirement
from conformance.suite.registry.requirement import Level, Registry
from tests.requirements import entry

PUBLISHED = data.PROJECT / "docs" / "implementations"
HOSTILE = "<img src=x onerror=alert(1)> | `"


REGISTRY = Registry(
    {"core": "The core.", "gang": "No requirements."},
    {item.id: item for item in (entry("AA-001"), entry("AA-002"), entry("AA-003", Level.SHOULD))},
    {},
)


def run(one: str = "", two: str = "", three: str = "", **fields: object) -> Run:
    """Return a run with these outcomes of AA-001 to AA-003. A requirement with an empty outcome is left out."""
    outcomes = {"AA-001": one, "AA-002": two, "AA-003": three}
    return structs.replace(RUN, outcomes={id: Outcome(word) for id, word in outcomes.items() if word}, **fields)  # type: ignore[arg-type]


def of(*runs: Run, note: str = "") -> PublishedImplementation:
    return PublishedImplementation(
        "mine", "Mine", "It is mine.", "", 1, (PublishedVersion("1", "1", "", runs, note=note),)
    )


def cell(*runs: Run) -> Cell:
    (column,) = matrix.matrix([of(*runs)], REGISTRY).columns
    assert list(column.cells) == ["core"]
    return column.cells["core"]


@pytest.mark.parametrize(
    ("runs", "word", "details"),
    [
        ([run("passed", "passed", "passed")], CellWord.CONFORMANT, ["3 passed"]),
        (
            [run("passed", "failed", "failed")],
            CellWord.NOT_CONFORMANT,
            ["1 failed", "1 failed (does not decide)", "1 passed"],
        ),
        ([run("passed", "passed", "failed")], CellWord.CONFORMANT, ["1 failed (does not decide)", "2 passed"]),
        ([run("passed", "expected-failure", "passed")], CellWord.EXCEPT_EXPECTED, ["1 expected-failure", "2 passed"]),
        ([run("passed", "known-limit", "passed")], CellWord.CONFORMANT, ["1 known-limit", "2 passed"]),
        ([run("passed", "blocked", "passed")], CellWord.PARTIAL, ["1 blocked", "2 passed"]),
        ([run("passed", "not-run", "passed")], CellWord.PARTIAL, ["1 not-run", "2 passed"]),
        ([run("passed", "harness-error", "passed")], CellWord.PARTIAL, ["1 harness-error", "2 passed"]),
        ([run("passed", "not-claimed", "not-claimed")], CellWord.CONFORMANT, ["1 passed", "2 not-claimed"]),
        ([run("not-claimed", "not-claimed", "not-claimed")], CellWord.NOT_CLAIMED, ["3 not-claimed"]),
        ([run("not-run", "not-run", "not-claimed")], CellWord.NOT_JUDGED, ["2 not-run", "1 not-claimed"]),
        ([run("passed")], CellWord.CONFORMANT, ["1 passed", "2 not in its runs"]),
        ([], CellWord.NOT_JUDGED, ["3 not in its runs"]),
        ([run(three="failed")], CellWord.NOT_JUDGED, ["1 failed (does not decide)", "2 not in its runs"]),
        (
            [run("passed", "blocked", "passed", profiles={"core": "not-conformant"})],
            CellWord.NOT_CONFORMANT,
            ["1 blocked", "2 passed"],
        ),
        ([run("passed", "passed", "passed"), run("failed")], CellWord.NOT_CONFORMANT, ["1 failed", "2 passed"]),
        (
            [run("failed", "blocked", "passed"), run("passed", "passed")],
            CellWord.NOT_CONFORMANT,
            ["1 failed", "2 passed"],
        ),
    ],
)
def test_a_cell_states_the_result_of_its_runs(runs: list[Run], word: CellWord, details: list[str]) -> None:
    result = cell(*runs)
    assert (result.word, result.details) == (word, details)


@pytest.mark.parametrize("profiles", [{}, {"core": "not-conformant"}])
def test_a_seed_that_fails_leaves_a_cell_conformant(profiles: dict[str, str]) -> None:
    """A report by an earlier suite with a different verdict on the profile does not change this."""
    entries = {**REGISTRY.requirements, "AA-002": structs.replace(REGISTRY.requirements["AA-002"], seed="GREP-1")}
    implementation = of(run("passed", "failed", "passed", profiles=profiles))
    (column,) = matrix.matrix([implementation], replace(REGISTRY, requirements=entries)).columns
    core = column.cells["core"]
    assert (core.word, core.details) == (CellWord.CONFORMANT, ["1 failed (does not decide)", "2 passed"])


@pytest.mark.parametrize(
    ("outcomes", "word", "text"),
    [
        (None, CellWord.NOT_JUDGED, ""),
        ({"UPG-001": "passed", "UPG-002": "failed"}, CellWord.CONFORMANT, "1 passed, UPG-002 failed"),
        (
            {"UPG-001": "passed", "UPG-002": "passed", "UPG-003": "blocked"},
            CellWord.CONFORMANT,
            "2 passed, UPG-003 blocked",
        ),
        ({"UPG-001": "failed", "CORE-001": "passed"}, CellWord.NOT_CONFORMANT, "UPG-001 failed"),
        ({"UPG-001": "not-claimed", "UPG-002": "passed"}, CellWord.NOT_JUDGED, "1 passed"),
    ],
)
def test_an_upgrade_keeps_pods_or_not(outcomes: dict[str, str] | None, word: CellWord, text: str) -> None:
    judged_run = (
        None if outcomes is None else structs.replace(RUN, outcomes={id: Outcome(o) for id, o in outcomes.items()})
    )
    assert matrix.upgrade_result(PublishedUpgrade("a", "b", judged_run)) == (word, text)


def test_the_page_leads_from_a_profile_to_its_requirements() -> None:
    text = matrix.page(matrix.matrix([of(run("passed", "failed", "not-claimed"))], REGISTRY))
    targets = set(re.findall(r'href="#([^"]+)"', text))
    assert targets == {"main", "core"} and all(f'id="{target}"' in text for target in targets)
    (row,) = re.findall(r'<tr id="AA-002">.*?</tr>', text, re.S)
    assert '<td class="bad" title="failed">✗</td>' in row and "Text of AA-002." in row


def test_a_requirement_without_a_run_has_no_mark() -> None:
    text = matrix.page(matrix.matrix([of(run("passed"))], REGISTRY))
    (row,) = re.findall(r'<tr id="AA-002">.*?</tr>', text, re.S)
    assert row.endswith("<td>MUST</td><td></td></tr>")


def test_findings_are_links_if_their_address_is_known() -> None:
    version = PublishedVersion("1", "1", "", (run("passed"),), findings=("../found.md",))
    table = matrix.matrix([replace(of(), versions=(version,))], REGISTRY)
    assert "findings: ../found.md" in matrix.page(table)
    assert '<a href="here/found.html">findings</a>' in matrix.part(table, {"../found.md": "here/found.html"}.get)


def test_the_summary_has_one_line_for_the_newest_version() -> None:
    two = {"gang": "Gangs."} | dict(REGISTRY.profiles)
    gang = entry("BB-001", profile="gang")
    registry = replace(REGISTRY, profiles=two, requirements={**REGISTRY.requirements, "BB-001": gang})
    judged_run = structs.replace(
        run("passed", "failed"), outcomes={**run("passed", "failed").outcomes, "BB-001": Outcome.PASSED}
    )
    by_name = {"a": of(judged_run), "b": of(run("passed", "blocked")), "c": of()}
    earlier = PublishedVersion("0", "0", "", (judged_run,))
    implementations = [
        replace(implementation, name=name, versions=(*implementation.versions, earlier))
        for name, implementation in by_name.items()
    ]
    lines = matrix.summary(matrix.matrix(implementations, registry)).splitlines()
    assert lines[2:] == [
        "| **Mine** 1 | gang | core | – |",
        "| **Mine** 1 | – | – | judged in part: core; 1 not judged yet |",
        "| **Mine** 1 | – | – | 2 not judged yet |",
    ]


def scheduling() -> matrix.Matrix:
    """Return the matrix of an implementation of both roles, an operator, and a gang scheduler with two versions."""
    binding = {"AA-001": ("operator",), "BB-001": ("gang-scheduler",), "CC-001": ("operator", "gang-scheduler")}
    profile = {"AA-001": "core", "BB-001": "scheduler", "CC-001": "gang"}
    entries = {id: entry(id, profile=profile[id], roles=roles) for id, roles in binding.items()}
    outcomes = {"AA-001": Outcome.PASSED, "BB-001": Outcome.FAILED, "CC-001": Outcome.PASSED}

    def implementation(name: str, versions: tuple[str, ...], **supplied: str) -> PublishedImplementation:
        judged_run = structs.replace(RUN, outcomes=outcomes, supplied=supplied)
        return PublishedImplementation(
            name, name, "", "", 1, tuple(PublishedVersion(v, v, "", (judged_run,)) for v in versions)
        )

    return matrix.matrix(
        [
            implementation("whole", ("1",)),
            implementation("operator", ("1",), **{"gang-scheduler": "whole 1"}),
            implementation("scheduler", ("2", "1"), operator="whole 1"),
        ],
        replace(REGISTRY, profiles=dict.fromkeys(profile.values(), "Text."), requirements=entries),
    )


def test_operators_and_gang_schedulers_have_a_table_each() -> None:
    operators, schedulers = scheduling().tables
    assert (operators.title, operators.profiles) == ("Operators", ("core", "gang"))
    assert (schedulers.title, schedulers.profiles) == ("Gang schedulers", ("scheduler", "gang"))
    assert [column.implementation.name for column in operators.newest] == ["whole", "operator"]
    assert [column.implementation.name for column in schedulers.newest] == ["whole", "scheduler"]
    assert not operators.older
    assert [column.version.version for column in schedulers.older] == ["1"]


def test_a_profile_of_another_role_is_not_an_unjudged_profile() -> None:
    table = scheduling()
    *_, scheduler, _ = table.columns
    assert {name: cell.word for name, cell in scheduler.cells.items()} == {
        "core": CellWord.OTHER_ROLE,
        "scheduler": CellWord.NOT_CONFORMANT,
        "gang": CellWord.CONFORMANT,
    }
    assert matrix.summary(table).splitlines()[-1] == "| **scheduler** 2 | gang | scheduler | – |"
    assert [column.implementation.name for column in table.bound_columns("core")] == ["whole", "operator"]


def test_a_verdict_on_a_profile_does_not_mention_another_role_that_passed() -> None:
    judged_run = run("passed", "passed", "passed", profiles={"core": "not-conformant"})
    assert cell(judged_run).word is CellWord.CONFORMANT


def test_other_versions_are_closed_at_first() -> None:
    text = matrix.markdown(scheduling())
    first, _, closed = text.partition('<details markdown="1"><summary>Other versions</summary>')
    assert "| profile | whole<br>1 | scheduler<br>2 |" in first and "| profile | scheduler<br>1 |" in closed


def test_each_outcome_has_its_own_symbol() -> None:
    assert MARKS.keys() == set(Outcome)
    assert len({mark.symbol for mark in MARKS.values()}) == len(Outcome)
    assert {word.mark for word in CellWord} & {mark.symbol for mark in MARKS.values()} == set("✓✗~–·")


def test_the_page_and_the_table_cannot_be_changed_by_a_name() -> None:
    implementation = replace(of(run("passed", environment={"kubernetes": HOSTILE}), note=HOSTILE), title=HOSTILE)
    result = matrix.matrix([replace(implementation, upgrades=(PublishedUpgrade(HOSTILE, HOSTILE, None),))], REGISTRY)
    assert "<img" not in matrix.page(result)
    table = matrix.markdown(result)
    assert "<img" not in re.sub(r"(`+) .*? \1", "", table)
    assert {line.replace("\\|", "").count("|") for line in table.splitlines() if line.startswith("| ")} <= {3, 5}


# -- the folder ------------------------------------------------------------------------------------------------------

DESCRIPTION = """apiVersion: conformance.grove.io/v1alpha1
kind: PublishedImplementation
name: mine
title: Mine
about: It is mine.
versions:
- version: '1'
  reports: [runs.yaml]
- version: '0'
  note: nobody has it any more
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.yaml").write_text(DESCRIPTION)
    (tmp_path / "runs.yaml.txt").write_text(recorded.render([run("passed", contract="maps v1")]))
    (tmp_path / "mine.yaml").write_text(DESCRIPTION.replace("runs.yaml", "runs.yaml.txt"))
    return tmp_path


def call(*arguments: object) -> int:
    return cli.run(lambda: cli.app(["report", *map(str, arguments)], standalone_mode=False))


def test_a_folder_has_descriptions_with_their_runs(folder: Path) -> None:
    (description,) = published.read(folder)
    assert [(version.version, len(version.runs), version.contract) for version in description.versions] == [
        ("1", 1, "maps v1"),
        ("0", 0, ""),
    ]


def test_submitted_reports_need_no_description(folder: Path) -> None:
    report = folder.parent / "report.yaml"
    content = document.document(sample_report())
    for name, version in (("mine", "0"), ("mine", "2"), ("other", "5")):
        content["verdict"]["implementation"] |= {"name": name, "version": version}
        content["digest"] = document.digest(content["verdict"])
        document.save(report, document.render(content))
        assert call("submit", report, "--to", folder) == Exit.CONFORMANT
    first, other = published.read(folder)
    assert [(entry.version, len(entry.runs), entry.note) for entry in first.versions] == [
        ("1", 1, ""),
        ("0", 1, "nobody has it any more"),
        ("2", 1, ""),
    ]
    assert (other.name, [entry.version for entry in other.versions]) == ("other", ["5"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("runs.yaml.txt", "gone.yaml", "mine.yaml:8: versions[0].reports[0]: gone.yaml does not exist"),
        ("version: '1'", "version: '3'", "versions[0].reports: has a run of version 1 — name reports of 3"),
        ("note:", "findings: [a.md]\n  note:", "versions[1].findings: a.md does not exist"),
        ("title: Mine", "titel: Mine", "titel: unknown field"),
        (
            "versions:",
            "upgrades:\n- {from: a, to: '1', report: runs.yaml.txt, digest: 'sha256:" + "1" * 64 + "'}\nversions:",
            "upgrades[0].report: names 0 of 1 runs",
        ),
    ],
)
def test_a_mistake_in_a_description_is_one_line(folder: Path, old: str, new: str, message: str) -> None:
    path = folder / "mine.yaml"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(UsageError) as error:
        published.read(folder)
    assert message in str(error.value)


def test_an_upgrade_names_one_of_the_recorded_runs(folder: Path) -> None:
    other = structs.replace(run("failed"), digest="sha256:" + "2" * 64)
    (folder / "runs.yaml.txt").write_text(recorded.render([run("passed"), other]))
    path = folder / "mine.yaml"
    upgrade = f"upgrades:\n- {{from: a, to: '1', report: runs.yaml.txt, digest: '{other.digest}'}}\n"
    path.write_text(path.read_text() + upgrade)
    (description,) = published.read(folder)
    assert description.upgrades[0].run == other


def test_a_folder_without_implementations_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("matrix", tmp_path, "--to", tmp_path / "m.html") == Exit.USAGE
    assert call("matrix", tmp_path / "no", "--to", tmp_path / "m.html") == Exit.USAGE
    assert [line.rpartition(": ")[2].partition(" —")[0] for line in capsys.readouterr().err.splitlines()] == [
        "has no implementations",
        "is not a folder",
    ]


def test_only_the_matrix_of_a_markdown_page_is_generated(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = folder / "README.md"
    assert call("matrix", folder, "--to", page) == Exit.CONFORMANT
    assert page.read_text().startswith("<!-- matrix -->\n\n**Operators**\n\n| profile | Mine<br>1 |\n")
    page.write_text("# Words\n\n<!-- matrix -->\nold\n<!-- end -->\n\nMore.\n")
    assert call("matrix", folder, "--to", page) == Exit.CONFORMANT
    text = page.read_text()
    assert text.startswith("# Words\n\n<!-- matrix -->\n\n**Operators**\n") and text.endswith("<!-- end -->\n\nMore.\n")
    assert "old" not in text

    page.write_text("# Words\n\n<!-- matrix summary -->\nold\n<!-- end -->\n")
    assert call("matrix", folder, "--to", page) == Exit.CONFORMANT
    text = page.read_text()
    assert "\n| **Mine** 1 | – | – | 20 not judged yet |\n" in text and "| profile |" not in text and "old" not in text

    page.write_text("# Words\n")
    assert call("matrix", folder, "--to", page) == Exit.USAGE
    assert "has no place for the matrix" in capsys.readouterr().err
    assert page.read_text() == "# Words\n"


# -- ours ------------------------------------------------------------------------------------------------------------


def test_the_published_tables_are_up_to_date() -> None:
    table = matrix.matrix(published.read(PUBLISHED), requirement.load())
    assert matrix.markdown(table) in (PUBLISHED / "README.md").read_text("utf-8"), "run: make docs"
    assert matrix.summary(table) in (data.PROJECT / "README.md").read_text("utf-8"), "run: make docs"


def test_the_page_needs_no_network_and_is_small() -> None:
    text = matrix.page(matrix.matrix(published.read(PUBLISHED), requirement.load()))
    assert len(text.encode()) < 1 << 20
    assert not re.search(r'(?:src|srcset|action)="|<link|url\(|@import', text)
