"""Tests that docs/contract.md agrees with the oracle and is complete, and that the reference follows it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from conformance import data
from conformance.grove import expected_domains, labels, sheet
from conformance.suite.registry import requirement

PLAN = data.PROJECT / "reference_impl" / "plan"


def reasons_of(path: Path) -> set[str]:
    """Return the texts in a module that are used as the reason of a condition."""
    reasons = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.keyword) and node.arg == "reason":
            reasons |= {constant.value for constant in ast.walk(node.value) if isinstance(constant, ast.Constant)}
        elif isinstance(node, ast.Tuple) and [type(element) for element in node.elts] == [ast.Constant, ast.Constant]:
            status, reason = (constant.value for constant in node.elts if isinstance(constant, ast.Constant))
            reasons |= {reason} if status in ("True", "False", "Unknown") else set()
    return {text for text in reasons if isinstance(text, str)}


def test_the_page_is_up_to_date() -> None:
    assert (data.PROJECT / "docs" / "contract.md").read_text() == sheet.page(), "run: make docs"


def test_every_key_finalizer_and_component_is_on_the_page() -> None:
    texts = {value for name, value in vars(labels).items() if name.isupper() and isinstance(value, str)}
    texts |= {value for name, value in vars(labels.ComponentLabel).items() if name.isupper()}
    suite_labels = {labels.BY_HAND, labels.OWN_PREFIX}
    page = sheet.page()
    assert {text for text in texts - suite_labels | {expected_domains.FINALIZER} if f"`{text}" not in page} == set()


def test_every_requirement_that_the_page_names_exists() -> None:
    named_ids = set(re.findall(r"\b[A-Z]+-\d{3}\b", sheet.page()))
    assert named_ids and named_ids <= set(requirement.load().requirements)


def test_the_reference_gives_the_reasons_of_the_page_and_no_others() -> None:
    modules = ("statuses", "topology", "gangs", "termination")
    used_reasons = set().union(*(reasons_of(PLAN / f"{module}.py") for module in modules))
    parts = {"Sufficient", "Insufficient", "True"}  # parts of a reason that is composed
    listed_reasons = {reason for _, _, _, reason, _ in sheet.CONDITIONS}
    assert {reason for reason in used_reasons - parts if reason not in listed_reasons} == set()
    texts = "".join((PLAN / f"{module}.py").read_text() for module in (*modules, "update_progress", "update_condition"))
    assert {
        reason for reason in listed_reasons if re.sub("^(Ins|S)ufficientAvailable", "Available", reason) not in texts
    } == set()
