"""Tests of the kind PodGangMap as the API server serves it. Nothing is stored."""

from __future__ import annotations

from conformance.grove.coherent import served
from conformance.grove.fields import at, items, text
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement


class AskedAboutMaps(Scene):
    """The CustomResourceDefinition of PodGangMaps is read."""

    def play(self, env: SceneEnvironment) -> None:
        [reply] = env.dry_run.all([env.dry_run.get("customresourcedefinitions", served.MAPS)])
        self.crd = reply.object
        env.mark("asked")


@requirement("MAP-064")
def test_maps_have_no_status(run: Recorded[AskedAboutMaps]) -> None:
    """A map is desired state. The observed state is in the statuses of other objects."""
    run.given("asked")
    versions = items(run.scene.crd, "spec", "versions")
    run.expect("PodGangMaps are served", True, bool(versions))
    with_status = [
        text(version, "name")
        for version in versions
        if at(version, "subresources", "status") is not None
        or at(version, "schema", "openAPIV3Schema", "properties", "status") is not None
    ]
    run.expect("versions with a status", [], with_status)
