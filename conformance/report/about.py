"""The implementation, suite and cluster of a run, as labels and texts for JUnit, Allure and the page. Pure."""

from __future__ import annotations

from conformance.grove import lines as contract
from conformance.report.model import Report
from conformance.report.terminal import judged


def of(report: Report) -> dict[str, str]:
    """Return the known facts. Unknown ones are left out, for example the version of an existing cluster."""
    started, who = report.started, report.started.implementation
    known = {
        "verdict": str(report.verdict),
        "exit code": str(int(report.exit)),
        "implementation": f"{who.name} {who.version}",
        "judged": judged(who.roles),
        "supplied": ", ".join(f"{role} by {player}" for role, player in sorted(who.supplied.items())),
        "contract": f"Grove {who.release}, line {contract.load()[who.line].name}" if who.line else "",
        "kubernetes": started.environment.get("kubernetes", ""),
        "policies": started.environment.get("policies", ""),
        "profiles": ", ".join(profile.name for profile in report.profiles),
        "suite": started.suite_version,
        "run": started.run,
        "seed": str(started.seed),
    }
    return {label: text for label, text in known.items() if text}
