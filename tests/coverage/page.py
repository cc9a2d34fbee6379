"""`make docs`: writes docs/requirements.md, docs/coverage.md, docs/contract.md, docs/upstream-tests.md and the tables
in docs/trust.md.

The program is part of the tests because only tests may import both the suite and the mutants.
"""

from __future__ import annotations

from conformance import data
from conformance.grove import sheet
from conformance.lab.gaps import spec_rows
from conformance.report import recorded
from conformance.suite.registry import catalogue, coverage, requirement
from mutants.registry import caught
from tests.coverage import trials, upstream

COVERAGE_PAGE = data.PROJECT / "docs" / "coverage.md"


def render_page() -> str:
    """Return the current content of docs/coverage.md."""
    return coverage.page(
        requirement.load(), coverage.scenarios(), coverage.rows(), caught(), recorded_runs(), spec_rows.rows()
    )


def recorded_runs() -> list[coverage.OperatorRun]:
    """Return the recorded runs of operators with known defects."""
    paths = sorted((data.folder("fixtures") / "findings").glob("*.runs.yaml"))
    return [
        coverage.OperatorRun(f"{run.label} (claims {', '.join(run.features)})", run.failed)
        for path in paths
        for run in recorded.read(path)
    ]


if __name__ == "__main__":
    COVERAGE_PAGE.write_text(render_page(), "utf-8")
    (data.PROJECT / "docs" / "requirements.md").write_text(catalogue.markdown(requirement.load()), "utf-8")
    trials.TRUST_PAGE.write_text(trials.render_page(), "utf-8")
    (data.PROJECT / "docs" / "contract.md").write_text(sheet.page(), "utf-8")
    upstream.PAGE.write_text(upstream.render_page(upstream.read(), requirement.load()), "utf-8")
