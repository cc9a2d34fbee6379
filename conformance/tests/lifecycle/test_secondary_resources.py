"""Tests that secondary resources and gangs that another client deletes are recreated, although no other event triggers
the operator."""

from __future__ import annotations

from conformance.grove import labels
from conformance.grove.fields import label
from conformance.testing import incarnations, predicates
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement

RESOURCES = ("services", "horizontalpodautoscalers", "serviceaccounts", "roles", "rolebindings", "podgangs")
"""The resources whose objects are deleted, in this order. Gangs come last, because the deletion of a gang may make an
operator reconcile everything."""


def _recreated(resource: str) -> str:
    """Return the step at which the deleted objects of a resource exist again."""
    return f"deleted {resource} recreated"


class SecondaryResourcesDeleted(Scene):
    """A set with an autoscaler, at rest. Its secondary resources and gangs are deleted, one resource after the
    other."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        workload = env.workload("frontend", setName="s", pods=1)
        scaling = {"minReplicas": 1, "maxReplicas": 2}
        workload["spec"]["template"]["cliques"][0]["spec"]["autoScalingConfig"] = scaling
        env.create(workload)
        env.wait_for("set available", predicates.is_available("s", 1))
        view = env.quiet(2, real=True)
        self.existing_resources = {
            resource: [name for name in view.names(resource) if label(view.get(resource, name), labels.PART_OF) == "s"]
            for resource in RESOURCES
        }
        before = {resource: incarnations.uids(view, resource) for resource in RESOURCES}
        for resource, names in self.existing_resources.items():
            for name in names:
                env.delete(resource, name)
            env.settle(_recreated(resource), incarnations.are_recreated(resource, names, before[resource]))
            env.quiet(1)


@requirement("LIFE-010", reaches=map(_recreated, RESOURCES))
def test_deleted_secondary_resources_are_recreated(run: Recorded[SecondaryResourcesDeleted]) -> None:
    """The objects are deleted one resource after the other, and nothing else happens meanwhile."""
    run.given("set available")
    run.expect(
        "resources that the set lacks",
        [],
        [resource for resource in RESOURCES if not run.scene.existing_resources[resource]],
    )
