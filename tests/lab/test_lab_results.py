"""Tables and pictures of the laboratory."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from conformance.commands import lab
from conformance.errors import UsageError
from conformance.lab import curves, results
from conformance.lab.experiment import COURSES, LAYOUTS, WORKLOADS
from conformance.lab.measures import Measured, Point
from conformance.lab.playing import Outcome


def document(runs: int = 2) -> dict[str, Any]:
    found = results.document({"kubernetes": "1.0"})
    for trial in lab.planned((), (), (), runs):
        size = {name: size for name, (size, _) in trial.workload.sizes.items()}
        less = {name: count - 1 for name, count in size.items()}
        points = [Point(0.0, size, 2), Point(1.0, less, 1), Point(2.0, size, 2)]
        evicted = ["p[1]"] * trial.run if trial.course.name == "preemption" else None
        results.add(found, Outcome(trial, Measured(10.0 + trial.run, points), 100, 2, evicted, None))
    return found


def test_every_combination_is_planned() -> None:
    assert len(lab.planned((), (), (), 3)) == 3 * len(LAYOUTS) * len(WORKLOADS) * len(COURSES)
    assert {each.workload.name for each in lab.planned((), ["wide"], (), 1)} == {"wide"}


def test_unknown_names_are_rejected() -> None:
    with pytest.raises(UsageError, match="--layout: unknown value 'PerStp' — did you mean"):
        lab.planned(["PerStp"], (), (), 1)


def test_an_interrupted_experiment_is_continued(tmp_path: Path) -> None:
    files = lab.Files(tmp_path, document(1))
    files.keep(document(1))
    found = results.load(files.document)
    left = [each for each in lab.planned((), (), (), 2) if not results.has(found, each)]
    assert {each.run for each in left} == {2}
    assert len(left) == len(found["trials"])


def test_other_files_are_not_continued(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text('{"kind": "ScaleResult"}', encoding="utf-8")
    with pytest.raises(UsageError, match="is no result of this experiment"):
        results.load(path)


def test_rows_have_median_and_range() -> None:
    first = next(results.rows(document(), "preemption"))
    assert first[:3] == ("sample", "PerStep", "f 4/5, p 3/4, d 2/3")
    assert first[5:] == ("1 (1–2)", "–", "11.0 (11.0–12.0)", "100")
    assert results.spread([0.91, 0.92, 0.93]) == "0.9"


def test_page_has_a_table_for_each_course() -> None:
    page = results.markdown(document(), "grove-conformance lab coherent --runs 2", "picture.svg")
    assert page.count("\n| workload |") == len(COURSES)
    assert page.count("| sample | PerStep |") == len(COURSES)
    assert "picture.svg" in page


def test_picture_is_a_document_of_its_own() -> None:
    picture = curves.draw(document(1))
    root = ElementTree.fromstring(picture)
    assert root.tag.endswith("svg")
    assert "http" not in picture.replace("http://www.w3.org/2000/svg", "")
    assert sum(each.get("class") == "frame" for each in root.iter()) == len(LAYOUTS) * len(WORKLOADS) * len(COURSES)
