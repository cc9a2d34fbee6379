"""The manifests of fixtures/admission/, a test for each requirement."""

from __future__ import annotations

import pytest

from conformance.grove.admission import manifests
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.tests.admission import judging

_IDS = sorted({manifest.requirement for manifest in manifests.load()})


@pytest.mark.parametrize("requirement", [pytest.param(id, marks=requirements(id), id=id) for id in _IDS])
def test_manifests(case: Case, requirement: str) -> None:
    """Admission MUST give each manifest of the requirement its verdict, defaults and warnings."""
    judging.manifests_of(case, requirement)
