"""Tests of `report.html`: its content, its maximum size, and that it loads nothing from elsewhere."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from conformance.evidence.bundle import PICTURE
from conformance.report import facts, model, page, tally
from conformance.report.model import Report
from conformance.suite.outcomes import ledger
from conformance.suite.registry import requirement
from conformance.suite.registry.requirement import Level, Registry
from tests.report.test_cases import INTERRUPTED, OUTCOME_KINDS, judged, real
from tests.report.test_model import DONE, TODAY, begin, ended, entry, started

HOSTILE = "</pre></script><img src=x onerror=alert(1)>\"'&lt; {{ 7 * 191 }}"


def attacked() -> Report:
    """Return the report of a run in which every text of the implementation is hostile."""
    implementation = ledger.Implementation(
        name=HOSTILE,
        version=HOSTILE,
        roles=("operator",),
        features=(),
        digest="d",
        discovered={HOSTILE: HOSTILE},
        supplied={"gang-scheduler": HOSTILE},
        expected_failures=(ledger.ExpectedFailure("AA-002", HOSTILE),),
    )
    run = msgspec.structs.replace(
        begin({HOSTILE: ("AA-001",), "t": ("AA-002",), "u": ("AA-003",)}),
        implementation=implementation,
        environment={HOSTILE: HOSTILE},
        reproduce=HOSTILE,
    )
    values = {"expected": {HOSTILE: HOSTILE}, "seen": [HOSTILE]}
    wrong = ledger.Check(wall=3.0, test=HOSTILE, id="AA-001", what=HOSTILE, outcome="failed", **values)
    also = ledger.Check(wall=3.0, test="t", id="AA-002", what=HOSTILE, outcome="failed", seen=HOSTILE)
    events = [
        *(started(HOSTILE, "AA-001"), wrong, msgspec.structs.replace(ended(HOSTILE, "failed"), bundle=HOSTILE)),
        *(started("t", "AA-002"), also, ended("t", "failed")),
        *(started("u", "AA-003"), ended("u", "blocked", HOSTILE, "implementation")),
        ledger.HarnessFault(wall=5.0, worker="gw0", what=HOSTILE),
        ledger.ScenePlayed(wall=5.0, scene=HOSTILE, worker="w", seconds=1, steps={}, markers={HOSTILE: {HOSTILE: 1.0}}),
        DONE,
    ]
    registry = Registry({"core": "The core."}, {f"AA-00{n}": entry(f"AA-00{n}") for n in (1, 2, 3)}, {})
    return model.judge(registry, [run, *events], TODAY)


def test_no_text_of_an_implementation_becomes_html(tmp_path: Path) -> None:
    text = page.render(attacked(), tmp_path)
    assert "&lt;img src=x onerror=alert(1)&gt;" in text and "1337" not in text
    assert text.count("<img") == text.count("<script>") - 2 == 0
    assert not re.search(r'href="(?:javascript:|[^"#]*<)', text)


def test_a_page_links_only_files_of_its_run(tmp_path: Path) -> None:
    (tmp_path / "bundles" / "t").mkdir(parents=True)
    (tmp_path / "bundles" / "t" / "timeline.svg").write_text("<svg/>")
    text = page.render(real(), tmp_path)
    links = set(re.findall(r'(?:src|href)="([^"#][^"]*)"', text))
    assert links == {"bundles/t/README.md", "bundles/t/timeline.svg"}
    assert not re.search(r"@import|url\(", text)


def test_a_picture_that_is_not_there_is_not_shown(tmp_path: Path) -> None:
    assert "<img" not in page.render(real(), tmp_path)


def words(text: str) -> str:
    """Return the text of a page without its tags."""
    body = text[text.index("<main") : text.index("</main>")]
    return " ".join(re.sub(r"<[^>]*>", " ", body).split())


def test_the_first_words_are_the_verdict_and_its_subject(tmp_path: Path) -> None:
    text = words(page.render(real(), tmp_path))
    assert text.startswith("Grove conformance ✗ mine 1 is NOT conformant ✗ 1 failed implementation mine 1")
    assert "kubernetes 1.36.3" in text and "basis 1 by decision" in text
    assert text.index("grove-conformance run --seed 1 --test t") < text.index("Profiles")
    assert "since 1.250 s of the history, pods/a-0 (revision 12)" in text
    assert "deploy ready 2.5" in text


def test_the_worst_is_first() -> None:
    every = [(outcome, Level.MUST) for outcome in reversed(OUTCOME_KINDS)]
    text = page.render(judged(*every), Path("none"))
    classes = re.findall(r'<h3 class="([a-z-]+) ', text)
    assert classes == [str(outcome) for outcome in tally.ORDER if str(outcome) in classes] and classes[0] == "failed"
    assert len(re.findall(r'<details class="row', text)) == len(OUTCOME_KINDS)


def test_names_of_fields_in_sentences_are_code() -> None:
    text = page.render(real(text="The operator MUST set `minAvailable` <once>.", violation=""), Path("none"))
    assert "MUST set <code>minAvailable</code> &lt;once&gt;." in text
    assert "a single ` mark" in page.render(real(text="a single ` mark", violation=""), Path("none"))


def test_a_failure_quotes_the_document_that_contradicts_it() -> None:
    text = words(page.render(real(contradicts=requirement.load().get("TMPL-016").contradicts), Path("none")))
    assert (
        "Says otherwise: Pull request 566: stable hashes, review comment on labels and annotations: “I am not" in text
    )


def test_requirements_of_seed_documents_are_counted_next_to_the_verdict() -> None:
    outcomes = [("passed", Level.MUST), ("failed", Level.MUST)]
    text = words(page.render(judged(*outcomes, seed="GREP-1"), Path("none")))
    assert "mine 1 is NOT conformant; and 1 of 1 that the seed documents ask for" in text
    text = words(page.render(judged(*reversed(outcomes), seed="GREP-1"), Path("none")))
    assert "mine 1 is conformant; and 0 of 1 that the seed documents ask for" in text
    assert "MUST of a seed document: does not decide the verdict." in text


def test_every_outcome_has_its_place() -> None:
    assert set(tally.ORDER) == {*model.Outcome, tally.UNDECIDED}


@pytest.mark.parametrize(
    ("report", "mark"),
    [
        (judged(("passed", Level.MUST)), "✓"),
        (judged(("passed", Level.MUST), ("expected", Level.MUST)), "✓"),
        (judged(("passed", Level.MUST), ("failed", Level.SHOULD)), "✓"),
        (judged(("passed", Level.MUST), ("passed", Level.MUST), ids=("AA-001",)), "✓"),
        (judged(("failed", Level.MUST)), "✗"),
        (judged(("blocked", Level.MUST)), "✗"),
        (judged(("passed", Level.MUST), ("stale", Level.MUST)), "✗"),
        (judged(("passed", Level.MUST), ("broken", Level.MUST)), "?"),
        (judged(("passed", Level.MUST), end=(INTERRUPTED,)), "?"),
        (judged(("unclaimed", Level.MUST)), "?"),
    ],
)
def test_the_mark_of_the_verdict(report: Report, mark: str) -> None:
    assert words(page.render(report, Path("none"))).startswith(f"Grove conformance {mark} mine 1 ")


def test_a_run_in_which_everything_failed_with_huge_values_fits(tmp_path: Path) -> None:
    ids = [f"AA-{number:03}" for number in range(1, 600)]
    huge = {f"pod-{number}": "x" * 200 for number in range(200)}
    events: list[ledger.AnyEvent] = []
    for id in ids:
        wrong = ledger.Check(wall=3.0, test=id, id=id, what="pods", outcome="failed", expected=huge, seen={"none": id})
        events += [started(id, id), wrong, ended(id, "failed")]
    registry = Registry({"core": "The core."}, {id: entry(id) for id in ids}, {})
    report = model.judge(registry, [begin({id: (id,) for id in ids}), *events, DONE], TODAY)
    text = page.render(report, tmp_path)
    assert len(text.encode()) <= page.MAX_BYTES
    assert text.count('<details class="row') == len(ids) and "more lines in report.yaml" in text


@pytest.mark.parametrize("folder", ["", "/home/me/.venv/bin/", "'/home/my project/.venv/bin/"])
def test_a_command_names_no_folder_of_the_machine(folder: str, tmp_path: Path) -> None:
    program = f"{folder}grove-conformance{folder[:1].strip('/')}"
    report = real()
    run_started = msgspec.structs.replace(
        report.started, reproduce=f"{program} run --implementation ./bin/grove-conformance"
    )
    text = page.render(replace(report, started=run_started), tmp_path)
    commands = set(re.findall(r"<code>([^<]* run [^<]*)</code>", text))
    assert commands == {"grove-conformance run --implementation ./bin/grove-conformance --test t"}


def test_a_cause_links_the_evidence_of_its_failure(tmp_path: Path) -> None:
    folder = tmp_path / "bundles" / "t"
    folder.mkdir(parents=True)
    (folder / PICTURE).write_text("<svg/>")
    (cause,) = re.findall(r'<li value="1".*?</li>', page.render(real(), tmp_path), re.S)
    assert f'href="bundles/t/{PICTURE}"' in cause and 'href="bundles/t/README.md"' in cause


def test_a_long_run_took_minutes(tmp_path: Path) -> None:
    assert [facts.duration(seconds) for seconds in (8.4, 1010, 7500)] == ["8 s", "17 min", "2 h 5 min"]
