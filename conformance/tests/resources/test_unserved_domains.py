"""Tests of an operator with multi-node NVLink on a cluster that does not serve ComputeDomains."""

from __future__ import annotations

from conformance.grove.kinds import COMPUTE_DOMAINS
from conformance.testing.scene import Exclusive, Recorded, Scene, SceneEnvironment, requirement


class OperatorWithoutDomains(Scene):
    """There are no sets. The operator is stopped, and then started while the cluster has no CRD of ComputeDomains. Then
    it is restarted with the CRD. The garbage collector may be slow to discover the kind again, so this scene runs after
    all other scenes."""

    exclusive = Exclusive.ROLES
    plays_alone = True

    def play(self, env: SceneEnvironment) -> None:
        # The ComputeDomains of a set that an earlier scene has just deleted would remain while the operator is stopped.
        env.clear_kind(str(COMPUTE_DOMAINS))
        env.roles.stop("operator")
        with env.without_kind(str(COMPUTE_DOMAINS)):
            end = env.roles.try_start("operator")
        self.exit_code, self.end_message = (end.code, str(end)) if end is not None else (None, "it is ready")
        env.mark("operator started without the kind")
        env.roles.restart("operator")


@requirement("RES-120", reaches="operator started without the kind")
def test_an_operator_ends_where_the_kind_of_domains_is_missing(run: Recorded[OperatorWithoutDomains]) -> None:
    """An operator that waits for the kind is still running when the time limit in its descriptor is over."""
    ended = run.scene.exit_code is not None and run.scene.exit_code != 0
    run.expect("the operator exits with a code that is not 0", True, ended or run.scene.end_message)
