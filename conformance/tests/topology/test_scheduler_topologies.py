"""Tests of the status of a ClusterTopologyBinding, which reports whether the topology of a scheduler matches the levels
of the binding."""

from __future__ import annotations

from conformance.grove.expected_topology import Levels
from conformance.grove.fields import condition, items, text
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.testing.topology_bindings import BINDINGS, TOPOLOGIES, kai_topology, spec, topology_binding

KEYS = {"block": "example.com/block", "rack": "example.com/rack"}
KEYS_WITH_HOST = {**KEYS, "host": "kubernetes.io/hostname"}
SCHEDULER, DRIFT = "kai-scheduler", "SchedulerTopologyDrift"
IN_SYNC, DRIFTED = ("False", "InSync", True), ("True", "Drift", False)
Report = tuple[str, str, bool | None]
"""The status and reason of the condition, and `inSync` of the scheduler's only entry, or None if there is no such
entry."""


class BindingsOfASchedulersTopologies(Scene):
    """There are no sets. The operator manages the topology of one binding. Another binding names a topology that the
    test creates. That topology has the levels of the binding, then different levels because the binding has changed,
    then the same levels again. Finally the topology is deleted."""

    def play(self, env: SceneEnvironment) -> None:
        self.managed, self.bound = (f"{env.namespace}-{kind}" for kind in ("managed", "bound"))
        foreign_topology = f"{env.namespace}-theirs"
        created = list[tuple[str, str]]()
        try:
            env.create(topology_binding(self.managed, KEYS))
            created.append((BINDINGS, self.managed))
            env.settle("managed topology in sync", _reports(self.managed, IN_SYNC))
            env.create(kai_topology(foreign_topology, KEYS))
            created.append((TOPOLOGIES, foreign_topology))
            binding = topology_binding(self.bound, KEYS)
            binding["spec"]["schedulerTopologyBindings"] = [
                {"schedulerName": SCHEDULER, "topologyReference": foreign_topology}
            ]
            env.create(binding)
            created.append((BINDINGS, self.bound))
            env.settle("bound topology in sync", _reports(self.bound, IN_SYNC))
            self._change(env, KEYS_WITH_HOST)
            env.settle("other levels reported", _reports(self.bound, DRIFTED))
            self._change(env, KEYS)
            env.settle("equal levels reported", _reports(self.bound, IN_SYNC))
            env.delete(TOPOLOGIES, foreign_topology)
            env.settle("missing topology reported", _reports_missing_topology(self.bound))
        finally:
            for kind, name in created:
                env.delete(kind, name)

    def _change(self, env: SceneEnvironment, levels: Levels) -> None:
        env.patch(BINDINGS, self.bound, {"spec": {"levels": spec(levels)["levels"]}})


@requirement("TOPO-052")
def test_a_managed_topology_is_reported(run: Recorded[BindingsOfASchedulersTopologies]) -> None:
    """The entry names the scheduler. The name of the topology is up to the scheduler."""
    run.expect("report of the binding", IN_SYNC, _report(run.at("managed topology in sync"), run.scene.managed))


@requirement("TOPO-053")
def test_drift_of_a_topology_is_reported(run: Recorded[BindingsOfASchedulersTopologies]) -> None:
    """The binding changes its levels, because the levels of a topology may be immutable. The status and reason that
    report a missing topology are not specified."""
    steps = {
        "bound topology in sync": IN_SYNC,
        "other levels reported": DRIFTED,
        "equal levels reported": IN_SYNC,
    }
    for step, expected in steps.items():
        run.expect(f"report of the binding ({step})", expected, _report(run.at(step), run.scene.bound))
    status, _, in_sync = _report(run.at("missing topology reported"), run.scene.bound)
    run.expect("inSync without the topology", False, in_sync)
    run.expect("the condition is False without the topology", False, status == "False")


@predicate
def _reports(view: View, binding: str, report: Report) -> bool | Unmet:
    """A binding has this report."""
    current = _report(view, binding)
    return current == report or Unmet(f"the binding reports {current}")


@predicate
def _reports_missing_topology(view: View, binding: str) -> bool | Unmet:
    """A binding reports that its topology does not match its levels."""
    status, reason, in_sync = _report(view, binding)
    missing = status != "False" and in_sync is False
    return missing or Unmet(f"the binding reports {(status, reason, in_sync)} without its topology")


def _report(view: View, binding: str) -> Report:
    current = view.get(BINDINGS, binding)
    drift = condition(current, DRIFT)
    entries = [
        entry for entry in items(current, "status", "schedulerTopologyStatuses") if entry["schedulerName"] == SCHEDULER
    ]
    in_sync = bool(entries[0].get("inSync")) if len(entries) == 1 else None
    return text(drift, "status"), text(drift, "reason"), in_sync
