"""Tests that a failed check is described by the same line in annotations and in comparisons."""

from __future__ import annotations

from conformance.report import check_annotations, comparison, document
from tests.report.test_cases import real

WAIT = "not seen within 33 s: surplus replicas gone\nnearest: still there: services/s-1\nlast state:\n  pods/s-0: ready"
BROKEN = "INV-001 broken: a pod keeps its gate — pod s-0 was ungated\n  #40 +8.859s ADDED pods/s-0 (version 329)"


def lines(description: str, expected: object, actual: object) -> list[str]:
    """Return how a CI annotation and a comparison of reports describe a failed check, one line each."""
    content = document.document(real())
    [entry] = content["verdict"]["requirements"]
    entry["failures"][0] |= {"what": description, "expected": expected, "seen": actual}
    [annotation] = check_annotations.commands(content)
    side = comparison.compared_report(content, "run")
    return [annotation.partition(" t: ")[2], side.requirements["AA-001"].reason]


def test_a_timeout_is_described_by_its_nearest_miss() -> None:
    sentence = "surplus replicas gone: still there: services/s-1"
    assert lines("surplus replicas gone", "surplus replicas gone", WAIT) == [sentence, sentence]


def test_the_text_of_an_invariant_is_not_said_twice() -> None:
    sentence = " ".join(BROKEN.split())
    assert lines("a pod keeps its gate", "holds at every moment", BROKEN) == [sentence, sentence]


def test_other_values_are_compared() -> None:
    sentence = 'pods: expected ["a"], seen ["b"]'
    assert lines("pods", ["a"], ["b"]) == [sentence, sentence]
