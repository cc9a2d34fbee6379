"""Tests with hashes of other operators. The hashes are stored while no operator is running, and the judged operator
must take over some of them."""

from __future__ import annotations

from conformance.grove.template_hashes import LEGACY
from conformance.testing import incarnations, predicates
from conformance.testing.scene import Exclusive, Recorded, Scene, SceneEnvironment, requirement
from conformance.tests.upgrade import takeover
from conformance.tests.upgrade.takeover import FRONT, SOLO, is_rolled_out, pod_spec

HASH_WAYS = {f"l{number}": way for number, way in enumerate(LEGACY)}
"""Set → the hash scheme of the operator whose hashes the set gets."""
POD_COUNTS = {**dict.fromkeys(HASH_WAYS, 6), "changed": 2, "turned": 2, "unknown": 2}
"""The number of pods of each set."""


class HashesOfOtherOperators(Scene):
    """Room for all pods. The stored hashes of several sets are overwritten while no operator is running. The sets of
    HASH_WAYS get the hashes of a Go operator, one set for each version of its libraries. In one clique of `changed`,
    the hashes belong to another image, and in one clique of `turned`, they belong to another order of containers.
    `unknown` gets hashes that do not match any template."""

    exclusive = Exclusive.ROLES

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 4)
        for name in HASH_WAYS:
            env.create(takeover.workload(env, name))
        for name in ("changed", "turned", "unknown"):
            env.create(takeover.small_workload(env, name))
        for name, count in POD_COUNTS.items():
            env.wait_for(f"{name} has its pods", takeover.has_all_hashes(name, count))
            env.wait_for(f"{name} available", predicates.is_available(name, 1))
        view = env.quiet(1)
        hashes = {name: takeover.all_hashes(view, name) for name in POD_COUNTS}
        uids = incarnations.uids(view, "pods")
        env.mark("hashes of the judged operator")

        env.roles.stop("operator")
        for name, way in HASH_WAYS.items():
            takeover.write_hashes(env, name, way)
        takeover.write_hashes(env, "changed", LEGACY[0], z_solo=pod_spec("engine:0"))
        containers = pod_spec()["containers"][::-1]
        takeover.write_hashes(env, "turned", LEGACY[0], z_solo={"containers": containers})
        takeover.write_hashes(env, "unknown", None)
        env.mark("hashes overwritten")
        with env.roles.unrest():
            env.roles.restart("operator")

        for name in HASH_WAYS:
            env.settle(f"hashes of {name} rewritten", takeover.has_hashes(name, hashes[name]), 60)
        env.settle("changed clique rolled out", is_rolled_out("changed", [f"changed-0-{SOLO}"], uids), 60)
        unknown = [f"unknown-0-{template}" for template in (SOLO, FRONT)]
        env.settle("set with unknown hashes updated", is_rolled_out("unknown", unknown, uids), 60)
        env.quiet(2)
        env.mark("nothing moves")


@requirement("UPG-006")
def test_hashes_of_a_go_operator_are_taken_over(run: Recorded[HashesOfOtherOperators]) -> None:
    """The operator may have been built with any version of the Kubernetes libraries. UPG-016 covers all versions."""
    for name in POD_COUNTS:
        run.given(f"{name} has its pods", f"{name} available")
    wrong = {str(way): _expect_no_takeover(run, name) for name, way in HASH_WAYS.items()}
    best = min(wrong.values(), key=len)
    run.expect("what is wrong with the set that fares best", [], best)


@requirement("UPG-016", reaches=[f"hashes of {name} rewritten" for name in HASH_WAYS])
def test_hashes_of_all_go_operators_are_taken_over(run: Recorded[HashesOfOtherOperators]) -> None:
    """Each set has the hashes of another version of the libraries."""
    wrong = {str(way): _expect_no_takeover(run, name) for name, way in HASH_WAYS.items()}
    run.expect(
        "what is wrong with sets, by the hashes that they had",
        {},
        {way: problems for way, problems in wrong.items() if problems},
    )


def _expect_no_takeover(run: Recorded[HashesOfOtherOperators], name: str) -> list[str]:
    """Return the hashes of a set that differ from the hashes of the judged operator, the set's replaced pods, and its
    updates."""
    span = run.between("hashes overwritten", "nothing moves")
    hashes = takeover.all_hashes(run.at("hashes of the judged operator"), name)
    now = takeover.all_hashes(run.at("nothing moves"), name)
    differing = [
        f"{location} is {now.get(location)!r}" for location, hash in hashes.items() if now.get(location) != hash
    ]
    return [*differing, *takeover.restart_records(span, name), *takeover.update_records(span, name)]


@requirement("UPG-007", reaches="changed clique rolled out")
def test_what_was_changed_meanwhile_is_rolled_out(run: Recorded[HashesOfOtherOperators]) -> None:
    """In one clique, the stored hashes belong to another image or to another order of containers."""
    uids = incarnations.uids(run.at("hashes of the judged operator"), "pods")
    now = incarnations.uids(run.at("nothing moves"), "pods")
    unchanged = {pod: uid for pod, uid in uids.items() if pod.startswith((f"changed-0-{FRONT}", f"turned-0-{FRONT}"))}
    run.same("pods of the cliques that were not changed", unchanged, {pod: now.get(pod, "") for pod in unchanged})


@requirement("UPG-008", reaches="set with unknown hashes updated")
def test_a_set_with_unknown_hashes_is_updated(run: Recorded[HashesOfOtherOperators]) -> None:
    """No operator has ever written such hashes."""
