"""Hashes of other operators, written while no operator runs: what the judged operator makes of them."""

from __future__ import annotations

from conformance.grove.template_hashes import LEGACY
from conformance.testing import incarnations, predicates
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.tests.upgrade import takeover
from conformance.tests.upgrade.takeover import FRONT, SOLO, pod_spec, rolled_out

OF_LIBRARY = {f"l{number}": way for number, way in enumerate(LEGACY)}
"""Sets by name, with the scheme of the operator whose hashes they get."""
PODS = {**dict.fromkeys(OF_LIBRARY, 6), "changed": 2, "turned": 2, "unknown": 2}
"""The number of pods of each set."""


class HashesOfOtherOperators(Scene):
    """Room for all pods, and sets whose stored hashes are overwritten while no operator runs: with those of a Go
    operator for each version of its libraries; with those of another image (`changed`) or of another order of
    containers (`turned`) in one clique; with hashes of nothing (`unknown`)."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 4)
        for name in OF_LIBRARY:
            env.create(takeover.workload(env, name))
        for name in ("changed", "turned", "unknown"):
            env.create(takeover.small(env, name))
        for name, count in PODS.items():
            env.wait_for(f"{name} has its pods", takeover.has_all_hashes(name, count))
            env.wait_for(f"{name} available", predicates.available(name, 1))
        view = env.quiet(1)
        own = {name: takeover.everything(view, name) for name in PODS}
        uids = incarnations.uids(view, "pods")
        env.mark("hashes of the judged operator")

        env.roles.stop("operator")
        for name, way in OF_LIBRARY.items():
            takeover.write_hashes(env, name, way)
        takeover.write_hashes(env, "changed", LEGACY[0], z_solo=pod_spec("engine:0"))
        containers = pod_spec()["containers"][::-1]
        takeover.write_hashes(env, "turned", LEGACY[0], z_solo={"containers": containers})
        takeover.write_hashes(env, "unknown", None)
        env.mark("hashes overwritten")
        with env.roles.unrest():
            env.roles.restart("operator")

        for name in OF_LIBRARY:
            env.settle(f"hashes of {name} rewritten", takeover.has_hashes(name, own[name]), 60)
        env.settle("changed clique rolled out", rolled_out("changed", [f"changed-0-{SOLO}"], uids), 60)
        unknown = [f"unknown-0-{each}" for each in (SOLO, FRONT)]
        env.settle("set with unknown hashes updated", rolled_out("unknown", unknown, uids), 60)
        env.quiet(2)
        env.mark("nothing moves")


@requirement("UPG-006", reaches=[f"hashes of {name} rewritten" for name in OF_LIBRARY])
def test_hashes_of_go_operators_are_taken_over(run: Recorded[HashesOfOtherOperators]) -> None:
    """An operator MUST rewrite the legacy hashes of Grove's operators as its own, and MUST NOT restart anything."""
    for name in PODS:
        run.given(f"{name} has its pods", f"{name} available")
    before, after = run.at("hashes of the judged operator"), run.at("nothing moves")
    since = run.between("hashes overwritten", "nothing moves")
    for name, way in OF_LIBRARY.items():
        own, now = takeover.everything(before, name), takeover.everything(after, name)
        run.same(f"hashes of a set that had those of {way}", own, now)
        run.expect(f"pods of {name} created or deleted", [], takeover.restarts(since, name))
        run.expect(f"states of {name} with an update", [], takeover.updates(since, name))


@requirement("UPG-007", reaches="changed clique rolled out")
def test_what_was_changed_meanwhile_is_rolled_out(run: Recorded[HashesOfOtherOperators]) -> None:
    """What was changed in a template while no operator ran MUST be rolled out, in the changed cliques only."""
    uids = incarnations.uids(run.at("hashes of the judged operator"), "pods")
    now = incarnations.uids(run.at("nothing moves"), "pods")
    kept = {pod: uid for pod, uid in uids.items() if pod.startswith((f"changed-0-{FRONT}", f"turned-0-{FRONT}"))}
    run.same("pods of the cliques that were not changed", kept, {pod: now.get(pod, "") for pod in kept})


@requirement("UPG-008", reaches="set with unknown hashes updated")
def test_a_set_with_unknown_hashes_is_updated(run: Recorded[HashesOfOtherOperators]) -> None:
    """A stored hash that is not a hash of the current template MUST start an update, and not just be overwritten."""
