"""Tests of an operator whose name for a Workload API object is taken by an object of another client."""

from __future__ import annotations

from conformance.grove.expected import expected
from conformance.grove.fields import name, text, uid
from conformance.grove.kinds import WORKLOADS
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.testing import predicates
from conformance.testing.observed import all_of
from conformance.testing.scene import Exclusive, Recorded, Scene, SceneEnvironment, requirement
from conformance.tests.workload_api import objects_of_gangs as objects


class WorkloadOfSomebodyElse(Scene):
    """A gang without room. Its Workload is deleted while the operator is stopped. Before the operator is restarted,
    another client creates a Workload with the same name, and a node is added. Later the other client's Workload is
    deleted."""

    exclusive = Exclusive.ROLES

    def play(self, env: SceneEnvironment) -> None:
        workload = env.workload("components", setName="taken", prefills=1, decodes=1)
        expected_set = expected(workload)
        self.cliques = list(expected_set.cliques.values())
        [self.gang] = expected_set.base_gangs
        env.create(workload)
        tree, its_workload = objects.is_complete(expected_set, self.gang), objects.has_workload(self.gang)
        env.wait_for("tree in place", all_of(tree, its_workload))
        [workload_object] = objects.objects_of_gang(env.history.view(), self.gang).workloads
        self.workload_name = name(workload_object)
        env.roles.stop("operator")
        env.delete("workloads", self.workload_name)
        env.wait_for("Workload gone", self._workload_deleted)
        template = {"name": "other", "schedulingPolicy": {"basic": {}}}
        self.other = env.create(
            {
                "apiVersion": env.served(WORKLOADS),
                "kind": "Workload",
                "metadata": {"name": self.workload_name},
                "spec": {"podGroupTemplates": [template]},
            }
        )
        env.nodes("dgx-h100", 1)
        env.roles.restart("operator")
        env.settle("bound or told", self._bound_or_warned, 20)
        env.quiet(1, real=True)
        env.mark("at rest")
        env.delete("workloads", self.workload_name)
        env.wait_for("bound once the name is free", predicates.all_bound(self.cliques))

    def _workload_deleted(self, view: View) -> bool | Unmet:
        return self.workload_name not in view.names("workloads") or Unmet(f"{self.workload_name} exists")

    def _bound_or_warned(self, view: View) -> bool | Unmet:
        warnings = [event for event in view.list("events") if text(event, "type") == "Warning"]
        warned_objects = {
            text(event, "regarding", "name") or text(event, "involvedObject", "name") for event in warnings
        }
        warned = name(objects.podgang(view, self.gang)) in warned_objects - {""}
        return warned or predicates.all_bound(self.cliques)(view)


@requirement("WAPI-094", reaches=("bound or told", "bound once the name is free"))
def test_a_gang_with_a_taken_name_waits_whole(run: Recorded[WorkloadOfSomebodyElse]) -> None:
    """If the operator chooses another name, the gang is bound immediately. If the operator waits, it reports this in an
    event."""
    scene = run.scene
    view = run.at("at rest")
    bound = {clique.name: predicates.all_bound([clique])(view) is True for clique in scene.cliques}
    run.expect("what is bound of it: all or nothing", 1, len(set(bound.values())))
    run.expect("the Workload of somebody else", uid(scene.other), uid(view.get("workloads", scene.workload_name)))
