"""Tests of the registry of requirements: its files, its error messages, and its page."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from conformance import data, invariants
from conformance import tests as conformance_tests
from conformance.errors import UsageError
from conformance.grove import lines
from conformance.run import launch
from conformance.suite.registry import catalogue, requirement
from conformance.suite.settings import RunSettings

TESTS = Path(conformance_tests.__file__).parent

HEAD = """\
apiVersion: conformance.grove.io/v1alpha1
kind: Requirements
profile: core
text: The core.
requirements:
"""
ENTRY = """\
- {id: AA-001, level: MUST, text: It MUST do the right thing., source: [X-1], since: v0, roles: [operator], basis: code}
"""


def broken(tmp_path: Path, text: str) -> str:
    (tmp_path / "core.yaml").write_text(text)
    with pytest.raises(UsageError) as caught:
        requirement.load(tmp_path)
    assert "\n" not in str(caught.value)
    return str(caught.value).replace(f"{tmp_path}/", "")


def test_every_requirement_has_a_test_and_every_test_its_requirements(tmp_path: Path) -> None:
    plan = launch.collect(RunSettings(run="r", directory=str(tmp_path), implementation="reference"))
    registry = requirement.load()
    assert requirement.problems(registry, plan.collected) == []
    assert requirement.unjudged(registry, plan.collected) == []


def test_every_invariant_is_asked_for_by_a_test(tmp_path: Path) -> None:
    """A test that declares an invariant fails if the history leaves the invariant unknown. Therefore each invariant
    needs such a test: otherwise an invariant that is unknown in every history could pass."""
    plan = launch.collect(RunSettings(run="r", directory=str(tmp_path), implementation="reference"))
    declared = {id for ids in plan.collected.values() for id in ids}
    rules = {rule.id for rule in invariants.rules()}
    requirements = requirement.load().requirements
    assert {id for id in requirements if id.startswith("INV-")} <= rules <= set(requirements)
    assert rules - declared == set()


def test_a_test_of_a_rule_asks_for_its_result() -> None:
    """If a test of a scene declares a rule, only this test reports violations of the rule in the scene. They would be
    lost if the test judged only something else."""
    rules = {rule.id for rule in invariants.rules()}
    tests = [
        node
        for path in TESTS.rglob("test_*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and _recorded(node) and _literals(node) & rules
    ]
    result_calls = ("run.invariant()", "run.judge_violation()")
    assert [node.name for node in tests if not any(call in ast.unparse(node) for call in result_calls)] == []
    assert len(tests) > 10


def _recorded(test: ast.FunctionDef) -> bool:
    return "run" in {argument.arg for argument in test.args.args}


def _literals(test: ast.FunctionDef) -> set[str]:
    """Return the strings in the decorators of a test, for example requirement ids."""
    nodes = (node for decorator in test.decorator_list for node in ast.walk(decorator))
    return {str(node.value) for node in nodes if isinstance(node, ast.Constant)}


def wrong_words(entry: requirement.Requirement) -> list[str]:
    """Return every RFC 2119 word of a sentence that is not the word of its level, and the word of its level if it is
    missing. Sentences with the level COMPAT have no such word."""
    used = set(re.findall(r"\b(?:MUST|SHOULD|MAY|SHALL|REQUIRED|RECOMMENDED|OPTIONAL)\b", entry.text))
    return sorted(used ^ ({entry.level} - {requirement.Level.COMPAT}))


@pytest.mark.parametrize("entry", requirement.load().requirements.values(), ids=lambda entry: entry.id)
def test_a_sentence_has_the_rfc_2119_word_of_its_level_and_no_other(entry: requirement.Requirement) -> None:
    assert wrong_words(entry) == []


def test_each_requirement_names_its_violations() -> None:
    """The violation is the title of failures. It is unique, and it is not a norm."""
    entries = requirement.load().requirements.values()
    assert [entry.id for entry in entries if not entry.violation or "MUST" in entry.violation] == []
    titles = Counter(entry.violation for entry in entries)
    assert [title for title, number in titles.items() if number > 1] == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It MUST do this and MUST NOT do that.", []),
        ("It does the right thing.", ["MUST"]),
        ("It SHOULD do the right thing.", ["MUST", "SHOULD"]),
        ("It MUST do this and MAY do that.", ["MAY"]),
    ],
)
def test_a_sentence_with_a_word_of_another_level_is_found(text: str, words: list[str]) -> None:
    entry = next(
        candidate for candidate in requirement.load().requirements.values() if candidate.level is requirement.Level.MUST
    )
    assert wrong_words(replace(entry, text=text)) == words


def test_the_page_of_requirements_is_up_to_date() -> None:
    page = data.PROJECT / "docs" / "requirements.md"
    assert page.read_text("utf-8") == catalogue.markdown(requirement.load()), "run: grove-conformance docs"


def test_an_unknown_field_names_file_line_and_field(tmp_path: Path) -> None:
    text = HEAD + ENTRY.replace("level: MUST", "leval: MUST")
    assert broken(tmp_path, text).startswith("core.yaml:6: requirements[0]")


@pytest.mark.parametrize("field", ["quotes", "contradicts"])
def test_a_document_that_is_not_listed_names_file_line_and_field(tmp_path: Path, field: str) -> None:
    text = HEAD + ENTRY.replace("basis: code", f"basis: code, {field}: [[pull-567, Title, Some words.]]")
    message = broken(tmp_path, text)
    assert message.startswith(f"core.yaml:6: requirements[0].{field}[0]: 'pull-567' is not a listed document")
    assert 'did you mean "pull-566"?' in message


def test_the_page_names_the_contradictions_of_a_requirement(tmp_path: Path) -> None:
    (tmp_path / "core.yaml").write_text(
        HEAD + ENTRY.replace("basis: code", "basis: code, contradicts: [[pull-566, Title, Some words.]]")
    )
    assert "| code; contradicted by [Pull request 566" in catalogue.markdown(requirement.load(tmp_path))


def test_an_id_is_unique(tmp_path: Path) -> None:
    message = "core.yaml:7: requirements[1].id: AA-001 is already used in core.yaml:6: requirements[0].id"
    assert message in broken(tmp_path, HEAD + ENTRY + ENTRY)


def test_an_id_is_in_only_one_profile(tmp_path: Path) -> None:
    (tmp_path / "alone.yaml").write_text(HEAD.replace("profile: core", "profile: alone") + ENTRY)
    assert "core.yaml:6: requirements[0].id: AA-001 is already used in alone.yaml:6" in broken(tmp_path, HEAD + ENTRY)


def test_a_retired_id_is_never_given_again(tmp_path: Path) -> None:
    retired = "retired:\n- {id: AA-001, text: Old., reason: It was wrong.}\n"
    assert "retired[0].id: AA-001 is already used in core.yaml:6" in broken(tmp_path, HEAD + ENTRY + retired)


def test_a_profile_has_one_file(tmp_path: Path) -> None:
    (tmp_path / "also.yaml").write_text(HEAD + ENTRY)
    assert "core.yaml:3: profile: profile core has two files" in broken(tmp_path, HEAD + ENTRY)


def test_an_empty_folder_is_no_registry(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no requirements"):
        requirement.load(tmp_path)


def test_a_retired_requirement_has_a_reason(tmp_path: Path) -> None:
    (tmp_path / "core.yaml").write_text(HEAD + ENTRY + "retired:\n- {id: AA-002, text: Old., reason: It was wrong.}\n")
    registry = requirement.load(tmp_path)
    with pytest.raises(UsageError, match="AA-002 is retired: It was wrong"):
        registry.get("AA-002")
    assert "| AA-002 | Old. | It was wrong. |" in catalogue.markdown(registry)
    assert requirement.problems(registry, {"t": ("AA-002",)}) == [
        "t: declares AA-002, which is retired (It was wrong.)"
    ]


def test_the_decorator_needs_different_ids() -> None:
    with pytest.raises(TypeError):
        requirement.requirements()
    with pytest.raises(TypeError):
        requirement.requirements("AA-001", "AA-001")


def test_successors_of_ended_requirements_start_with_the_next_release_line() -> None:
    registry = requirement.load()
    first = lines.load()[lines.MAPS].first
    ended = [entry for entry in registry.requirements.values() if entry.until]
    assert ended, "nothing was judged"
    for entry in ended:
        assert entry.until == lines.load()[lines.NAMES].newest
        assert all(registry.requirements[id].since == first for id in entry.successors), entry.id


def test_a_requirement_that_ends_needs_successors(tmp_path: Path) -> None:
    ended = ENTRY.replace("since: v0", "since: v0, until: v0.1.0")
    assert "successors" in broken(tmp_path, HEAD + ended)
