"""How the API server serves PodGangMaps. Nothing is stored."""

from __future__ import annotations

from conformance.grove.coherent import served
from conformance.grove.fields import at, items, text
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement


class AskedAboutMaps(Scene):
    """The CustomResourceDefinition of PodGangMaps."""

    def play(self, env: SceneEnvironment) -> None:
        [reply] = env.dry_run.all([env.dry_run.get("customresourcedefinitions", served.MAPS)])
        self.crd = reply.object
        env.mark("asked")


@requirement("MAP-064")
def test_maps_have_no_status(run: Recorded[AskedAboutMaps]) -> None:
    """Whoever reads one reads what is wanted. What has come of it is in the statuses of other objects."""
    run.given("asked")
    versions = items(run.scene.crd, "spec", "versions")
    run.expect("PodGangMaps are served", True, bool(versions))
    having = [
        text(each, "name")
        for each in versions
        if at(each, "subresources", "status") is not None
        or at(each, "schema", "openAPIV3Schema", "properties", "status") is not None
    ]
    run.expect("versions with a status", [], having)
