"""Tests with the manifests of fixtures/admission/: one test per requirement, and one for the fields that rejections
name."""

from __future__ import annotations

import pytest

from conformance.grove.admission import manifests
from conformance.suite.registry.requirement import requirements
from conformance.suite.scenes.case import Case
from conformance.tests.admission import judging

_IDS = sorted({manifest.requirement for manifest in manifests.load()} - {judging.FIELD_REQUIREMENT})


@pytest.mark.parametrize("requirement", [pytest.param(id, marks=requirements(id), id=id) for id in _IDS])
def test_manifests(case: Case, requirement: str) -> None:
    """Each manifest is sent as a dry run. A rejected manifest is sent again without dry run and must be rejected
    again."""
    judging.judge_manifests(case, requirement)


@requirements("ADM-043")
def test_refusals_name_the_field(case: Case) -> None:
    """The rejection of a manifest with a single mistake has an error at the field of the mistake or below it."""
    judging.judge_fields_of_refusals(case)
