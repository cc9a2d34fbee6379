"""The end state of other operators, written by the test while no operator runs: what the judged one makes of it."""

from __future__ import annotations

from conformance.grove.template_hashes import LEGACY
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import incarnations, predicates
from conformance.testing.comparison import same
from conformance.tests.upgrade import takeover
from conformance.tests.upgrade.takeover import FRONT, SOLO, pod_spec
from conformance.tests.upgrade.test_earlier_versions import rolled_out


@requirements("UPG-006", "UPG-007", "UPG-008")
def test_what_go_operators_left_behind_is_taken_over(case: Case) -> None:
    case.nodes("dgx-h100", 4)
    of_library = {f"l{number}": way for number, way in enumerate(LEGACY)}
    for name in of_library:
        case.create(takeover.workload(case, name))
    for name in ("changed", "turned", "unknown"):
        case.create(takeover.small(case, name))
    pods = {**dict.fromkeys(of_library, 6), "changed": 2, "turned": 2, "unknown": 2}
    for name, count in pods.items():
        case.until("UPG-006", f"{name} has all its pods", takeover.has_all_hashes(name, count))
        case.until("UPG-006", f"{name} is available", predicates.available(name, 1))
    view = case.quiet(1)
    own = {name: takeover.everything(view, name) for name in pods}
    uids = incarnations.uids(view, "pods")

    case.roles.stop("operator")
    for name, way in of_library.items():
        takeover.write_hashes(case, name, way)
    # Since those hashes were written one clique has got another image, and one another order of its containers.
    takeover.write_hashes(case, "changed", LEGACY[0], z_solo=pod_spec("engine:0"))
    turned = pod_spec()
    takeover.write_hashes(case, "turned", LEGACY[0], z_solo={"containers": turned["containers"][::-1]})
    takeover.write_hashes(case, "unknown", None)
    since = case.history.mark()
    with case.roles.unrest():
        case.roles.restart("operator")

    for name, way in of_library.items():
        what = f"the hashes of a set with those of {way} become our own"
        case.eventually("UPG-006", what, takeover.has_hashes(name, own[name]))
    what = "what was changed while no operator ran is rolled out"
    case.eventually("UPG-007", what, rolled_out("changed", [f"changed-0-{SOLO}"], uids))
    what = "a set of whose hashes nobody knows anything is updated"
    case.eventually("UPG-008", what, rolled_out("unknown", [f"unknown-0-{each}" for each in (SOLO, FRONT)], uids))
    view = case.quiet(2)
    for name, way in of_library.items():
        what = f"hashes of a set that had those of {way}"
        same(case, "UPG-006", what, own[name], takeover.everything(view, name))
        case.expect("UPG-006", f"pods of {name} that came or went", [], takeover.restarts(case, name, since))
        case.expect("UPG-006", f"states of {name} in which it is updated", [], takeover.updates(case, name, since))
    now = incarnations.uids(view, "pods")
    others = (f"changed-0-{FRONT}", f"turned-0-{FRONT}")
    kept = {pod: uid for pod, uid in uids.items() if pod.startswith(others)}
    same(case, "UPG-007", "pods of the cliques that were not changed", kept, {pod: now.get(pod, "") for pod in kept})
