"""Tests of the tables and pictures of the laboratory."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from conformance.commands import lab
from conformance.errors import UsageError
from conformance.lab import curves, results
from conformance.lab.experiment import COURSES, LAYOUTS, QUIET, WORKLOADS
from conformance.lab.measures import AvailabilityPoint, UpdateMeasurement
from conformance.lab.playing import TrialOutcome

SVG = "{http://www.w3.org/2000/svg}"


def document(runs: int = 2) -> dict[str, Any]:
    result = results.document({"kubernetes": "1.0"})
    for trial in lab.plan_trials((), (), (), runs):
        size = {name: size for name, (size, _) in trial.workload.sizes.items()}
        reduced_size = {name: count - 1 for name, count in size.items()}
        points = [
            AvailabilityPoint(0.0, size, 2),
            AvailabilityPoint(1.0, reduced_size, 1),
            AvailabilityPoint(2.0, size, 2),
        ]
        evicted_members = ["p[1]"] * trial.run if trial.course.name == "preemption" else None
        results.add(
            result, TrialOutcome(trial, UpdateMeasurement(10.0 + trial.run, points), 100, 2, evicted_members, None)
        )
    return result


def test_every_combination_is_planned() -> None:
    assert len(lab.plan_trials((), (), (), 3)) == 3 * len(LAYOUTS) * len(WORKLOADS) * len(COURSES)
    assert {trial.workload.name for trial in lab.plan_trials((), ["wide"], (), 1)} == {"wide"}


def test_unknown_names_are_rejected() -> None:
    with pytest.raises(UsageError, match="--layout: unknown value 'PerStp' — did you mean"):
        lab.plan_trials(["PerStp"], (), (), 1)


def test_an_interrupted_experiment_is_continued(tmp_path: Path) -> None:
    files = lab.Files(tmp_path, document(1))
    files.save(document(1))
    stored_document = results.load(files.document)
    remaining_trials = [trial for trial in lab.plan_trials((), (), (), 2) if not results.has(stored_document, trial)]
    assert {trial.run for trial in remaining_trials} == {2}
    assert len(remaining_trials) == len(stored_document["trials"])


def test_other_files_are_not_continued(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text('{"kind": "ScaleResult"}', encoding="utf-8")
    with pytest.raises(UsageError, match="is no result of this experiment"):
        results.load(path)


def test_rows_contain_median_and_range() -> None:
    first_row = next(results.rows(document(), "preemption"))
    assert first_row[:3] == ("sample", "PerStep", "f 4/5, p 3/4, d 2/3")
    assert first_row[5:] == ("1 (1–2)", "–", "11.0 (11.0–12.0)", "100")
    assert results.spread([0.91, 0.92, 0.93]) == "0.9"


def test_the_page_has_a_table_for_each_course() -> None:
    page = results.markdown(document(), "grove-conformance lab coherent --runs 2", "picture.svg")
    assert page.count("\n| workload |") == len(COURSES)
    assert page.count("| sample | PerStep |") == len(COURSES)
    assert "picture.svg" in page


def undisturbed_trials(workload: str, *layouts: str) -> list[dict[str, Any]]:
    """Return the undisturbed trial of a workload for each layout."""
    trials = {
        trial["layout"]: trial
        for trial in document(1)["trials"]
        if trial["course"] == QUIET and trial["workload"] == workload
    }
    return [trials[layout] for layout in layouts or [layout.name for layout in LAYOUTS]]


def text_elements(picture: str) -> list[str]:
    return ["".join(element.itertext()) for element in ElementTree.fromstring(picture).iter(f"{SVG}text")]


def outlines(picture: str, style: str) -> list[tuple[list[float], list[float]]]:
    """Return the x and y coordinates of the corners of each shape with this style, except for the shape in the
    legend."""
    shapes = [shape for shape in ElementTree.fromstring(picture).iter(f"{SVG}path") if shape.get("style") == style]
    corners = [re.findall(r"[ML] ([\d.]+) ([\d.]+)", shape.get("d", "")) for shape in shapes[:-1]]
    return [([float(x) for x, _ in shape], [float(y) for _, y in shape]) for shape in corners]


def test_the_picture_has_a_panel_for_each_update_with_its_numbers() -> None:
    texts = text_elements(curves.draw(document(1)))
    assert sum(text.startswith("11.0 s; lowest f ") for text in texts) == len(LAYOUTS) * len(WORKLOADS) * len(COURSES)
    assert {layout.name for layout in LAYOUTS} < set(texts)
    assert {f"{course.name}, {workload.name}" for course in COURSES for workload in WORKLOADS} < set(texts)
    assert "11.0 s; lowest f 4, p 3, d 2; whole units ≥ 1; 1 evicted" in texts


def test_components_differ_in_color_and_dashes() -> None:
    picture = curves.draw({"trials": undisturbed_trials("sample")})
    line = r'style="fill: none; (?:stroke-dasharray: ([\d.,]+); [^"]*)?stroke: var\((--[a-z]+)\); stroke-width: 1.5;'
    dashes, colors = zip(*set(re.findall(line, picture)), strict=True)
    assert len(set(dashes)) == len(set(colors)) == 3


def test_updates_of_a_row_share_an_axis_that_ends_with_the_longest() -> None:
    trials = undisturbed_trials("sample")
    for trial, seconds in zip(trials, (4.0, 8.0, 16.0), strict=True):
        trial["seconds"] = seconds
    picture = curves.draw({"trials": trials})
    axis = next(ElementTree.fromstring(picture).iter(f"{SVG}clipPath"))[0].get("width")
    widths = [max(x) - min(x) for x, _ in outlines(picture, "fill: var(--red); opacity: 0.3")]
    assert widths == pytest.approx([float(axis or 0) / share for share in (4, 2, 1)])


def test_the_band_shows_the_number_of_whole_units() -> None:
    [trial] = undisturbed_trials("wide", "PerStep")
    trial["curve"].append([5.0, *trial["curve"][-1][1:]])  # a point at which no unit changes
    picture = curves.draw({"trials": [trial]})
    [(x, y)] = outlines(picture, "fill: var(--blue)")
    assert sorted({(edge - min(x)) / (max(x) - min(x)) for edge in x}) == pytest.approx([0, 1 / 11, 2 / 11, 1])
    assert sorted({(max(y) - top) / (max(y) - min(y)) for top in y}) == pytest.approx([0, 0.5, 1])
    [(_, whole_outline)] = outlines(picture, "fill: var(--red); opacity: 0.3")
    assert (min(y), max(y)) == (min(whole_outline), max(whole_outline))


def test_an_update_that_was_not_run_has_an_empty_panel() -> None:
    texts = text_elements(
        curves.draw({"trials": [*undisturbed_trials("sample"), *undisturbed_trials("wide", "SingleAnchor")]})
    )
    assert texts.count("not played") == 2
    assert "quiet, wide" in texts and texts.count("standalone clique f") == 1
