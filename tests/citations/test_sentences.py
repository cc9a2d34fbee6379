"""Tests that the subject of each MUST and SHOULD is an actor, and is not negated."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from conformance.suite.registry import requirement
from tests.citations import lint, sentences

OPERATOR_REQUIREMENT = requirement.load().get("GANG-010")
"""A requirement for operators."""


def test_every_requirement_names_its_actor() -> None:
    """`make lint` makes the same check."""
    registry = requirement.load()
    assert [problem for entry in registry.requirements.values() for problem in sentences.find_problems(entry)] == []


def test_a_sentence_without_an_actor_is_reported_with_its_file() -> None:
    """The problem names the file and the id of the requirement."""
    entry = replace(OPERATOR_REQUIREMENT, text="Nothing MUST be deleted.")
    registry = requirement.Registry({}, {entry.id: entry}, {})
    (problem,) = lint.subject_problems(registry)
    assert str(problem).startswith(
        f"conformance/suite/registry/requirements/gang.yaml: {entry.id}: the subject is negated"
    )


@pytest.mark.parametrize(
    "text",
    [
        "Nothing MUST be reported.",
        "During an update, nothing MUST be rolled back.",
        "The operator MUST restore the map, and no Pod MUST be deleted because of it.",
        "None of its Pods SHOULD be bound.",
        "Nobody MUST change it.",
        "Neither the Role nor the RoleBinding SHOULD stay.",
        "The operator MUST wait; no other Pod MUST be deleted with it.",
    ],
)
def test_a_negated_subject_permits_what_it_seems_to_forbid(text: str) -> None:
    problems = list(sentences.find_problems(replace(OPERATOR_REQUIREMENT, text=text)))
    assert [problem.partition(":")[0] for problem in problems] == ["the subject is negated"]


@pytest.mark.parametrize(
    "text",
    [
        "A PodClique MUST report the error.",
        "When the operator restarts, its Pods MUST stay.",
        "The finalizer of the operator MUST be removed.",
        "It MUST be possible to scale to zero.",
        "The operator MUST create the map, and its entries MUST have an epoch.",
        "The operator waits. Then Pods SHOULD be created.",
        "The scheduler MUST bind the Pod.",
        "An operator that leads and the Pods MUST stay.",
    ],
)
def test_a_subject_that_is_not_an_actor_is_reported(text: str) -> None:
    """In a requirement for operators, the scheduler is not an actor."""
    problems = list(sentences.find_problems(replace(OPERATOR_REQUIREMENT, text=text)))
    assert [problem.partition(":")[0] for problem in problems] == ["the subject is no actor"]


@pytest.mark.parametrize(
    ("roles", "text"),
    [
        ("operator", "While a Pod that holds nothing waits, the operator MUST NOT start, and MUST report it."),
        ("operator", "An operator that takes over during an update MUST complete it."),
        ("operator", "Admission SHOULD reject it, or the operator SHOULD report it."),
        ("operator", "If it has no entries, the API server MUST serve it: the operator MUST then delete it."),
        ("gang-scheduler", "The scheduler SHOULD evict few, SHOULD choose the least, and SHOULD NOT go on."),
        ("operator gang-scheduler", "If there is room, the operator and the scheduler MUST run all Pods."),
    ],
)
def test_actors_of_the_judged_roles_are_valid_subjects(roles: str, text: str) -> None:
    assert list(sentences.find_problems(replace(OPERATOR_REQUIREMENT, roles=tuple(roles.split()), text=text))) == []
