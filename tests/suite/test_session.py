"""Parts of the real environment that need no cluster."""

from __future__ import annotations

from conformance.suite.environment import folder_name, randomness, short_name

LONG = "gang/test_gangs.py::test_a_gang_that_does_not_fit_binds_nothing_and_binds_whole_once_nodes_appear"


def test_names_are_short_unique_labels() -> None:
    name = short_name(LONG, "r1")
    assert len(name) <= 30 and name == name.lower() and name.replace("-", "").isalnum()
    assert name != short_name(LONG, "r2") and name != short_name(LONG + "[1]", "r1")


def test_folders_of_evidence_have_the_same_name_in_every_run() -> None:
    assert folder_name("core/test_a.py::test_b[x/../y]") == "core-test-a-test-b-x-y"
    assert len(folder_name(LONG * 2)) <= 80 and folder_name(LONG * 2) != folder_name(LONG * 3)


def test_randomness_depends_on_test_and_seed_only() -> None:
    assert randomness("t", 1).random() == randomness("t", 1).random()
    assert randomness("t", 1).random() != randomness("u", 1).random() != randomness("u", 2).random()
