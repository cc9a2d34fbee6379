"""Facts about the implementation, suite and cluster of a run, as labels and texts for JUnit, Allure and the page.
Pure."""

from __future__ import annotations

from conformance.grove import lines as contract
from conformance.report.model import Report
from conformance.report.terminal import judged_roles


def run_facts(report: Report) -> dict[str, str]:
    """Return the known facts by label. Unknown facts are left out, for example the version of an existing cluster."""
    started, implementation = report.started, report.started.implementation
    line = contract.load()[implementation.line].name if implementation.line else ""
    facts = {
        "verdict": str(report.verdict),
        "exit code": str(int(report.exit)),
        "implementation": f"{implementation.name} {implementation.version}",
        "judged": judged_roles(implementation.roles),
        "supplied": ", ".join(f"{role} by {player}" for role, player in sorted(implementation.supplied.items())),
        "contract": f"Grove {implementation.release}, line {line}" if line else "",
        "kubernetes": started.environment.get("kubernetes", ""),
        "policies": started.environment.get("policies", ""),
        "profiles": ", ".join(profile.name for profile in report.profiles),
        "suite": started.suite_version,
        "run": started.run,
        "seed": str(started.seed),
    }
    return {label: text for label, text in facts.items() if text}
